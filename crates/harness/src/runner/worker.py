"""Starts the worker for kernels in Python: locks the process down, then hands it over.

It applies the profile, imports NumPy, and gives the native worker of `crates/os/python_worker` what
that needs, before any code of a candidate is loaded. The native worker has the socket, the memory,
the clock and the loop that calls the kernel, and does not return. It calls functions of this file
to load the module, to describe an exception, and for kernels on a device, whose phases are here.
"""

import sys

# Do not import from the directory of this file.
OWN = sys.path.pop(0)

import ctypes
import gc
import json
import math
import os
import resource
import socket
import stat
import struct
import traceback
import types
import warnings

PR_SET_NO_NEW_PRIVS = 38
PR_CAPBSET_DROP = 24
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
CAP_READ_ANY = 1 << 2
# Version 3 of the header, for this thread.
CAP_HEADER = struct.pack("=Ii", 0x20080522, 0)
LANDLOCK_WRITE_FILE = 1 << 1
LANDLOCK_READ_FILE = 1 << 2
LANDLOCK_READ_DIR = 1 << 3
LANDLOCK_PATH_BENEATH = 1
SECCOMP_SET_FILTER = 1
# All threads at once, without slowing the processor down.
SECCOMP_FLAGS = 1 | 4


def give_up_powers(get, put, prctl):
    """Drops root's capabilities, as process/sys/capabilities.rs does. The capability to read any file is
    kept if the modules are in directories that cannot be read without it."""
    power = 0
    while power < 64 and prctl(PR_CAPBSET_DROP, power, 0, 0, 0) == 0:
        power += 1
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    powers = ctypes.create_string_buffer(24)
    get(powers)
    _, usable, _, _, usable_high, _ = struct.unpack("=6I", powers.raw)
    put(struct.pack("=6I", 0, usable, 0, 0, usable_high, 0))
    kept = usable & CAP_READ_ANY if any(map(is_closed, [os.getcwd()] + sys.path)) else 0
    put(struct.pack("=6I", kept, kept, 0, 0, 0, 0))


def is_closed(path):
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))
    except PermissionError:
        return True
    except OSError:
        pass
    return False


def python_paths():
    """Where this Python keeps its modules and libraries."""
    prefixes = {sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix}
    parts = ["lib", "lib64", "share", "pyvenv.cfg", getattr(sys, "platlibdir", "lib")]
    paths = [os.path.join(prefix, part) for prefix in prefixes for part in parts]
    return paths + [path for path in sys.path if path.endswith("-packages")]


def allow_path(call, extend, rules_fd, path, access):
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not stat.S_ISDIR(os.fstat(fd).st_mode):
        access &= ~LANDLOCK_READ_DIR
    call(extend, rules_fd, LANDLOCK_PATH_BENEATH, struct.pack("<Qi", access, fd), 0)
    # A file of /proc that nobody holds may be made anew, and then lacks its rule.
    if not path.startswith("/proc/self/"):
        os.close(fd)


def put_on(lock):
    """Permanently drops what no kernel needs: the profile of process/sys/worker_profile.rs, which also says
    why. This happens before anything is imported that may start threads, since part of it applies
    only to this thread and those that it starts. If the host lacks a part, the others apply."""
    create, extend, restrict, seccomp, capget, capset = lock["calls"]
    call, prctl = ctypes.CDLL(None).syscall, ctypes.CDLL(None).prctl
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_CORE, (lock["core_bytes"],) * 2)
    give_up_powers(lambda powers: call(capget, CAP_HEADER, powers),
                   lambda powers: call(capset, CAP_HEADER, powers), prctl)
    if lock["ruleset"]:
        rules = struct.pack("<%dQ" % len(lock["ruleset"]), *lock["ruleset"])
        rules_fd = call(create, rules, ctypes.c_size_t(len(rules)), 0)
        if rules_fd >= 0:
            allow = lambda path, access: allow_path(call, extend, rules_fd, path, access)
            for path in lock["paths"]["read"] + python_paths():
                allow(path, LANDLOCK_READ_FILE | LANDLOCK_READ_DIR)
            for path in lock["paths"]["listed"]:
                allow(path, LANDLOCK_READ_DIR)
            # Code that silences a library writes there.
            allow(lock["writable"], LANDLOCK_WRITE_FILE)
            call(restrict, rules_fd, 0)
            os.close(rules_fd)
    if lock["filter"]:
        own = os.getpid()
        steps = b"".join(
            struct.pack("<HBBI", code, holds, fails, own if number is None else number)
            for code, holds, fails, number in lock["filter"]
        )
        steps = ctypes.create_string_buffer(steps, len(steps))
        program = struct.pack("@HP", len(lock["filter"]), ctypes.addressof(steps))
        if call(seccomp, SECCOMP_SET_FILTER, SECCOMP_FLAGS, program) != 0:
            call(seccomp, SECCOMP_SET_FILTER, 0, program)


try:
    SERVE = ctypes.PyDLL(os.path.join(OWN, "worker.so")).karve_serve
except OSError as error:
    sys.exit("native\n%s" % error)
SERVE.argtypes, SERVE.restype = [ctypes.py_object], None

if len(sys.argv) > 1:
    put_on(json.loads(sys.argv.pop()))

try:
    import numpy
except ImportError:
    sys.exit("numpy")

MESSAGE_BYTES_MAX = 128 << 10
WHY_CHARS_MAX = 4_000

# Types that NumPy lacks are passed as integers with the same bits.
NUMPY_TYPES = {
    "f64": numpy.float64,
    "f32": numpy.float32,
    "f16": numpy.float16,
    "bf16": numpy.uint16,
    "f8e4m3": numpy.uint8,
    "f8e5m2": numpy.uint8,
    "i64": numpy.int64,
    "i32": numpy.int32,
    "i16": numpy.int16,
    "i8": numpy.int8,
    "u64": numpy.uint64,
    "u32": numpy.uint32,
    "u16": numpy.uint16,
    "u8": numpy.uint8,
    "bool": numpy.bool_,
}

TORCH_TYPES = {
    "f64": "float64",
    "f32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "f8e4m3": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
    "i64": "int64",
    "i32": "int32",
    "i16": "int16",
    "i8": "int8",
    "u64": "uint64",
    "u32": "uint32",
    "u16": "uint16",
    "u8": "uint8",
    "bool": "bool",
}


KINDS = {3: "input", 4: "output", 5: "in_out"}


class Refusal(Exception):
    """A failure with a code of worker_text.rs and its arguments."""


class Place:
    """One tensor of the arguments, for a device."""

    def __init__(self, kind, offset, dtype, shape, torch):
        self.kind = kind
        self.offset = offset
        self.shape = shape
        self.bytes = math.prod(shape) * numpy.dtype(NUMPY_TYPES[dtype]).itemsize
        self.torch_type = getattr(torch, TORCH_TYPES[dtype], None)
        if self.torch_type is None:
            raise Refusal("element")

    def tensor(self, torch, memory, start):
        """The tensor in karve's memory."""
        start += self.offset
        array = numpy.frombuffer(memory[start : start + self.bytes], numpy.uint8)
        return torch.from_numpy(array).view(self.torch_type).reshape(self.shape)


class Call:
    """One prepared call on a device: the arguments, and where the results go."""

    def __init__(self, args, targets, homes):
        self.args = args
        self.targets = targets
        self.homes = homes
        self.results = ()


class DeviceWorker:
    """The phases of a kernel on a device."""

    def __init__(self, function, device, torch, memory):
        self.function = function
        self.device = device
        self.torch = torch
        self.input, self.output = memory
        self.setup = None
        self.calls = []
        self.buffers = {}

    def take(self, body):
        """Sets the arguments of all following calls: the message of protocol.rs."""
        strides, at, places = struct.unpack_from("<QQ", body), 16, []
        while at < len(body):
            kind, value = struct.unpack_from("<BQ", body, at)
            at += 9
            if kind == 0:
                places.append(value - (value >> 63 << 64))
            elif kind < 3:
                number = struct.unpack("<d", struct.pack("<Q", value))[0]
                places.append(float(numpy.float32(number)) if kind == 2 else number)
            else:
                (dtype,) = struct.unpack_from("%dp" % (1 + body[at]), body, at)
                at += 1 + body[at]
                shape = struct.unpack_from("<%dQ" % body[at], body, at + 1)
                at += 1 + 8 * body[at]
                places.append(Place(KINDS[kind], value, dtype.decode(), shape, self.torch))
        self.setup = (*strides, places)
        self.calls = []
        self.buffers = {}

    def get_ready(self, body):
        """Everything that is not timed: inputs on the device."""
        if self.setup is None:
            raise Refusal("order")
        slots = struct.iter_unpack("<II", body)
        self.calls = [self.ready(slot, index) for index, slot in enumerate(slots)]
        self.torch.cuda.synchronize()

    def ready(self, slot, index):
        input_stride, output_stride, places = self.setup
        args, targets, homes = [], [], []
        for number, place in enumerate(places):
            if not isinstance(place, Place):
                args.append(place)
                continue
            is_read = place.kind == "input"
            memory = self.input if is_read else self.output
            start = slot[0] * input_stride if is_read else slot[1] * output_stride
            home = place.tensor(self.torch, memory, start)
            if place.kind == "output":
                targets.append((home, place.shape, home.dtype))
                continue
            given = self.on_device((index, number), place, home)
            if place.kind == "in_out":
                homes.append((home, given))
            args.append(given)
        return Call(args, targets, homes)

    def on_device(self, key, place, home):
        """A copy on the device, in a reused buffer."""
        buffer = self.buffers.get(key)
        if buffer is None:
            torch = self.torch
            buffer = torch.empty(place.shape, dtype=place.torch_type, device=self.device)
            self.buffers[key] = buffer
        buffer.copy_(home)
        return buffer

    def batch(self):
        """Calls the kernel, and returns the time on the device."""
        cuda = self.torch.cuda
        first, last = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        function = self.function
        first.record()
        for call in self.calls:
            call.results = function(*call.args)
        last.record()
        cuda.synchronize()
        return int(first.elapsed_time(last) * 1e6)

    def put(self, call, results):
        """Writes the results of a call to karve's memory, if they match the contract."""
        targets, torch = call.targets, self.torch
        if type(results) not in (tuple, list):
            results = () if results is None and len(targets) != 1 else (results,)
        if len(results) != len(targets):
            raise Refusal("results", len(results), len(targets))
        for result, (home, shape, dtype) in zip(results, targets):
            if type(result) is numpy.ndarray:
                result = torch.from_numpy(result)
            elif type(result) is not torch.Tensor:
                raise Refusal("type", type(result).__name__)
            if tuple(result.shape) != shape:
                raise wrong_shape(tuple(result.shape), shape)
            if result.dtype != dtype:
                raise Refusal("elements", result.dtype, dtype)
            home.copy_(result.detach())

    def fetch(self):
        """Copies the results from the device to karve's memory."""
        for call in self.calls:
            self.put(call, call.results)
            call.results = ()
            for home, given in call.homes:
                home.copy_(given)
        self.torch.cuda.synchronize()


def import_torch(device):
    try:
        import torch
    except ImportError:
        raise Refusal("torch")
    if not torch.cuda.is_available():
        raise Refusal("gpu")
    torch.cuda.init()
    torch.zeros(1, device=device)
    return torch


def load(path, entry, how):
    """The function or the model of a module."""
    if how["alone"]:
        name = "reference"
    else:
        name = os.path.splitext(os.path.basename(path))[0]
        sys.path.insert(0, os.path.dirname(path))
    for hidden in how["hidden"]:
        sys.modules[hidden] = None
    with open(path, "rb") as file:
        source = file.read()
    module = types.ModuleType(name)
    module.__file__ = path
    sys.modules[name] = module
    exec(compile(source, path, "exec"), module.__dict__)
    thing = getattr(module, entry, None)
    if thing is None:
        raise Refusal("entry")
    return model(module, thing, how) if isinstance(thing, type) else thing


def model(module, of, how):
    """A model, created as in KernelBench: the same seed gives the same weights.

    One that does not use torch is a class with `forward`, and takes NumPy arrays.
    """
    torch = sys.modules.get("torch")
    numpy.random.seed((how["seed"] >> 1) % (1 << 32))
    if torch is not None:
        torch.manual_seed(how["seed"] >> 1)
    init = getattr(module, "get_init_inputs", list)()
    made = of(*init)
    if torch is None or not isinstance(made, torch.nn.Module):
        return made if callable(made) else made.forward
    if how["wide"]:
        made = made.double()
    if how["device"] is not None:
        made = made.to(how["device"])
    return made.eval()


def wrong_shape(found, wanted):
    if len(found) != len(wanted):
        return Refusal("rank", len(found), len(wanted))
    at = next(at for at, (one, other) in enumerate(zip(found, wanted)) if one != other)
    return Refusal("extent", at, "small" if found[at] < wanted[at] else "large")


def why(error, path):
    """The kind of an error and its line in the module for karve, and all of it for the user."""
    if isinstance(error, Refusal):
        return "\t".join(map(str, error.args))
    line = getattr(error, "lineno", 0) if isinstance(error, SyntaxError) else 0
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename == path:
            line = frame.lineno
    whole = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return ("raised\t%s\t%s\n%s" % (type(error).__name__, line, whole))[:WHY_CHARS_MAX]


def begin(hello, memory):
    """Loads the module. Returns its function, or with a device the functions of its phases."""
    module = hello["module"]
    device = module["device"]
    torch = None if device is None else import_torch(device)
    function = load(hello["path"], hello["entry"], module)
    if not callable(function):
        raise Refusal("function")
    torch = torch or sys.modules.get("torch")
    if torch is not None:
        torch.set_grad_enabled(False)
    gc.collect()
    gc.freeze()
    if device is None:
        return function
    worker = DeviceWorker(function, device, torch, memory)
    return worker.take, worker.get_ready, worker.batch, worker.fetch


def main():
    warnings.filterwarnings("ignore", message=".*not writ.*")
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, fileno=0)
    first, fds, _, _ = socket.recv_fds(connection, MESSAGE_BYTES_MAX, 2)
    # The native worker owns the socket from now on.
    connection.detach()
    if first[:1] != b"H" or len(fds) != 2:
        sys.exit("memory")
    hello = json.loads(first[9:])
    numbers = struct.unpack("<q", first[1:9]) + (
        fds[0], hello["input_bytes"], fds[1], hello["output_bytes"],
        int(hello["module"]["device"] is not None),
    )
    SERVE((
        numbers,
        numpy.ndarray,
        {name: numpy.dtype(of) for name, of in NUMPY_TYPES.items()},
        (type(len), type(str.join), type(sys)),
        gc.disable,
        gc.collect,
        lambda *memory: begin(hello, memory),
        lambda error: why(error, hello["path"]),
    ))


if __name__ == "__main__":
    main()
