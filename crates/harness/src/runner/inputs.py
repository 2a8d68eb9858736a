"""Asks the reference's module for its inputs and outputs: types and extents, but no values.

It prints one line of JSON. The module is that of the unchanged project; karve draws the values
itself, from a secret.

    inputs.py FILE functions|models DEVICE BYTES
"""

import inspect
import json
import math
import os
import sys
import types

# Do not import from the directory of this file.
sys.path.pop(0)

import numpy

DTYPES = {
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "f8e4m3",
    "float8_e5m2": "f8e5m2",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "uint64": "u64",
    "uint32": "u32",
    "uint16": "u16",
    "uint8": "u8",
    "bool": "bool",
}


def load(path):
    module = types.ModuleType("reference")
    module.__file__ = path
    sys.modules["reference"] = module
    with open(path, "rb") as file:
        exec(compile(file.read(), path, "exec"), module.__dict__)
    return module


def need(module, name):
    thing = getattr(module, name, None)
    if thing is None:
        sys.exit("%s does not define `%s`" % (os.path.basename(module.__file__), name))
    return thing


def count_bytes(values, what, most):
    """Refuses what is too large, before anything reads its elements: a view can have more of them
    than there is memory."""
    total = 0
    for value in values:
        size = getattr(getattr(value, "dtype", None), "itemsize", 8)
        if hasattr(value, "element_size"):
            size = value.element_size()
        total += math.prod(int(n) for n in getattr(value, "shape", ())) * size
    if total > most:
        sys.exit("%s have %d bytes in total; the limit is %d" % (what, total, most))


def described(value, what):
    """The description of a tensor or a number for karve."""
    if isinstance(value, (bool, int)):
        return {"kind": "scalar", "dtype": "i64", "value": str(int(value))}
    if isinstance(value, float):
        return {"kind": "scalar", "dtype": "f64", "value": repr(value)}
    if not hasattr(value, "shape") or not hasattr(value, "dtype"):
        sys.exit("%s is a %s, not a tensor or number" % (what, type(value).__name__))
    name = str(value.dtype).replace("torch.", "")
    if name not in DTYPES:
        sys.exit("%s has the type %s, which karve does not support" % (what, name))
    told = {"kind": "tensor", "dtype": DTYPES[name], "shape": [int(n) for n in value.shape]}
    if 0 not in told["shape"] and name != "bool" and not name.startswith("float8"):
        told["low"], told["high"] = float(value.min()), float(value.max())
    return told


def names_of(function, count):
    """The names of the parameters, if they are known and there are enough."""
    try:
        found = [p.name for p in inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):
        found = []
    if len(found) < count:
        found = ["in%d" % n for n in range(count)]
    return found[:count]


def made(make, device):
    """What a function of the module makes, on the device if it can: billions of numbers take half
    a minute elsewhere."""
    torch = sys.modules.get("torch")
    if device != "cpu" and hasattr(torch, "device"):
        try:
            with torch.device(device):
                return make()
        except Exception:
            pass
    return make()


def main():
    path, style, device, most = sys.argv[1:5]
    module = load(path)
    inputs = made(need(module, "get_inputs"), device)
    if not isinstance(inputs, (list, tuple)):
        inputs = [inputs]
    count_bytes(inputs, "the inputs", int(most))
    torch = sys.modules.get("torch")
    if style == "models":
        model = need(module, "Model")(*getattr(module, "get_init_inputs", list)())
        signature = getattr(model, "forward", model)
        function = model if callable(model) else signature
        if device != "cpu":
            function = model.to(device)
    else:
        function = signature = need(module, "reference_fn")
    told = [described(value, "an input") for value in inputs]
    for name, one in zip(names_of(signature, len(told)), told):
        one["name"] = name
    given = inputs
    if device != "cpu" and torch is not None:
        given = [v.to(device) if isinstance(v, torch.Tensor) else v for v in inputs]
    results = function(*given)
    if not isinstance(results, (list, tuple)):
        results = [results]
    count_bytes(results, "the results", int(most))
    outputs = [described(value, "a result") for value in results]
    for number, one in enumerate(outputs):
        one["name"] = "out" if len(outputs) == 1 else "out%d" % number
    print("\n" + json.dumps({"inputs": told, "outputs": outputs}))


main()
