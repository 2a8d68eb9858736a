"""Starts the worker for kernels in Python: locks the process down, then hands it over.

It applies the profile, imports NumPy, and gives the native worker of `crates/os/python_worker` what
that needs, before any code of a candidate is loaded. The native worker has the socket, the memory,
the clock and the loop that calls the kernel, and does not return. It calls functions of this file
to load the module and to describe an exception.

With `--play DIR` it makes the call that a directory describes, for a profiler: play.rs has the
files. With `--fork` it imports the libraries for a device instead, which takes seconds, and forks a worker
for each request: fork_server.rs has the messages. It never loads a candidate or uses the device.
"""

import sys

# Do not import from the directory of this file.
OWN = sys.path.pop(0)

import ctypes
import gc
import json
import os
import resource
import signal
import socket
import stat
import struct
import tempfile
import time
import traceback
import types
import warnings

PR_SET_PDEATHSIG = 1
PR_SET_NO_NEW_PRIVS = 38
PR_CAPBSET_DROP = 24
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
CAP_READ_ANY = 1 << 2
# Version 3 of the header, for this thread.
CAP_HEADER = struct.pack("=Ii", 0x20080522, 0)
# To execute, write, read and truncate; the other accesses are those of a directory.
LANDLOCK_FILE = 1 | 1 << 1 | 1 << 2 | 1 << 14
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
        access &= LANDLOCK_FILE
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
            for access, paths in lock["paths"] + [(lock["libraries"], python_paths())]:
                for path in paths:
                    allow(path, access)
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


FORKS, PLAYS = sys.argv[1:] == ["--fork"], sys.argv[1:2] == ["--play"]
if not PLAYS:
    try:
        SERVE = ctypes.PyDLL(os.path.join(OWN, "worker.so")).karve_serve
    except OSError as error:
        sys.exit("native\n%s" % error)
    SERVE.argtypes, SERVE.restype = [ctypes.py_object], None
    if len(sys.argv) > 1 and not FORKS:
        put_on(json.loads(sys.argv.pop()))

try:
    import numpy
except ImportError:
    sys.exit("numpy")

MESSAGE_BYTES_MAX = 128 << 10
WHY_CHARS_MAX = 4_000
# The number that the driver of a device has for it.
OUT_OF_MEMORY = 2

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

class Refusal(Exception):
    """A failure with a code of worker_text.rs and its arguments."""


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


def load(path, entry, setup, how):
    """The function or the model of a module, and the function that prepares for calls, or None."""
    if how["alone"]:
        name = "reference"
    else:
        name = os.path.splitext(os.path.basename(path))[0]
        sys.path.insert(0, os.path.dirname(path))
        if how.get("finds_project"):
            sys.path.insert(1, os.getcwd())
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
    prepare = getattr(module, setup, None) if setup else None
    if setup and not callable(prepare):
        raise Refusal("setup")
    made = model(module, thing, how) if isinstance(thing, type) else thing
    return compiled(made, how["compile"]) if how.get("compile") else made, prepare


def compiled(thing, mode):
    """A function or a model as torch.compile makes it, for a baseline."""
    try:
        import torch
    except ImportError:
        raise Refusal("torch")
    return torch.compile(thing, mode=mode)


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


def why(error, path):
    """The kind of an error and its line in the module for karve, and all of it for the user."""
    if isinstance(error, Refusal):
        return "\t".join(map(str, error.args))
    line = getattr(error, "lineno", 0) if isinstance(error, SyntaxError) else 0
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename == path:
            line = frame.lineno
    whole = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    if type(error).__name__ == "OutOfMemoryError":
        return ("fault\t%d\n%s" % (OUT_OF_MEMORY, whole))[:WHY_CHARS_MAX]
    return ("raised\t%s\t%s\n%s" % (type(error).__name__, line, whole))[:WHY_CHARS_MAX]


def begin(hello):
    """Loads the module, and returns its function and what prepares for calls, or None."""
    module = hello["module"]
    if module["device"] is not None:
        import_torch(module["device"])
    functions = load(hello["path"], hello["entry"], hello.get("setup"), module)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_grad_enabled(False)
    gc.collect()
    gc.freeze()
    return functions


def become(request, fds, middle):
    """Turns a forked process into what karve would have started itself."""
    # The parent that the signal is about must be karve.
    while os.getppid() == middle:
        time.sleep(0.0002)
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != request["parent"]:
        os._exit(1)
    os.setsid()
    for fd, stream in zip(fds, range(3)):
        os.dup2(fd, stream)
    os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    libc.getenv.restype = ctypes.c_void_p
    place, mark = libc.getenv(b"KARVE_RUN"), os.fsencode(request["mark"])
    if place and len(ctypes.string_at(place)) == len(mark):
        # Here others read it.
        ctypes.memmove(place, mark, len(mark))
    os.environ.clear()
    os.environ.update(request["env"])
    # It remembers that of the process that it was forked from.
    tempfile.tempdir = None
    os.chdir(request["dir"])
    if request["cpus"]:
        os.sched_setaffinity(0, request["cpus"])
    if request["args"][-1].startswith("{"):
        put_on(json.loads(request["args"][-1]))


def fork_one(request, fds):
    """Returns the id of the new process, and nothing in that process."""
    read, write = os.pipe()
    middle = os.fork()
    if middle == 0:
        middle = os.getpid()
        pid = os.fork()
        if pid == 0:
            become(request, fds, middle)
            return None
        os.write(write, b"%d" % pid)
        os._exit(0)
    os.close(write)
    os.waitpid(middle, 0)
    pid = os.read(read, 32)
    os.close(read)
    return pid


def warm_up():
    """Imports what kernels for a device use, and computes what Triton computes once in a process.
    Versions differ, so whatever is missing is left to the workers."""
    for step in [
        "import torch",
        "import triton.experimental.gluon.nvidia.hopper",
        "from triton.runtime.cache import triton_key; triton_key()",
        "from triton.backends.nvidia import compiler; compiler.get_ptxas_version(90)",
        "from triton.backends.nvidia import driver; driver.CudaUtils()",
    ]:
        try:
            exec(step, {})
        except Exception:
            pass


def fork_workers():
    """Forks workers until karve closes the connection. Returns in a worker."""
    warm_up()
    gc.collect()
    gc.freeze()
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, fileno=0)
    connection.send(b"0")
    while True:
        message, fds, _, _ = socket.recv_fds(connection, MESSAGE_BYTES_MAX, 3)
        if not message:
            os._exit(0)
        pid = fork_one(json.loads(message), fds)
        if pid is None:
            # Descriptor 0 is another socket now.
            connection.detach()
            return
        for fd in fds:
            os.close(fd)
        connection.send(pid)


# Types that NumPy lacks, as PyTorch calls them.
TORCH_TYPES = {"bf16": "bfloat16", "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2"}


def played(arg, where, device):
    """An argument of a call that is played: a number, or a tensor with the contents of a file."""
    if arg["kind"] != "tensor":
        return arg["value"]
    made = numpy.zeros(arg["shape"], NUMPY_TYPES[arg["dtype"]])
    if arg["file"] is not None:
        made = numpy.fromfile(os.path.join(where, arg["file"]), made.dtype).reshape(made.shape)
    torch = sys.modules.get("torch")
    if torch is None:
        return made
    made = torch.from_numpy(made).to(device or "cpu")
    kind = TORCH_TYPES.get(arg["dtype"])
    return made if kind is None else made.view(getattr(torch, kind))


def play(where):
    """Makes the call that a directory describes, as often as the environment says."""
    with open(os.path.join(where, "call.json")) as file:
        call = json.load(file)
    device = call["device"]
    how = {"alone": False, "hidden": [], "seed": 2, "wide": False, "device": device}
    if device is not None:
        import_torch(device)
    path = os.path.abspath(call["path"])
    function, setup = load(path, call["entry"], call["setup"], how)
    is_given = lambda arg: call["passes_outputs"] or arg.get("file") or arg["kind"] != "tensor"
    given = [(arg, played(arg, where, device)) for arg in call["args"] if is_given(arg)]
    args = [made for arg, made in given if not arg.get("prepared")]
    if setup is not None:
        of_setup = [made for arg, made in given if arg["kind"] != "tensor" or arg.get("prepared")]
        args.insert(0, setup(*of_setup))
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_grad_enabled(False)
    calls = int(os.environ.get("KARVE_PLAYED_CALLS", 3))
    if device is None:
        for _ in range(calls):
            function(*args)
        return
    # What is compiled or tuned in the first call is not profiled.
    function(*args)
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    for _ in range(calls):
        function(*args)
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()


def main():
    if PLAYS:
        return play(sys.argv[2])
    if FORKS:
        fork_workers()
    warnings.filterwarnings("ignore", message=".*not writ.*")
    # The first large block that is freed makes the C library keep those after it. In every worker
    # that has happened, or a kernel that frees one would seem faster.
    numpy.empty(31 << 20, numpy.uint8)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, fileno=0)
    first, fds, _, _ = socket.recv_fds(connection, MESSAGE_BYTES_MAX, 2)
    # The native worker owns the socket from now on.
    connection.detach()
    if first[:1] != b"H":
        sys.exit("memory")
    hello = json.loads(first[9:])
    device = hello.get("device", {"handles": [], "captures": False, "warms": False})
    handles = device["handles"]
    if len(fds) != (0 if handles else 2):
        sys.exit("memory")
    fds = fds or (-1, -1)
    numbers = struct.unpack("<q", first[1:9]) + (
        fds[0], hello["input_bytes"], fds[1], hello["output_bytes"],
        int(device["captures"]), int(device["warms"]),
    )
    SERVE((
        numbers,
        tuple(handles),
        numpy.ndarray,
        {name: numpy.dtype(of) for name, of in NUMPY_TYPES.items()},
        (type(len), type(str.join), type(sys)),
        gc.disable,
        gc.collect,
        lambda: begin(hello),
        lambda error: why(error, hello["path"]),
    ))


if __name__ == "__main__":
    main()
