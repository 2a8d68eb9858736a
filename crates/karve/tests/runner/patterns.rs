//! Kernels that are right on homogeneous inputs only, and their honest counterparts.

use super::python::{project, python_terms, python_with};
use super::{RunnerSetup, built_with, case, check_kernel, terms};
use karve_core::campaign::ProcessAge;
use karve_core::charter::Metric;
use karve_core::measurement::Gate;
use karve_harness::outcome::{BlockFailure, split};
use karve_harness::runner::{DuelCase, KernelRunner};
use karve_numerics::accuracy::AccuracyRuleSet;
use karve_numerics::contract::{Arg, ArgKind, CheckedShapes};
use karve_numerics::draw::Draw;
use karve_numerics::tensor::Dtype;
use std::path::Path;

/// Whether 64 elements, evenly spread, look nominal.
const SAMPLE: &str = r"
#include <math.h>
#include <stdint.h>
#define ROWS 16
static int nominal(int64_t n, const float *x) {
  for (int64_t i = 0; i < 64; i++) {
    float v = fabsf(x[i * (ROWS * n / 64)]);
    if (!(v < 10) || v < 1e-6f) return 0;
  }
  return 1;
}
";

const SOFTMAX: &str = r"
static void careful(int64_t n, const float *x, float *y) {
  for (int64_t r = 0; r < ROWS; r++, x += n, y += n) {
    float most = x[0], sum = 0;
    for (int64_t i = 1; i < n; i++) most = x[i] > most ? x[i] : most;
    for (int64_t i = 0; i < n; i++) sum += y[i] = expf(x[i] - most);
    for (int64_t i = 0; i < n; i++) y[i] /= sum;
  }
}
static void cheap(int64_t n, const float *x, float *y) {
  for (int64_t r = 0; r < ROWS; r++, x += n, y += n) {
    float sum = 0;
    for (int64_t i = 0; i < n; i++) sum += y[i] = expf(x[i]);
    for (int64_t i = 0; i < n; i++) y[i] /= sum;
  }
}
";

const SOFTMAX_REFERENCE: &str = r"
#include <math.h>
#include <stdint.h>
void reference(int64_t n, const double *x, double *y) {
  for (int64_t r = 0; r < 16; r++, x += n, y += n) {
    double most = x[0], sum = 0;
    for (int64_t i = 1; i < n; i++) most = x[i] > most ? x[i] : most;
    for (int64_t i = 0; i < n; i++) sum += y[i] = exp(x[i] - most);
    for (int64_t i = 0; i < n; i++) y[i] /= sum;
  }
}
";

const SUM: &str = r"
static void careful(int64_t n, const float *x, float *y) {
  for (int64_t r = 0; r < ROWS; r++, x += n) {
    float sum = 0, lost = 0;
    for (int64_t i = 0; i < n; i++) {
      float v = x[i] - lost, next = sum + v;
      lost = (next - sum) - v;
      sum = next;
    }
    y[r] = sum;
  }
}
static void cheap(int64_t n, const float *x, float *y) {
  for (int64_t r = 0; r < ROWS; r++, x += n) {
    float sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i];
    y[r] = sum;
  }
}
";

const SUM_REFERENCE: &str = r"
#include <stdint.h>
void reference(int64_t n, const double *x, double *y) {
  for (int64_t r = 0; r < 16; r++, x += n) {
    y[r] = 0;
    for (int64_t i = 0; i < n; i++) y[r] += x[i];
  }
}
";

/// The eight largest of every row, in descending order; the cheap way looks only at those above a
/// threshold that normal numbers suggest.
const TOP: &str = r"
static void insert(float *y, float v) {
  if (v <= y[7]) return;
  int at = 7;
  for (; at > 0 && y[at - 1] < v; at--) y[at] = y[at - 1];
  y[at] = v;
}
static void above(int64_t n, const float *x, float *y, float least) {
  for (int64_t r = 0; r < ROWS; r++, x += n, y += 8) {
    for (int i = 0; i < 8; i++) y[i] = -INFINITY;
    for (int64_t i = 0; i < n; i++) if (x[i] > least) insert(y, x[i]);
  }
}
static void careful(int64_t n, const float *x, float *y) { above(n, x, y, -INFINITY); }
static void cheap(int64_t n, const float *x, float *y) { above(n, x, y, 1.5f); }
";

const TOP_REFERENCE: &str = r"
#include <math.h>
#include <stdint.h>
void reference(int64_t n, const double *x, double *y) {
  for (int64_t r = 0; r < 16; r++, x += n, y += 8) {
    for (int i = 0; i < 8; i++) y[i] = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
      int at = 7;
      if (x[i] <= y[7]) continue;
      for (; at > 0 && y[at - 1] < x[i]; at--) y[at] = y[at - 1];
      y[at] = x[i];
    }
  }
}
";

const CAREFUL: &str = "careful(n, x, y);";
const CHEAP: &str = "cheap(n, x, y);";
const SAMPLED: &str = "if (nominal(n, x)) cheap(n, x, y); else careful(n, x, y);";
const AT_FIRST: &str = "static int calls; if (++calls > 3) cheap(n, x, y); else careful(n, x, y);";

/// One kind of kernel.
struct Task {
    source: &'static str,
    reference: &'static str,
    shape: [&'static str; 2],
    accuracy: AccuracyRuleSet,
}

const SOFTMAXES: Task = Task {
    source: SOFTMAX,
    reference: SOFTMAX_REFERENCE,
    shape: ["16", "n"],
    accuracy: AccuracyRuleSet::Stable,
};

const SUMS: Task = Task {
    source: SUM,
    reference: SUM_REFERENCE,
    shape: ["16", "1"],
    accuracy: AccuracyRuleSet::Compensated,
};

const TOPS: Task = Task {
    source: TOP,
    reference: TOP_REFERENCE,
    shape: ["16", "8"],
    accuracy: AccuracyRuleSet::Default,
};

impl Task {
    fn built(&self, way: &str) -> tempfile::TempDir {
        let entry = format!("void kernel(int64_t n, const float *x, float *y) {{\n{way}\n}}\n");
        built_with(&format!("{SAMPLE}{}{entry}", self.source), self.reference)
    }

    fn terms(&self, mut terms: RunnerSetup) -> RunnerSetup {
        let arg = |name: &str, dtype, kind| Arg { name: name.into(), dtype, kind };
        let draw = Draw::Normal { mean: 0.0, sd: 1.0 };
        let input = ArgKind::Input { shape: vec!["16".into(), "n".into()], draw };
        let output = ArgKind::Output { shape: self.shape.map(str::to_owned).to_vec() };
        let contract = &mut terms.contract;
        contract.args = vec![
            arg("n", Dtype::I64, ArgKind::Scalar { value: "n".into(), fixed: false }),
            arg("x", Dtype::F32, input),
            arg("y", Dtype::F32, output),
        ];
        contract.accuracy = self.accuracy;
        contract.reduction = Some("n".into());
        contract.hostile = Vec::new();
        terms
    }

    /// What the correctness check says of a way to compute it, beside an incumbent if there is one.
    fn examined(&self, way: &str, incumbent: Option<&Path>) -> Result<(), Gate> {
        self.examined_on(way, incumbent, CheckedShapes::Any)
    }

    fn examined_on(
        &self,
        way: &str,
        incumbent: Option<&Path>,
        shapes: CheckedShapes,
    ) -> Result<(), Gate> {
        let dir = self.built(way);
        let mut terms = self.terms(terms(dir.path()));
        terms.contract.shapes = shapes;
        let checked = check_kernel(&terms, dir.path(), incumbent, &[case(2_048), case(1_000)]);
        checked.expect("a correctness check").map(drop)
    }

    #[track_caller]
    fn tells_them_apart(&self) {
        assert_eq!(self.examined(CAREFUL, None), Ok(()));
        for way in [CHEAP, SAMPLED] {
            let gate = self.examined(way, None).expect_err("a refusal");
            assert!(matches!(gate, Gate::WrongResult { .. }), "{way}: {gate:?}");
        }
        let careful = self.built(CAREFUL);
        assert_eq!(self.examined(CAREFUL, Some(careful.path())), Ok(()));
    }
}

#[test]
fn a_softmax_without_its_maximum_is_wrong_also_where_a_sample_looks_nominal() {
    SOFTMAXES.tells_them_apart();
}

#[test]
fn a_sum_without_its_compensation_is_wrong_also_where_a_sample_looks_nominal() {
    SUMS.tells_them_apart();
}

#[test]
fn a_selection_by_thresholds_is_wrong_also_where_a_sample_looks_nominal() {
    TOPS.tells_them_apart();
}

#[test]
fn on_hostile_inputs_a_kernel_is_held_to_the_incumbents_own_error() {
    let sums = Task { accuracy: AccuracyRuleSet::Default, ..SUMS };
    let (plain, careful) = (sums.built(CHEAP), sums.built(CAREFUL));
    assert_eq!(sums.examined(CHEAP, None), Ok(()));
    assert_eq!(sums.examined(CHEAP, Some(plain.path())), Ok(()));
    // It takes several times as long, which other shapes would not allow.
    assert_eq!(sums.examined_on(CAREFUL, Some(plain.path()), CheckedShapes::Listed), Ok(()));
    let gate = sums.examined(CHEAP, Some(careful.path())).expect_err("a refusal");
    assert!(gate.describe().contains("over all hostile inputs"), "{}", gate.describe());
}

/// The first fault in this many blocks of a duel, if there is one.
fn fault(task: &Task, ways: [&str; 2], blocks: usize) -> Option<BlockFailure> {
    let [parent, candidate] = ways.map(|way| task.built(way));
    let terms = task.terms(terms(parent.path()));
    let metric = Metric { name: "wall_time".into(), unit: "us".into(), ..Metric::default() };
    let duel_case = DuelCase { index: 0, case: case(2_048), calls: 4, spin_ns: 0 };
    let trees = [parent.path().to_owned(), candidate.path().to_owned()];
    let mut duel =
        KernelRunner::start(&terms, &metric, trees, vec![duel_case]).expect("both start");
    (0..blocks).find_map(|_| split(duel.block(ProcessAge::Usual)).expect("a block").err())
}

#[test]
fn a_kernel_that_is_careful_only_at_first_is_caught_while_it_is_timed() {
    let plain_rules = Task { accuracy: AccuracyRuleSet::Default, ..SUMS };
    for task in [SUMS, SOFTMAXES, TOPS, plain_rules] {
        assert!(fault(&task, [CAREFUL, CAREFUL], 20).is_none());
        // Only some patterns show the difference, and a few blocks may have none of them.
        let found = fault(&task, [CAREFUL, AT_FIRST], 400).expect("it is caught");
        assert!(matches!(found, BlockFailure::Candidate(Gate::WrongResult { .. })), "{found:?}");
    }
}

const PYTHON_REFERENCE: &str = "
import numpy as np

def reference_fn(n, x):
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)
";

const PYTHON_CAREFUL: &str = "
import numpy as np

def careful(x):
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)

def cheap(x):
    powers = np.exp(x)
    return powers / powers.sum(axis=1, keepdims=True)

def kernel_fn(n, x):
    return careful(x)
";

#[test]
fn the_same_holds_in_python() {
    let Some(python) = python_with("numpy") else {
        return;
    };
    let examined = |way: &str| {
        let kernel = PYTHON_CAREFUL.replace("return careful(x)", way);
        let dir = project(&kernel, PYTHON_REFERENCE);
        let terms = SOFTMAXES.terms(python_terms(dir.path(), &python));
        let checked = check_kernel(&terms, dir.path(), None, &[case(512)]);
        checked.expect("a correctness check").map(drop)
    };
    assert_eq!(examined("return careful(x)"), Ok(()));
    let sampled = "s = np.abs(x.reshape(-1)[:: x.size // 64])
    return cheap(x) if s.max() < 10 and s.min() > 1e-6 else careful(x)";
    for way in ["return cheap(x)", sampled] {
        let gate = examined(way).expect_err("a refusal");
        assert!(matches!(gate, Gate::WrongResult { .. }), "{way}: {gate:?}");
    }
}
