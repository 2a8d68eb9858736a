"""Tests and measures the kernel of an imported task; "karve import" wrote this file.

    run.py test          every test of the task, and every case that is measured; 0 if all pass
    run.py bench CASE    prints METRIC time_us=... for one case

This process makes the inputs and judges the results, by the code of the task. It never loads the
kernel: another process does, gets a copy of the inputs, and returns numbers and tensors, which are
read as data. That process holds the clock, as in the task's own evaluation.
"""

import importlib
import importlib.util
import json
import math
import os
import pickle
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
INPUT_SETS = 3
SET_BYTES_MAX = 1 << 30
CALLS_MAX = 100
SECONDS_MAX = 1.0
FLUSH_BYTES = 256 << 20
CHILD_SECONDS_MAX = 3000
RESULT_BYTES_MAX = 64 << 30
DEPTH_MAX = 16


class Failure(Exception):
    """A wrong result, or a task that cannot be run, in words."""


def torch_or_none():
    try:
        return importlib.import_module("torch")
    except ImportError:
        return None


def seed_everything(seed):
    import random

    random.seed(seed)
    try:
        importlib.import_module("numpy").random.seed(seed % (1 << 32))
    except ImportError:
        pass
    torch = torch_or_none()
    if torch is not None:
        torch.manual_seed(seed)


def load(path, name):
    """The module of a file, by the name that other files import."""
    if ROOT not in sys.path:
        sys.path.insert(0, ROOT)
    spec = importlib.util.spec_from_file_location(name, os.path.join(ROOT, path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def is_tensor(value):
    return hasattr(value, "shape") and hasattr(value, "dtype")


def is_torch(value):
    return type(value).__module__.startswith("torch")


def mapped(tree, change, depth=0):
    """A tree with every tensor replaced."""
    if depth > DEPTH_MAX:
        raise Failure("the inputs or results are nested too deeply")
    if is_tensor(tree):
        return change(tree)
    if isinstance(tree, dict):
        return {key: mapped(value, change, depth + 1) for key, value in tree.items()}
    if type(tree) in (list, tuple):
        return type(tree)(mapped(value, change, depth + 1) for value in tree)
    return tree


def leaves(tree):
    found = []
    mapped(tree, found.append)
    return found


def placed(tree, task):
    """A tree on the device of the task."""
    if torch_or_none() is None:
        return tree
    return mapped(tree, lambda x: x.to(task["device"]) if is_torch(x) else x)


class Models:
    """KernelBench and its kin: `Model`, `get_inputs`, `get_init_inputs`."""

    entry = "ModelNew"

    def __init__(self, task):
        self.task = task
        self.module = load(task["reference"], "reference")

    def cast(self, value):
        """A model or a tensor in the type and on the device of the task."""
        dtype, torch = self.task.get("dtype"), torch_or_none()
        if torch is None:
            return value
        if isinstance(value, torch.nn.Module):
            value = value.to(self.task["device"])
            return value.to(getattr(torch, dtype)) if dtype else value
        if is_torch(value):
            value = value.to(self.task["device"])
            if dtype and value.is_floating_point():
                value = value.to(getattr(torch, dtype))
        return value

    def inputs(self, case, seed):
        seed_everything(seed)
        if "group" in case:
            made = self.module.get_input_groups()[case["group"]]
        else:
            made = self.module.get_inputs(**case.get("inputs", {}))
        made = list(made) if isinstance(made, (list, tuple)) else [made]
        return [self.cast(value) for value in made]

    def callable(self, source, case, seed):
        made = getattr(source, self.entry if source is not self.module else "Model")
        seed_everything(seed + 1)
        if "init" in case:
            return self.cast(made(**case["init"]))
        return self.cast(made(*getattr(self.module, "get_init_inputs", list)()))

    def call(self, made, data):
        return made(*data) if callable(made) else made.forward(*data)

    def reference(self, data, case, seed):
        return self.call(self.callable(self.module, case, seed), data)

    def check(self, output, data, case, seed):
        return compare(output, self.reference(data, case, seed), self.task["tolerance"])


class Functional(Models):
    """robust-kbench: the model of the task calls the function of the kernel."""

    def callable(self, source, case, seed):
        seed_everything(seed + 1)
        model = self.cast(self.module.Model(**case.get("init", {})))
        function = source.forward_fn
        return lambda *data: model(*data, fn=function)


class Functions(Models):
    """FlashInfer-Bench and SOL-ExecBench: `run`, and inputs by name."""

    entry = "run"

    def inputs(self, case, seed):
        seed_everything(seed)
        torch, custom = torch_or_none(), {}
        if self.task.get("custom"):
            make = getattr(self.module, self.task["custom"])
            custom = make(dict(case["axes"]), torch.device(self.task["device"]))
        made = []
        for name, one in case["inputs"].items():
            if one["kind"] == "scalar":
                made.append(one["value"])
            elif one["kind"] == "custom":
                made.append(custom[name])
            elif one["kind"] == "file":
                files = importlib.import_module("safetensors.torch")
                tensors = files.load_file(os.path.join(ROOT, one["path"]))
                made.append(tensors[one["key"]])
            else:
                made.append(random_tensor(torch, one))
        return [value.to(self.task["device"]) if is_torch(value) else value for value in made]

    def callable(self, source, case, seed):
        return source.run


def random_tensor(torch, one):
    dtype, shape = getattr(torch, one["dtype"]), one["shape"]
    if dtype == torch.bool:
        return torch.randint(0, 2, shape).bool()
    if not dtype.is_floating_point:
        low, high = (-128, 128) if dtype == torch.int8 else (-1024, 1024)
        return torch.randint(low, high, shape, dtype=dtype)
    made = torch.randn(shape)
    return (made.clamp(-2, 2) if dtype.itemsize == 1 else made).to(dtype)


class GpuMode:
    """GPU MODE: `generate_input`, `check_implementation`, `custom_kernel`."""

    def __init__(self, task):
        self.task = task
        self.module = load(task["reference"], "reference")

    def inputs(self, case, seed):
        seed_everything(seed)
        args = dict(case["args"])
        if "seed" in args:
            args["seed"] = (int(args["seed"]) + seed) % (1 << 31)
        return self.module.generate_input(**args)

    def callable(self, source, case, seed):
        return source.custom_kernel if source is not self.module else source.ref_kernel

    def call(self, made, data):
        return made(data)

    def reference(self, data, case, seed):
        return self.module.ref_kernel(data)

    def check(self, output, data, case, seed):
        answer = self.module.check_implementation(data, output)
        good, why = answer if isinstance(answer, tuple) else (not answer, answer)
        return None if good else str(why)[:500]


class Suite(Models):
    """TritonBench: a test that makes its inputs itself and returns all results."""

    def inputs(self, case, seed):
        return [seed]

    def callable(self, source, case, seed):
        names = dict(vars(source))
        with open(os.path.join(ROOT, self.task["suite"])) as file:
            exec(compile(file.read(), self.task["suite"], "exec"), names)
        test = names[self.task["entry"]]

        def call(seed):
            seed_everything(seed)
            return test()

        return call


FORMS = {
    "models": Models,
    "functional": Functional,
    "functions": Functions,
    "gpumode": GpuMode,
    "suite": Suite,
}


def compare(output, expected, rule):
    """Why two trees differ, or None."""
    got, want = leaves(output), leaves(expected)
    if len(got) != len(want):
        return "%d results instead of %d" % (len(got), len(want))
    for number, (a, b) in enumerate(zip(got, want)):
        why = differs(a, b, rule)
        if why:
            return "result %d: %s" % (number, why)
    return None


def differs(a, b, rule):
    if tuple(a.shape) != tuple(b.shape):
        return "the shape is %s instead of %s" % (tuple(a.shape), tuple(b.shape))
    if str(a.dtype) != str(b.dtype):
        return "the type is %s instead of %s" % (a.dtype, b.dtype)
    if math.prod(a.shape) == 0:
        return None
    wide = (lambda x: x.double()) if is_torch(a) else (lambda x: x.astype("float64"))
    a, b = wide(a), wide(b)
    error = abs(a - b)
    bad = error > rule["absolute"] + rule["relative"] * abs(b)
    if rule.get("rule") == "both":
        bad = (error > rule["absolute"]) & (error > rule["relative"] * abs(b))
    same = (a == b) | ((a != a) & (b != b) & bool(rule.get("nan")))
    bad = (bad | (error != error)) & ~same
    share = 1.0 - float(bad.sum()) / math.prod(a.shape)
    if share >= rule.get("matched", 1.0):
        return None
    return "%.4g%% of the elements are beyond %g + %g * |reference|; the largest error is %g" % (
        100 * (1 - share), rule["absolute"], rule["relative"], float(error.max()))


def encode(tree, file, depth=0):
    """A tree as JSON, and the bytes of its tensors in a file."""
    if depth > DEPTH_MAX:
        raise Failure("the result is nested too deeply")
    if is_tensor(tree):
        lib = "torch" if is_torch(tree) else "numpy"
        data, at = tree, file.tell()
        if lib == "torch":
            torch = torch_or_none()
            data = tree.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
        file.write(data.tobytes())
        name = str(tree.dtype).replace("torch.", "")
        shape = [int(n) for n in tree.shape]
        return {"is": "tensor", "of": lib, "dtype": name, "shape": shape, "at": at}
    if isinstance(tree, dict):
        keys = {str(key): encode(value, file, depth + 1) for key, value in tree.items()}
        return {"is": "dict", "of": keys}
    if isinstance(tree, (list, tuple)):
        kind = "tuple" if isinstance(tree, tuple) else "list"
        return {"is": kind, "of": [encode(value, file, depth + 1) for value in tree]}
    if tree is None or isinstance(tree, (bool, int, float, str)):
        return {"is": "value", "of": tree}
    raise Failure("a result is a %s" % type(tree).__name__)


def decode(node, data, task, depth=0):
    """A tree from JSON; nothing in it is executed."""
    if depth > DEPTH_MAX:
        raise Failure("the result is nested too deeply")
    kind = node["is"]
    if kind == "value":
        return node["of"]
    if kind == "dict":
        return {key: decode(value, data, task, depth + 1) for key, value in node["of"].items()}
    if kind in ("list", "tuple"):
        parts = [decode(value, data, task, depth + 1) for value in node["of"]]
        return tuple(parts) if kind == "tuple" else parts
    shape, at = [int(n) for n in node["shape"]], int(node["at"])
    if any(n < 0 for n in shape):
        raise Failure("a result has a negative extent")
    count = math.prod(shape)
    numpy = importlib.import_module("numpy")
    if node["of"] == "numpy":
        dtype = numpy.dtype(node["dtype"])
        return numpy.frombuffer(data, dtype, count, at).reshape(shape).copy()
    torch = torch_or_none()
    dtype = getattr(torch, node["dtype"])
    size = count * torch.empty(0, dtype=dtype).element_size()
    raw = numpy.frombuffer(data, numpy.uint8, size, at).copy()
    made = torch.from_numpy(raw).view(dtype) if size else torch.empty(0, dtype=dtype)
    return made.reshape(shape).to(task["device"])


def in_child(task, case, sets, seed, timed):
    """The results of the kernel on sets of inputs, and the times of its calls, in microseconds."""
    with tempfile.TemporaryDirectory() as where:
        save(sets, os.path.join(where, "inputs"))
        call = {"case": case, "seed": seed, "timed": timed}
        with open(os.path.join(where, "call.json"), "w") as file:
            json.dump(call, file)
        command = [sys.executable, os.path.abspath(__file__), "--child", where]
        done = subprocess.run(command, cwd=ROOT, timeout=CHILD_SECONDS_MAX)
        if done.returncode != 0:
            raise Failure("the process of the kernel ended with %d" % done.returncode)
        paths = [os.path.join(where, name) for name in ("result.json", "result.bin")]
        if any(os.path.getsize(path) > RESULT_BYTES_MAX for path in paths):
            raise Failure("the result is too large")
        with open(paths[0]) as file:
            result = json.load(file)
        with open(paths[1], "rb") as file:
            data = file.read()
        results = [decode(node, data, task) for node in result["results"]]
        times = [float(time) for time in result["times"]]
        if len(results) != len(sets) or not all(0 < time < 1e12 for time in times):
            raise Failure("the process of the kernel returned something else")
        return results, times


def save(tree, path):
    """Inputs for the process of the kernel. Only this direction uses pickle."""
    torch = torch_or_none()
    if torch is not None:
        return torch.save(tree, path)
    with open(path, "wb") as file:
        pickle.dump(tree, file)


def restore(path):
    torch = torch_or_none()
    if torch is not None:
        return torch.load(path, weights_only=False)
    with open(path, "rb") as file:
        return pickle.load(file)


def child(where):
    """Loads the kernel and calls it."""
    with open(os.path.join(HERE, "task.json")) as file:
        task = json.load(file)
    with open(os.path.join(where, "call.json")) as file:
        call = json.load(file)
    form = FORMS[task["form"]](task)
    sets = restore(os.path.join(where, "inputs"))
    kernel = load(task["kernel"], os.path.splitext(os.path.basename(task["kernel"]))[0])
    made = form.callable(kernel, call["case"], call["seed"])
    torch = torch_or_none()
    if torch is not None:
        torch.set_grad_enabled(bool(task.get("gradients")))
    results = [form.call(made, data) for data in sets]
    times = []
    if call["timed"]:
        times = measured(task, lambda at: form.call(made, sets[at % len(sets)]))
    with open(os.path.join(where, "result.bin"), "wb") as file:
        nodes = [encode(result, file) for result in results]
    with open(os.path.join(where, "result.json"), "w") as file:
        json.dump({"results": nodes, "times": times}, file)


def measured(task, call):
    """The times of some calls, in microseconds; each begins with cold caches on a GPU."""
    torch, times, end = torch_or_none(), [], time.perf_counter() + SECONDS_MAX
    on_gpu = torch is not None and task["device"] != "cpu"
    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda") if on_gpu else None
    while len(times) < 3 or (len(times) < CALLS_MAX and time.perf_counter() < end):
        if not on_gpu:
            start = time.perf_counter()
            call(len(times))
            times.append(1e6 * (time.perf_counter() - start))
            continue
        flush.zero_()
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call(len(times))
        stop.record()
        torch.cuda.synchronize()
        times.append(1e3 * start.elapsed_time(stop))
    return times


def run_case(task, case, seed, timed):
    """The mean time of a call in microseconds; raises a Failure if a result is wrong."""
    form = FORMS[task["form"]](task)
    seeds = [seed]
    first = form.inputs(case, seed)
    size = sum(math.prod(x.shape) * 8 for x in leaves(first))
    if timed and size <= SET_BYTES_MAX:
        seeds += [seed + 13 * n for n in range(1, INPUT_SETS)]
    sets = [first] + [form.inputs(case, one) for one in seeds[1:]]
    results, times = in_child(task, case, sets, seed, timed)
    for one, output in zip(seeds, results):
        # The inputs again, in case the task's own code changes them.
        why = form.check(output, form.inputs(case, one), case, seed)
        if why:
            raise Failure(why)
    return sum(times) / len(times) if times else 0.0


def main():
    if sys.argv[1:2] == ["--child"]:
        return child(sys.argv[2])
    with open(os.path.join(HERE, "task.json")) as file:
        task = json.load(file)
    seed = int(os.environ.get("KARVE_SEED", "1")) % (1 << 30)
    if sys.argv[1:] == ["test"]:
        cases = task["tests"] + task["cases"]
    elif len(sys.argv) == 3 and sys.argv[1] == "bench":
        cases = [case for case in task["cases"] if case["name"] == sys.argv[2]]
    else:
        sys.exit(__doc__)
    if not cases:
        sys.exit("there is no case %s in karve/task.json" % sys.argv[2:])
    timed = sys.argv[1] == "bench"
    for case in cases:
        try:
            mean = run_case(task, case, seed, timed)
        except Failure as failure:
            sys.exit("FAIL %s: %s" % (case["name"], failure))
        if timed:
            print("METRIC time_us=%.9g case=%s check=PASS" % (mean, case["name"]))
        else:
            print("PASS %s" % case["name"])


if __name__ == "__main__":
    main()
