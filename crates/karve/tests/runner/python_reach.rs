//! Modules in Python that reach into the worker that calls them, with no audit before them: they
//! find nothing there that is used, so they gain nothing.

use super::python::{HONEST, REFERENCE, examined, project, python_terms, python_with};
use super::{case, check_kernel};
use karve_core::campaign::ProcessAge;
use karve_core::charter::Metric;
use karve_core::measurement::Gate;
use karve_harness::outcome::split;
use karve_harness::runner::{DuelCase, KernelRunner};

/// Replaces, by every way that Python has, all that belongs to the program that loaded it, with
/// something that raises. Then it does its work.
const BREAKS_ALL: &str = "
import gc
import sys
import types
import numpy as np

def boom(*given, **named):
    raise RuntimeError('the worker runs Python code')

def boom_with_cell():
    cell = boom
    return lambda *given, **named: cell()

BROKEN = {0: boom.__code__, 1: boom_with_cell().__code__}

def break_functions(found):
    broken = 0
    for thing in found:
        if type(thing) is types.FunctionType and thing.__module__ == '__main__':
            code = BROKEN.get(len(thing.__code__.co_freevars))
            if code is not None:
                thing.__code__ = code
                broken += 1
    return broken

def break_all():
    gc.unfreeze()
    broken = break_functions(gc.get_objects())
    for kind in object.__subclasses__() + Exception.__subclasses__():
        if kind.__module__ == '__main__':
            for name in [name for name in vars(kind) if callable(getattr(kind, name))]:
                try:
                    setattr(kind, name, boom)
                except (AttributeError, TypeError):
                    pass
    frame = sys._getframe(1)
    while frame is not None:
        values = frame.f_globals
        if values.get('__name__') == '__main__':
            for name in [name for name in values if not name.startswith('__')]:
                values[name] = boom
        for value in list(frame.f_locals.values()):
            if isinstance(value, dict) and frame.f_globals is not globals():
                value.clear()
        frame = frame.f_back
    vars(sys.modules['__main__']).clear()
    if broken < 5:
        raise ValueError('only %d functions found' % broken)

IS_DONE = []

def kernel_fn(n, alpha, x, y):
    if not IS_DONE:
        IS_DONE.append(True)
        break_all()
    z = x * y
    y += np.float32(alpha) * x
    return z
";

#[test]
fn nothing_of_the_worker_that_python_can_reach_is_used_for_a_call() {
    let Some(python) = python_with("numpy") else {
        return;
    };
    assert_eq!(examined(BREAKS_ALL, &python), Ok(()));
    // What it replaced does not hide a wrong result either.
    let wrong = BREAKS_ALL.replace("return z", "z[3] += 1\n    return z");
    let gate = examined(&wrong, &python).expect_err("a refusal");
    assert!(gate.describe().contains("z:"), "{gate:?}");
}

#[test]
fn a_module_that_breaks_what_describes_its_errors_is_still_refused() {
    let Some(python) = python_with("numpy") else {
        return;
    };
    let raises = BREAKS_ALL.replace("return z", "raise ValueError('too hot')");
    let gate = examined(&raises, &python).expect_err("a refusal");
    assert!(matches!(gate, Gate::WrongResult { .. }), "{gate:?}");
}

#[test]
fn a_module_sees_the_memory_of_its_tensors_and_no_more() {
    let Some(python) = python_with("numpy") else {
        return;
    };
    let looks = "
import gc
import mmap

CALLS = []

def look(x):
    # In the first calls and now and then: looking takes far longer than a call.
    CALLS.append(None)
    if len(CALLS) > 20 and len(CALLS) % 20:
        return
    gc.unfreeze()
    tracked = gc.get_objects()
    for thing in tracked + gc.get_referents(*tracked):
        if isinstance(thing, (memoryview, mmap.mmap)) and memoryview(thing).nbytes > x.nbytes:
            raise ValueError('it sees more')
    if x.base is None or memoryview(x.base).nbytes != x.nbytes:
        raise ValueError('the base of an array shows more')
";
    let kernel = HONEST.replace("return z", "look(x); return z");
    assert_eq!(examined(&format!("{looks}{kernel}"), &python), Ok(()));
}

/// Complains about arrays that are not what every call gets.
const LOOKS_AT_ARRAYS: &str = "
import sys

def kind(x):
    flags = (x.flags.owndata, x.flags.writeable, x.flags.c_contiguous, x.flags.aligned)
    base = (type(x.base), x.base.readonly, x.base.ndim, x.base.format, x.base.nbytes == x.nbytes)
    own = (type(x), x.__sizeof__() - x[:0].__sizeof__(), x.strides, x.ndim, sys.getrefcount(x))
    return own + flags + base

def look(x):
    found = kind(x)
    wanted = (type(x), 0, (4,), 1, found[4], False, True, True, True)
    wanted += (memoryview, False, 1, 'B', True)
    if found != wanted or COUNTS.setdefault('references', found[4]) != found[4]:
        raise ValueError(found)

COUNTS = {}
";

#[test]
fn checked_and_timed_calls_get_the_same_kind_of_arrays() {
    let Some(python) = python_with("numpy") else {
        return;
    };
    let kernel = HONEST.replace("return z", "look(x); look(y); return z");
    let tree = project(&format!("{LOOKS_AT_ARRAYS}{kernel}"), REFERENCE);
    let terms = python_terms(tree.path(), &python);
    let checked = check_kernel(&terms, tree.path(), Some(tree.path()), &[case(1_000)]);
    assert_eq!(checked.expect("a correctness check").err(), None);
    let duel_case = DuelCase { index: 0, case: case(1_000), calls: 20, spin_ns: 0 };
    let trees = [tree.path().to_owned(), tree.path().to_owned()];
    let duelling = KernelRunner::start(&terms, &Metric::default(), trees, vec![duel_case]);
    let mut duelling = duelling.expect("both start");
    for _ in 0..3 {
        let block = split(duelling.block(ProcessAge::Usual)).expect("a block");
        assert!(block.is_ok(), "{block:?}");
    }
}

/// Hangs its code on everything that runs code later: the garbage collector, weak references,
/// finalizers. It keeps arrays over karve's memory, and complains if its code sees the inputs of a
/// call before the call is made.
const WAITS: &str = "
import gc
import weakref
import numpy as np

KEPT, SEEN, EARLY, HOOKS = {}, set(), set(), []
INSIDE = [False]

def hook(*given):
    if not INSIDE[0]:
        EARLY.update(array.tobytes() for array in list(KEPT.values()))

class Late:
    def __init__(self):
        self.own = self

    def __del__(self):
        hook()

def kernel_fn(n, alpha, x, y):
    INSIDE[0] = True
    key = x.tobytes()
    if key in EARLY and key not in SEEN:
        raise ValueError('it ran before the request')
    SEEN.add(key)
    # What it kept of earlier batches is gone.
    KEPT.clear()
    KEPT[x.__array_interface__['data'][0]] = x
    if hook not in gc.callbacks:
        gc.callbacks.append(hook)
        gc.set_threshold(1, 1, 1)
    gc.enable()
    Late()
    HOOKS.append(weakref.ref(y, hook))
    z = x * y
    y += np.float32(alpha) * x
    INSIDE[0] = False
    return z
";

#[test]
fn no_code_of_a_module_runs_between_its_batches() {
    let Some(python) = python_with("numpy") else {
        return;
    };
    let tree = project(WAITS, REFERENCE);
    let terms = python_terms(tree.path(), &python);
    let duel_case = DuelCase { index: 0, case: case(1_000), calls: 1, spin_ns: 0 };
    let trees = [tree.path().to_owned(), tree.path().to_owned()];
    let duelling = KernelRunner::start(&terms, &Metric::default(), trees, vec![duel_case]);
    let mut duelling = duelling.expect("both start");
    for _ in 0..30 {
        let block = split(duelling.block(ProcessAge::Usual)).expect("a block");
        assert!(block.is_ok(), "{block:?}");
    }
}

#[test]
fn results_of_any_layout_are_copied_in_their_order() {
    let Some(python) = python_with("numpy") else {
        return;
    };
    for layout in [
        "np.repeat(z, 2)[::2]",
        "z[::-1].copy()[::-1]",
        "np.stack([z, z], 1)[:, 1]",
        "np.lib.stride_tricks.as_strided(z)",
        "np.frombuffer(b'x' + z.tobytes(), np.float32, z.size, 1)",
        "(z,)",
    ] {
        let kernel = HONEST.replace("return z", &format!("return {layout}"));
        assert_eq!(examined(&kernel, &python), Ok(()), "{layout}");
    }
}

#[test]
fn results_of_another_byte_order_or_structure_are_refused() {
    let Some(python) = python_with("numpy") else {
        return;
    };
    for ending in [
        "return z.astype('>f4')",
        "return z.view([('a', np.float32)])",
        "return z.astype('datetime64[s]')",
        "return z.astype(object)",
    ] {
        let gate = examined(&HONEST.replace("return z", ending), &python).expect_err("a refusal");
        assert!(gate.describe().contains("another type instead of float32"), "{gate:?}");
    }
}

#[test]
fn functions_of_torch_that_were_replaced_are_not_used() {
    let Some(python) = python_with("torch") else {
        return;
    };
    let source = |name: &str| format!("import torch\n\ndef {name}(x):\n    return x + x\n");
    // The second one is a function implemented in C too, which calls Python code.
    for replaced in [
        "torch._C._from_dlpack = lambda memory: None",
        "
class Remembers(dict):
    def __missing__(self, key):
        return None

torch._C._from_dlpack = Remembers().__getitem__",
    ] {
        let kernel = format!("{}\n{replaced}\n", source("kernel_fn"));
        let dir = project(&kernel, &source("reference_fn"));
        let mut terms = python_terms(dir.path(), &python);
        terms.contract.args.retain(|arg| ["x", "z"].contains(&arg.name.as_str()));
        let examined = check_kernel(&terms, dir.path(), None, &[case(64)]);
        let gate = examined.expect("a correctness check").expect_err("a refusal");
        assert!(gate.describe().contains("replaces functions of PyTorch"), "{gate:?}");
    }
}
