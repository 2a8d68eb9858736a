"""The worker for kernels in Python: loads one module and calls it on karve's request.

It runs the code of a candidate in its own process, so it is not trusted: karve itself reads and
checks everything that matters. The messages are those of protocol.rs, one packet each, on the
socket that is standard input.

    H  load the module         S  take these arguments from now on
    P  are you awake?          I  prepare these calls: copy inputs to the device
    B  call the kernel         O  copy the outputs from the device
"""

import sys

# Do not import from the directory of this file.
OWN = sys.path.pop(0)

import ctypes
import gc
import json
import math
import mmap
import os
import platform
import resource
import socket
import stat
import struct
import time
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


if len(sys.argv) > 1:
    put_on(json.loads(sys.argv.pop()))

try:
    import numpy
except ImportError:
    sys.exit("numpy")

MESSAGE_BYTES_MAX = 128 << 10
WHY_CHARS_MAX = 4_000
MODE_CHANGED = 1
ARRAY = numpy.ndarray
NOW = time.perf_counter_ns

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


class Refusal(Exception):
    """A failure with a code of worker_text.rs and its arguments."""


class Place:
    """One tensor of the arguments, as karve described it."""

    def __init__(self, given, torch):
        self.kind = given["kind"]
        self.offset = given["offset"]
        self.shape = tuple(given["shape"])
        self.dtype = numpy.dtype(NUMPY_TYPES[given["dtype"]])
        self.count = math.prod(self.shape)
        self.torch_type = None
        if torch is not None:
            self.torch_type = getattr(torch, TORCH_TYPES[given["dtype"]], None)
            if self.torch_type is None:
                raise Refusal("element")

    def array(self, memory, start):
        """The tensor in karve's memory."""
        if self.count == 0:
            return numpy.empty(self.shape, self.dtype)
        flat = numpy.frombuffer(memory, self.dtype, self.count, start + self.offset)
        return flat.reshape(self.shape)

    def tensor(self, torch, memory, start):
        """The same as a tensor of torch, which shares the memory."""
        array = self.array(memory, start).reshape(-1).view(numpy.uint8)
        return torch.from_numpy(array).view(self.torch_type).reshape(self.shape)


class Call:
    """One prepared call: the kernel's arguments, and where its results go."""

    def __init__(self, args, targets, homes):
        self.args = args
        self.targets = targets
        self.homes = homes
        self.results = ()


class Worker:
    """A loaded module, and karve's memory."""

    def __init__(self, hello, memory):
        self.input, self.output = memory
        module = hello["module"]
        self.device = module["device"]
        self.setup = None
        self.calls = []
        self.buffers = {}
        self.torch = None
        if self.device is not None:
            self.torch = import_torch(self.device)
        self.function = load(hello["path"], hello["entry"], module)
        if not callable(self.function):
            raise Refusal("function")
        # A module that uses torch gets torch tensors.
        if self.torch is None:
            self.torch = sys.modules.get("torch")
        if self.torch is not None:
            self.torch.set_grad_enabled(False)
        self.rate = spin_rate()
        self.mode = floating_point_mode()
        gc.collect()
        gc.freeze()

    def take(self, setup):
        """Sets the arguments of all following calls."""
        places = []
        for given in setup["args"]:
            if given["kind"] == "integer":
                places.append(given["value"])
            elif given["kind"] == "float":
                value = struct.unpack("<d", struct.pack("<Q", given["bits"]))[0]
                if given["single"]:
                    value = float(numpy.float32(value))
                places.append(value)
            else:
                places.append(Place(given, self.torch))
        self.setup = (setup["input_stride"], setup["output_stride"], places)
        self.calls = []
        self.buffers = {}

    def get_ready(self, slots):
        """Everything that is not timed: views of the memory, and inputs on the device."""
        if self.setup is None:
            raise Refusal("order")
        self.calls = [self.ready(slot, index) for index, slot in enumerate(slots)]
        if self.device is not None:
            self.torch.cuda.synchronize()
        gc.collect(0)

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
            home = self.view(place, memory, start)
            if place.kind == "output":
                targets.append((home, place.shape, home.dtype))
                continue
            given = home
            if self.device is not None:
                given = self.on_device((index, number), place, home)
                if place.kind == "in_out":
                    homes.append((home, given))
            args.append(given)
        return Call(args, targets, homes)

    def view(self, place, memory, start):
        if self.torch is None:
            return place.array(memory, start)
        return place.tensor(self.torch, memory, start)

    def on_device(self, key, place, home):
        """A copy on the device, in a reused buffer."""
        buffer = self.buffers.get(key)
        if buffer is None:
            torch = self.torch
            buffer = torch.empty(place.shape, dtype=place.torch_type, device=self.device)
            self.buffers[key] = buffer
        buffer.copy_(home)
        return buffer

    def batch(self, n, spin_ns):
        """Calls the kernel. Returns the clock readings, and whether the rounding mode changed."""
        if n != len(self.calls):
            raise Refusal("order")
        spin = range(int(spin_ns * self.rate))
        gc.disable()
        cpu = time.process_time_ns()
        start = NOW()
        if self.device is None:
            self.on_cpu(spin)
            device_ns = 0
        else:
            device_ns = self.on_gpu(spin)
        wall_ns = NOW() - start
        cpu_ns = time.process_time_ns() - cpu
        gc.enable()
        changed = floating_point_mode() != self.mode
        return wall_ns, cpu_ns, MODE_CHANGED if changed else 0, device_ns

    def on_cpu(self, spin):
        function, put = self.function, self.put
        for call in self.calls:
            put(call, function(*call.args))
            for _ in spin:
                pass

    def on_gpu(self, spin):
        cuda = self.torch.cuda
        first, last = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        function = self.function
        first.record()
        for call in self.calls:
            call.results = function(*call.args)
        last.record()
        cuda.synchronize()
        for _ in self.calls:
            for _ in spin:
                pass
        return int(first.elapsed_time(last) * 1e6)

    def put(self, call, results):
        """Writes the results of a call to karve's memory, if they match the contract."""
        targets = call.targets
        if len(targets) != 1 or type(results) is tuple or type(results) is list:
            if type(results) not in (tuple, list):
                results = () if results is None else (results,)
            if len(results) != len(targets):
                raise Refusal("results", len(results), len(targets))
        else:
            results = (results,)
        torch = self.torch
        for result, (home, shape, dtype) in zip(results, targets):
            kind = type(result)
            if torch is not None and kind is ARRAY:
                result = torch.from_numpy(result)
            elif torch is not None and kind is not torch.Tensor:
                raise Refusal("type", kind.__name__)
            elif torch is None and kind is not ARRAY:
                raise Refusal("type", kind.__name__)
            if tuple(result.shape) != shape:
                raise wrong_shape(tuple(result.shape), shape)
            if result.dtype != dtype:
                raise Refusal("elements", result.dtype, dtype)
            if torch is None:
                home[...] = result
            else:
                home.copy_(result.detach())

    def fetch(self):
        """Copies the results from the device to karve's memory."""
        if self.device is None:
            return
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


def spin_rate():
    """Iterations of an empty loop per nanosecond."""
    best = 0.0
    for _ in range(5):
        start = NOW()
        for _ in range(20_000):
            pass
        best = max(best, 20_000 / max(NOW() - start, 1))
    return best


def floating_point_mode():
    """The rounding mode of this thread, and how it treats denormal numbers."""
    place = {"x86_64": (28, ~0x3F), "aarch64": (0, ~0)}.get(platform.machine())
    if place is None or FEGETENV is None:
        return 0
    room = ctypes.create_string_buffer(64)
    FEGETENV(room)
    return struct.unpack_from("<I", room, place[0])[0] & place[1]


def find_fegetenv():
    try:
        return ctypes.CDLL("libm.so.6").fegetenv
    except (OSError, AttributeError):
        return None


FEGETENV = find_fegetenv()


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


def slots_of(body):
    return list(struct.iter_unpack("<II", body))


class Server:
    """Handles requests until karve closes the connection."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, fileno=0)
        self.worker = None
        self.path = ""

    def serve(self):
        first, fds, _, _ = socket.recv_fds(self.socket, MESSAGE_BYTES_MAX, 2)
        room = memoryview(bytearray(MESSAGE_BYTES_MAX))
        n = len(first)
        room[:n] = first
        while n > 0:
            kind, nonce, body = room[0], bytes(room[1:9]), room[9:n]
            try:
                answer, told = self.answer(kind, body, fds)
            except BaseException as error:
                answer, told = b"e", why(error, self.path).encode("utf-8", "replace")
            self.socket.send(answer + nonce + told)
            n = self.socket.recv_into(room)

    def answer(self, kind, body, fds):
        if kind == ord("B"):
            spin_ns = int.from_bytes(body[:8], "little")
            return b"f", struct.pack("<QQIQ", *self.worker.batch((len(body) - 8) // 8, spin_ns))
        if kind == ord("I"):
            self.worker.get_ready(slots_of(body))
        elif kind == ord("O"):
            self.worker.fetch()
        elif kind == ord("S"):
            self.worker.take(json.loads(bytes(body)))
        elif kind == ord("H"):
            hello = json.loads(bytes(body))
            self.path = hello["path"]
            self.worker = Worker(hello, memory_of(hello, fds))
        elif kind != ord("P"):
            raise Refusal("order")
        return b"d", b""


def memory_of(hello, fds):
    if len(fds) != 2:
        raise Refusal("memory")
    # Mapped from the start: otherwise the first call would pay for every page.
    flags = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0x8000)
    kinds = [
        (hello["input_bytes"], mmap.PROT_READ),
        (hello["output_bytes"], mmap.PROT_READ | mmap.PROT_WRITE),
    ]
    memory = []
    for fd, (size, access) in zip(fds, kinds):
        memory.append(mmap.mmap(fd, size, flags=flags, prot=access))
        os.close(fd)
    return memory


if __name__ == "__main__":
    warnings.filterwarnings("ignore", message=".*not writ.*")
    Server().serve()
