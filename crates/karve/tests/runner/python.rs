//! Modules in Python in the kernel runner: what is called, what is refused, and what it costs.

use super::{RunnerSetup, case, check_kernel, terms};
use karve_core::campaign::ProcessAge;
use karve_core::charter::Metric;
use karve_core::measurement::Gate;
use karve_harness::outcome::{BlockFailure, split};
use karve_harness::runner::{self, DuelCase, KernelRunner};
use karve_numerics::contract::{
    ArgKind, CheckedShapes, Kernel, Precision, PythonRuntime, PythonStyle, Reference,
};
use karve_numerics::tensor::Dtype;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

pub(crate) const REFERENCE: &str = "
def reference_fn(n, alpha, x, y):
    z = x * y
    y += alpha * x
    return z
";

pub(crate) const HONEST: &str = "
import numpy as np

def kernel_fn(n, alpha, x, y):
    assert type(n) is int and type(alpha) is float
    z = x * y
    y += np.float32(alpha) * x
    return z
";

/// A Python that has a module; a test without one says so and ends.
pub(crate) fn python_with(module: &str) -> Option<String> {
    let has = |python: &&str| {
        let output = Command::new(python).args(["-c", &format!("import {module}")]).output();
        output.is_ok_and(|output| output.status.success())
    };
    let found = ["python3", "/usr/bin/python3"].into_iter().find(has);
    if found.is_none() {
        eprintln!("skipped: no Python here has {module}");
    }
    found.map(str::to_owned)
}

pub(crate) fn project(kernel: &str, reference: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("kernel.py"), kernel).expect("a file");
    fs::write(dir.path().join("reference.py"), reference).expect("a file");
    dir
}

pub(crate) fn python_terms(dir: &Path, interpreter: &str) -> RunnerSetup {
    let mut terms = terms(dir);
    terms.contract.kernel =
        Kernel::Python { path: "kernel.py".into(), style: PythonStyle::Functions };
    terms.contract.reference =
        Reference::Python { path: "reference.py".into(), precision: Precision::Wide };
    terms.contract.modules =
        PythonRuntime { interpreter: Some(interpreter.into()), ..PythonRuntime::default() };
    terms
}

pub(crate) fn examined(kernel: &str, interpreter: &str) -> Result<(), Gate> {
    let dir = project(kernel, REFERENCE);
    let terms = python_terms(dir.path(), interpreter);
    let examined = check_kernel(&terms, dir.path(), None, &[case(1_000), case(77)]);
    examined.expect("a correctness check").map(|errors| {
        assert_eq!(errors.len(), 4, "two tensors on two cases");
    })
}

#[test]
fn a_module_can_get_its_outputs_as_arguments() {
    let Some(python) = python_with("numpy") else {
        return;
    };
    let kernel = |line: &str| {
        format!(
            "import numpy as np\n\ndef kernel_fn(n, alpha, x, y, z):\n    {line}\n    \
             y += np.float32(alpha) * x\n"
        )
    };
    let passes = |line: &str| {
        let dir = project(&kernel(line), REFERENCE);
        let mut terms = python_terms(dir.path(), &python);
        terms.contract.modules.passes_outputs = true;
        check_kernel(&terms, dir.path(), None, &[case(1_000)]).expect("a correctness check")
    };
    assert!(passes("z[:] = x * y").is_ok());
    // What is left of the output is poison.
    let gate = passes("z[: n // 2] = (x * y)[: n // 2]").expect_err("a wrong result");
    assert!(gate.describe().contains("z:"), "{gate:?}");
    for returned in ["z", "(z, y)", "1"] {
        let gate = passes(&format!("z[:] = x * y; return {returned}")).expect_err("a refusal");
        assert!(gate.describe().contains("`kernel_fn` must return None"), "{gate:?}");
    }
}

#[test]
fn an_honest_module_passes() {
    let Some(python) = python_with("numpy") else {
        return;
    };
    assert_eq!(examined(HONEST, &python), Ok(()));
    let tuple = HONEST.replace("return z", "return [z]");
    assert_eq!(examined(&tuple, &python), Ok(()));
}

#[test]
fn a_module_that_is_wrong_in_any_way_is_refused() {
    let Some(python) = python_with("numpy") else {
        return;
    };
    let lazy = "
    class Late(np.ndarray):
        pass
    return z.view(Late)";
    for (ending, part) in [
        ("z[3] += 1; return z", "z:"),
        ("y[3] += 1; return z", "y:"),
        ("return z.astype(np.float64)", "float64 instead of float32"),
        ("return z[1:]", "dimension 0 of a result is too small"),
        ("return None", "has the type NoneType"),
        ("return z, z", "2 results instead of 1"),
        (lazy, "a type of its own"),
        ("raise ValueError('too hot')", "ValueError at kernel.py:8"),
        ("import reference", "ModuleNotFoundError at kernel.py:8"),
        ("x[0] = 1; return z", "inputs are read-only"),
        ("global W; W = globals().get('W', z); W[:] = z; return W", "an earlier result still uses"),
        ("import os; os._exit(3)", "the kernel's process exited"),
        ("import sys; sys.exit(3)", "SystemExit at kernel.py:8"),
    ] {
        let kernel = HONEST.replace("return z", ending);
        let gate = examined(&kernel, &python).expect_err("a refusal");
        let wrong = matches!(gate, Gate::WrongResult { .. });
        assert!(wrong && gate.describe().contains(part), "{ending}: {gate:?}");
    }
}

#[test]
fn what_earlier_calls_returned_stays_and_is_no_input() {
    let Some(python) = python_with("numpy") else {
        return;
    };
    let plain = "
def reference_fn(n, alpha, x, y):
    y += alpha * x
    return x * 1
";
    let kernel = |ending: &str| {
        format!(
            "import numpy as np\nRING = {{}}\n\ndef kernel_fn(n, alpha, x, y):\n    \
             y += np.float32(alpha) * x\n    {ending}\n"
        )
    };
    let checked = |ending: &str, incumbent: &str| {
        let [own, usual] = [ending, incumbent].map(|of| project(&kernel(of), plain));
        let terms = python_terms(own.path(), &python);
        let checked = check_kernel(&terms, own.path(), Some(usual.path()), &[case(1_000)]);
        checked.expect("a correctness check").err().map(|gate| gate.describe())
    };
    let ring = "r = RING.setdefault(n, [np.empty(n, 'f4') for _ in range(8)]); \
                z = r.pop(0); r.append(z); z[:] = x; return z";
    for (ending, part) in [
        (ring, "an earlier result still uses"),
        ("return x", "it returns an input"),
        ("return x[::1]", "it returns an input"),
    ] {
        let said = checked(ending, "return x.copy()");
        assert!(said.as_ref().is_some_and(|said| said.contains(part)), "{ending}: {said:?}");
        // Where the incumbent does the same, nothing is lost.
        assert_eq!(checked("return x.copy()", ending), None, "{ending}");
    }
    assert_eq!(checked("return x[::1]", "return x"), None);
    assert_eq!(checked("return x.copy()", "return x.copy()"), None);
}

#[test]
fn a_module_that_cannot_be_loaded_does_not_build() {
    let Some(python) = python_with("numpy") else {
        return;
    };
    for (kernel, part) in [
        ("def kernel_fn(", "SyntaxError"),
        ("def other():\n    pass\n", "does not define `kernel_fn`"),
        ("import nothing_of_this_name\n", "ModuleNotFoundError at kernel.py:1"),
        ("kernel_fn = 3\n", "is not a function"),
    ] {
        let gate = examined(kernel, &python).expect_err("a refusal");
        let built = matches!(gate, Gate::BuildFailed { .. });
        assert!(built && gate.describe().contains(part), "{kernel}: {gate:?}");
    }
}

#[test]
fn a_memory_of_results_is_noticed_in_python_too() {
    let Some(python) = python_with("numpy") else {
        return;
    };
    let remembers = "
import numpy as np
SEEN = {}

def kernel_fn(n, alpha, x, y):
    key = x.tobytes() + y.tobytes()
    if key not in SEEN:
        z = x * y
        for _ in range(400):
            w = y + np.float32(alpha) * x
        SEEN[key] = (z, w)
    z, y[...] = SEEN[key]
    return z.copy()
";
    let gate = examined(remembers, &python).expect_err("a refusal");
    assert!(gate.describe().contains("caches results"), "{gate:?}");
}

#[test]
fn a_rounding_mode_that_is_left_behind_is_noticed_in_python_too() {
    let Some(python) = python_with("torch") else {
        return;
    };
    let kernel =
        HONEST.replace("return z", "import torch; torch.set_flush_denormal(True); return z");
    let gate = examined(&kernel, &python).expect_err("a refusal");
    assert!(gate.describe().contains("rounding mode"), "{gate:?}");
}

#[test]
fn modules_meet_in_a_duel_and_what_it_costs_is_told() {
    let Some(python) = python_with("numpy") else {
        return;
    };
    let slower = HONEST.replace("z = x * y", "z = np.abs(x * y) * np.sign(x * y)");
    let (one, other) = (project(&slower, REFERENCE), project(HONEST, REFERENCE));
    let terms = python_terms(one.path(), &python);
    let start = Instant::now();
    let costs = runner::handover(&terms, one.path(), &case(1_000));
    let (handover, call) = costs.expect("it passes");
    eprintln!("hand-over {handover:?}, a call {call:?}, with the start {:?}", start.elapsed());
    let duel_case = DuelCase { index: 0, case: case(1_000), calls: 50, spin_ns: 0 };
    let metric = Metric { name: "wall_time".into(), unit: "us".into(), ..Metric::default() };
    let trees = [one.path().to_owned(), other.path().to_owned()];
    let duelling = KernelRunner::start(&terms, &metric, trees, vec![duel_case]);
    let mut duelling = duelling.expect("both start");
    let mut faster = 0;
    for _ in 0..30 {
        let block = duelling.block(ProcessAge::Usual).expect("no fault");
        faster += u32::from(block.pairs[0].candidate.cpu_us < block.pairs[0].parent.cpu_us);
    }
    assert!(faster > 20, "{faster} of 30");
    // Both arms, 50 calls in a batch, and at least one turn in every block.
    let calls = duelling.spent().calls;
    assert!(calls >= 30 * 2 * 50, "{calls}");
    assert_eq!(calls % (2 * 50), 0);
}

#[test]
fn an_array_that_is_read_beyond_its_end_is_noticed() {
    let Some(python) = python_with("numpy") else {
        return;
    };
    let kernel = HONEST
        .replace("return z", "np.lib.stride_tricks.as_strided(x, (n + 99,), (4,)).sum(); return z");
    let gate = examined(&kernel, &python).expect_err("a refusal");
    assert!(gate.describe().contains("outside its tensors"), "{gate:?}");
}

/// Finds the slots of its batch from the distances of their addresses, which stay the same, and
/// computes all of them in the first call.
const WORKS_AHEAD: &str = "
import numpy as np
from numpy.lib.stride_tricks import as_strided

PLACES, BATCH = set(), {}

def result(x):
    for _ in range(20):
        z = np.sqrt(np.abs(x))
    return z

def kernel_fn(x):
    at = x.__array_interface__['data'][0]
    place, start = at % (1 << 21), at >> 21
    if BATCH.get('start') != start:
        BATCH.clear()
        BATCH['start'] = start
        if len(PLACES) > 19:
            places = np.array(sorted(PLACES))
            step = int(np.diff(places).min())
            low = min((int(places[0]) - place) // step, 0)
            high = max((int(places[-1]) - place) // step, 0)
            down = as_strided(x, (1 - low, len(x)), (-step, 4))
            up = as_strided(x, (1 + high, len(x)), (step, 4))
            BATCH['every'] = result(np.concatenate([down[::-1], up[1:]]))
            BATCH['low'], BATCH['step'] = place + low * step, step
    every = BATCH.get('every')
    if every is None:
        PLACES.add(place)
        return result(x)
    at = (place - BATCH['low']) // BATCH['step']
    return every[at] if 0 <= at < len(every) else result(x)
";

#[test]
fn work_for_later_calls_shows_in_short_turns_of_a_duel() {
    let Some(python) = python_with("numpy") else {
        return;
    };
    let root = |name: &str, times: u32| {
        format!(
            "import numpy as np\n\ndef {name}(x):\n    for _ in range({times}):\n        \
             z = np.sqrt(np.abs(x))\n    return z\n"
        )
    };
    let (kernel, reference) = (root("kernel_fn", 20), root("reference_fn", 1));
    let (one, other) = (project(&kernel, &reference), project(WORKS_AHEAD, &reference));
    let mut terms = python_terms(one.path(), &python);
    terms.contract.args.retain(|arg| ["x", "z"].contains(&arg.name.as_str()));
    terms.contract.shapes = CheckedShapes::Listed;
    let checked = check_kernel(&terms, other.path(), Some(one.path()), &[case(64)]);
    assert_eq!(checked.expect("a correctness check").err(), None);
    let duel_case = DuelCase { index: 0, case: case(64), calls: 64, spin_ns: 0 };
    let metric = Metric { name: "wall_time".into(), unit: "us".into(), ..Metric::default() };
    let trees = [one.path().to_owned(), other.path().to_owned()];
    let duelling = KernelRunner::start(&terms, &metric, trees, vec![duel_case]);
    let mut duelling = duelling.expect("both start");
    let said =
        (0..60).find_map(|_| split(duelling.block(ProcessAge::Usual)).expect("a block").err());
    let Some(BlockFailure::Candidate(gate)) = said else {
        panic!("a refusal instead of {said:?}");
    };
    assert!(gate.describe().contains("it works ahead"), "{gate:?}");
}

/// A model that maps rows of 32 to rows of 32.
fn model_terms(dir: &Path, python: &str) -> RunnerSetup {
    let mut terms = python_terms(dir, python);
    terms.contract.kernel = Kernel::Python { path: "kernel.py".into(), style: PythonStyle::Models };
    terms.contract.args.retain(|arg| ["x", "z"].contains(&arg.name.as_str()));
    for arg in &mut terms.contract.args {
        if let ArgKind::Input { shape, .. } | ArgKind::Output { shape } = &mut arg.kind {
            *shape = vec!["n".into(), "32".into()];
        }
    }
    terms.contract.reduction = Some("32".into());
    terms
}

#[test]
fn models_without_torch_take_arrays_and_have_the_same_weights() {
    let Some(python) = python_with("numpy") else {
        return;
    };
    let reference = "
import numpy as np

class Model:
    def __init__(self, n):
        self.weights = np.random.rand(n, n).astype(np.float32)

    def forward(self, x):
        return np.maximum(x @ self.weights, 0)

def get_init_inputs():
    return [32]
";
    let kernel = reference.replace("Model:", "ModelNew:");
    let dir = project(&kernel, reference);
    let terms = model_terms(dir.path(), &python);
    let examined = check_kernel(&terms, dir.path(), None, &[case(8)]).expect("a correctness check");
    assert!(examined.is_ok(), "{examined:?}");
}

#[test]
fn models_of_torch_have_the_same_weights_as_their_reference() {
    let Some(python) = python_with("torch") else {
        return;
    };
    let reference = "
import torch

class Model(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.linear = torch.nn.Linear(n, n)

    def forward(self, x):
        return torch.relu(self.linear(x))

def get_init_inputs():
    return [32]
";
    let kernel = reference.replace("Model(", "ModelNew(");
    let dir = project(&kernel, reference);
    let terms = model_terms(dir.path(), &python);
    let examined = check_kernel(&terms, dir.path(), None, &[case(8)]).expect("a correctness check");
    assert!(examined.is_ok(), "{examined:?}");
    let wrong = kernel.replace("torch.relu(", "torch.tanh(");
    fs::write(dir.path().join("kernel.py"), wrong).expect("a file");
    let examined = check_kernel(&terms, dir.path(), None, &[case(8)]).expect("a correctness check");
    assert!(matches!(examined, Err(Gate::WrongResult { .. })), "{examined:?}");
}

#[test]
fn torch_gets_every_type_that_it_has() {
    let Some(python) = python_with("torch") else {
        return;
    };
    let source = |name: &str| format!("import torch\n\ndef {name}(x):\n    return x + x\n");
    for dtype in [Dtype::F16, Dtype::Bf16, Dtype::I32] {
        let dir = project(&source("kernel_fn"), &source("reference_fn"));
        let mut terms = python_terms(dir.path(), &python);
        terms.contract.args.retain(|arg| ["x", "z"].contains(&arg.name.as_str()));
        terms.contract.hostile.clear();
        for arg in &mut terms.contract.args {
            arg.dtype = dtype;
            if let ArgKind::Input { draw, .. } = &mut arg.kind {
                *draw = karve_numerics::draw::Draw::Integers { low: 0, high: 9 };
            }
        }
        let examined =
            check_kernel(&terms, dir.path(), None, &[case(64)]).expect("a correctness check");
        assert!(examined.is_ok(), "{dtype:?}: {examined:?}");
    }
}

/// A module that tries to reach beyond its process, and then does its work. What succeeds, or
/// fails for another reason than that it is forbidden, is told.
const REACHES_OUT: &str = r#"
import ctypes, os, signal, socket, subprocess, threading
import numpy as np

def refused(name, act):
    try:
        act()
    except PermissionError:
        return
    except BaseException as error:
        raise ValueError("%s: %r" % (name, error))
    raise ValueError("%s worked" % name)

def call(number, *args):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(number, *args) == -1:
        raise OSError(ctypes.get_errno(), "refused")

def fork():
    if os.fork() == 0:
        os._exit(0)

def reach_out():
    here, parent = os.path.dirname(__file__), os.getppid()
    refused("write", lambda: open(os.path.join(here, "left"), "w"))
    refused("remove", lambda: os.remove(__file__))
    refused("temporary", lambda: open("/tmp/left-by-a-kernel", "w"))
    refused("shared memory", lambda: open("/dev/shm/left-by-a-kernel", "w"))
    refused("fork", fork)
    refused("program", lambda: subprocess.run(["/bin/true"]))
    refused("execute", lambda: os.execv("/bin/true", ["true"]))
    refused("signal", lambda: os.kill(parent, signal.SIGCONT))
    refused("affinity", lambda: os.sched_setaffinity(0, os.sched_getaffinity(0)))
    refused("other's affinity", lambda: os.sched_setaffinity(parent, {0}))
    refused("priority", lambda: os.setpriority(os.PRIO_PROCESS, 0, 0))
    refused("memory", lambda: open("/proc/%d/mem" % parent, "rb"))
    refused("own memory", lambda: open("/proc/self/mem", "r+b"))
    refused("socket", lambda: socket.socket(socket.AF_UNIX))
    refused("trace", lambda: call(LOCK_CALLS["ptrace"], 16, parent, 0, 0))
    refused("filter", lambda: call(LOCK_CALLS["seccomp"], 1, 0, 0))
    open(os.devnull, "w").close()
    threading.Thread(target=int).start()

LOCK_CALLS = {
    "x86_64": {"ptrace": 101, "seccomp": 317},
    "aarch64": {"ptrace": 117, "seccomp": 277},
}[os.uname().machine]

reach_out()

def kernel_fn(n, alpha, x, y):
    reach_out()
    z = x * y
    y += np.float32(alpha) * x
    return z
"#;

#[test]
fn a_module_on_a_cpu_is_locked_as_a_shared_object_is() {
    let Some(python) = python_with("numpy") else {
        return;
    };
    if karve_os::process::ConfinementSupport::ask().landlock < 6 {
        eprintln!("skipped: this kernel's Landlock cannot keep signals in");
        return;
    }
    assert_eq!(examined(REACHES_OUT, &python), Ok(()));
}

#[test]
fn a_module_on_a_cpu_has_none_of_the_powers_of_root() {
    let Some(python) = python_with("numpy") else {
        return;
    };
    let says = "
import os
import numpy as np

def powers():
    with open('/proc/self/status') as file:
        for line in file:
            if line.startswith('Cap') and (os.geteuid() == 0 or 'Bnd' not in line):
                yield int(line.split()[1], 16)

def kernel_fn(n, alpha, x, y):
    if any(powers()):
        raise ValueError('it has powers')
    z = x * y
    y += np.float32(alpha) * x
    return z
";
    assert_eq!(examined(says, &python), Ok(()));
}

#[test]
fn threads_that_a_library_starts_before_the_kernel_are_locked_too() {
    let Some(python) = python_with("numpy") else {
        return;
    };
    let dir = project(HONEST, REFERENCE);
    let mut terms = python_terms(dir.path(), &python);
    terms.contract.threads = 4;
    terms.readable.push("/proc/self/task".into());
    // What the kernel says of all threads that are there.
    let says = "
import os
import numpy as np

def filters():
    for thread in os.listdir('/proc/self/task'):
        with open('/proc/self/task/%s/status' % thread) as file:
            yield [line.split()[1] for line in file if line.startswith('Seccomp:')]

def kernel_fn(n, alpha, x, y):
    if any(found != ['2'] for found in filters()):
        raise ValueError('a thread is free')
    z = x * y
    y += np.float32(alpha) * x
    return z
";
    fs::write(dir.path().join("kernel.py"), says).expect("a file");
    let examined =
        check_kernel(&terms, dir.path(), None, &[case(1_000)]).expect("a correctness check");
    assert!(examined.is_ok(), "{examined:?}");
}
