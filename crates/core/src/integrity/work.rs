//! Whether counted work proves a gain: each call of the candidate does as much as every other call
//! of its kind, and no less than vector instructions explain.
//!
//! A cache is cheap from the second call on, however it is keyed; a kernel that does its work needs
//! the same instructions and memory accesses in every call. So calls are compared with each other,
//! call by call under callgrind, and only then with those of the incumbent. Whatever is not clear
//! proves nothing: the candidate stays unproven.

use super::{AuditFinding, AuditMode, AuditRule};
use serde::{Deserialize, Serialize};

/// The most kinds of calls in one run.
const KINDS_MAX: usize = 16;
/// Calls of the incumbent whose instructions differ by less than this are of one kind.
const KIND_WITHIN: f64 = 0.01;
/// The fewest calls of a kind that show whether a call depends on earlier ones.
const CALLS_MIN: u32 = 3;
/// The cheapest call of a kind must have this share of the dearest one's work.
const EQUAL_SHARE: f64 = 0.9;
/// The same where nothing else is doubted: only what is clearly less counts against a candidate.
const UNEQUAL_SHARE: f64 = 0.8;
/// The share of a gain that the difference between equal calls must explain to count against it.
const EXPLAINED_SHARE: f64 = 0.5;
/// How far equal calls of an honest kernel may be apart, as a share of the dearest: those of the
/// incumbent are not quite equal either.
const CALLS_APART: f64 = 0.05;
/// Instructions that a first call may have more than the others: it looks up the symbols of its
/// libraries, and the allocator sets itself up.
const FIRST_CALL_EXTRA: u64 = 10_000;
/// The share of the work that calls of one kind must have if a reading is about one of them.
const ONE_KIND_SHARE: f64 = 0.9;
/// How many times fewer instructions and accesses a call may have: 16 lanes, and loops unrolled.
const FEWER_MAX: f64 = 32.0;
/// The share of what the calls save that the whole program must save: work that only moved to
/// another place is not saved.
const SAVED_SHARE: f64 = 0.5;
/// Instructions of one thread in a second at most: 8 in a cycle, at 6 GHz.
const INSTRUCTIONS_PER_S_MAX: f64 = 5e10;

/// What the audit may find in a candidate whose work is counted. Everything else could also tell a
/// candidate that it is being counted, or does work that is not counted.
const COUNTABLE_RULES: [&str; 8] = [
    "static-state",
    "weight-cache",
    "static-buffer",
    "layout-copy",
    "fused-launch",
    "precision",
    "shape-constant",
    "foreign-code",
];

/// Words of a source that can choose another path while work is counted: the tool names itself, and
/// its processor has fewer features.
const PATH_WORDS: [&str; 17] = [
    "cpuid",
    "cpu_supports",
    "cpu_init",
    "cpu_model",
    "target_clones",
    "ifunc",
    "feature_detected",
    "getauxval",
    "hwcap",
    "xgetbv",
    "cpuinfo",
    "cpu_features",
    "grind",
    "multiversion",
    EMULATED[0],
    EMULATED[1],
    EMULATED[2],
];

/// Types that the tool computes in other precision than the processor.
const EMULATED: [&str; 3] = ["long double", "__float80", "_float64x"];

/// The cost of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallCost {
    /// Instructions.
    pub instructions: u64,
    /// Reads and writes of memory.
    pub accesses: u64,
}

/// One run of a benchmark under callgrind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CountedRun {
    /// The cost of each call of the kernel, in order.
    pub calls: Vec<CallCost>,
    /// Instructions of the whole program.
    pub instructions: u64,
}

/// Calls that cost the incumbent the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallKind {
    /// How many there are.
    pub calls: u32,
    /// The first of them in the incumbent.
    pub parent: CallCost,
    /// The least that one of them costs the candidate.
    pub least: CallCost,
    /// The most.
    pub most: CallCost,
}

/// The work of incumbent and candidate in one run of the benchmark.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaseWork {
    /// Index of the case in the charter; the first one, if the run has all.
    pub case: usize,
    /// Calls of incumbent and candidate.
    pub calls: [u32; 2],
    /// Calls of the incumbent in a second run, if the candidate had fewer than in the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<u32>,
    /// Instructions of their whole programs.
    pub instructions: [u64; 2],
    /// The calls by kind.
    pub kinds: Vec<CallKind>,
}

/// What was counted before a keep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "work", rename_all = "snake_case")]
pub enum WorkCounts {
    /// Every case.
    Counted {
        /// Case by case.
        cases: Vec<CaseWork>,
    },
    /// Nothing.
    NotCounted {
        /// Why, and what to do about it.
        why: String,
    },
    /// The incumbent's, but the candidate's cannot be.
    Evaded {
        /// Why.
        why: String,
    },
}

impl WorkCounts {
    /// Equal calls of which one does less than another, if that difference explains much of the
    /// candidate's gain, `ratio`.
    pub fn unequal_calls(&self, ratio: f64) -> Option<String> {
        let cases = match self {
            Self::Counted { cases } => &cases[..],
            Self::NotCounted { .. } => &[],
            Self::Evaded { why } => {
                return Some(format!("the incumbent's work can be counted, its own cannot: {why}"));
            }
        };
        let mut kinds = cases.iter().flat_map(|case| &case.kinds);
        let CallKind { least, most, .. } = kinds.find(|kind| kind.is_unequal(ratio))?;
        Some(format!(
            "of equal calls, one has {} instructions and another {}",
            most.instructions, least.instructions
        ))
    }
}

impl WorkCounts {
    /// Calls of incumbent and candidate, if the candidate is called so much less often that this
    /// explains much of its gain, `ratio`, and the incumbent is called equally often in every run:
    /// who can skip the loop around itself is not faster.
    pub fn skipped_calls(&self, ratio: f64) -> Option<[u32; 2]> {
        let Self::Counted { cases } = self else {
            return None;
        };
        let skips = |work: &&CaseWork| {
            let [parent, candidate] = work.calls.map(f64::from);
            work.again == Some(work.calls[0]) && explains(1.0 - candidate / parent, ratio)
        };
        cases.iter().find(skips).map(|work| work.calls)
    }

    /// How often a run calls the kernel on a case, if both arms do it equally often, and nearly all
    /// of the work is in calls of one kind. With a benchmark that calls until some time has passed
    /// these are too few, as counting is slow.
    pub fn calls_of(&self, case: usize) -> Option<f64> {
        let Self::Counted { cases } = self else {
            return None;
        };
        let work = cases.iter().find(|work| work.case == case)?;
        let total = |kind: &CallKind| u64::from(kind.calls) * kind.parent.instructions;
        let most = work.kinds.iter().max_by_key(|kind| total(kind))?;
        let all: u64 = work.kinds.iter().map(total).sum();
        let alone = total(most) as f64 >= ONE_KIND_SHARE * all as f64;
        (alone && work.calls[0] == work.calls[1]).then_some(f64::from(most.calls))
    }
}

impl CallCost {
    /// Whether this is at least a share of another cost.
    fn reaches(self, share: f64, other: Self) -> bool {
        let enough = |own: u64, other: u64| own as f64 >= share * other as f64;
        enough(self.instructions, other.instructions) && enough(self.accesses, other.accesses)
    }

    fn min(self, other: Self) -> Self {
        Self {
            instructions: self.instructions.min(other.instructions),
            accesses: self.accesses.min(other.accesses),
        }
    }

    fn max(self, other: Self) -> Self {
        Self {
            instructions: self.instructions.max(other.instructions),
            accesses: self.accesses.max(other.accesses),
        }
    }
}

impl CaseWork {
    /// Compares two runs with the same inputs. The calls are matched by their number.
    pub fn of(case: usize, parent: &CountedRun, candidate: &CountedRun) -> Self {
        let mut kinds: Vec<CallKind> = Vec::new();
        for (old, new) in parent.calls.iter().zip(&candidate.calls) {
            let is_same = |kind: &CallKind| {
                let (a, b) = (kind.parent.instructions as f64, old.instructions as f64);
                (a - b).abs() <= KIND_WITHIN * a.max(b)
            };
            match kinds.iter().position(is_same) {
                Some(at) => {
                    let kind = &mut kinds[at];
                    kind.calls += 1;
                    kind.least = kind.least.min(*new);
                    kind.most = kind.most.max(*new);
                }
                // One more than allowed is refused later.
                None if kinds.len() > KINDS_MAX => {}
                None => kinds.push(CallKind { calls: 1, parent: *old, least: *new, most: *new }),
            }
        }
        let n = |run: &CountedRun| u32::try_from(run.calls.len()).unwrap_or(u32::MAX);
        Self {
            case,
            calls: [n(parent), n(candidate)],
            again: None,
            instructions: [parent.instructions, candidate.instructions],
            kinds,
        }
    }

    /// Whether the incumbent must be counted again: fewer calls say something only if it always has
    /// as many.
    pub fn needs_second_count(&self) -> bool {
        self.calls[1] < self.calls[0]
    }

    /// Why these counts do not show that the candidate did the work.
    fn objection(&self, call_s: Option<f64>) -> Option<String> {
        let [parent, candidate] = self.calls;
        if parent != candidate {
            return Some(format!(
                "the kernel is called {parent} times in the incumbent and {candidate} times in \
                 the candidate, so that their calls cannot be compared"
            ));
        }
        if self.kinds.len() > KINDS_MAX {
            return Some(format!("there are more than {KINDS_MAX} kinds of calls"));
        }
        let repeated = || self.kinds.iter().filter(|kind| kind.calls >= CALLS_MIN);
        if repeated().next().is_none() {
            return Some(format!("no kind of call is repeated {CALLS_MIN} times"));
        }
        let dearest = repeated().fold(CallCost::default(), |most, kind| most.max(kind.most));
        self.kinds
            .iter()
            .find_map(|kind| kind.objection(dearest))
            .or_else(|| self.moved())
            .or_else(|| self.too_fast(call_s?))
    }

    /// Work that is no longer in the calls, but still in the program.
    fn moved(&self) -> Option<String> {
        let saved_by = |kind: &CallKind| {
            let saved = kind.parent.instructions as f64 - kind.most.instructions as f64;
            f64::from(kind.calls) * saved
        };
        let in_calls: f64 = self.kinds.iter().map(saved_by).sum();
        let in_all = self.instructions[0] as f64 - self.instructions[1] as f64;
        (in_all < SAVED_SHARE * in_calls).then(|| {
            format!(
                "the calls have {in_calls:.0} instructions less, but the whole program only \
                 {in_all:.0}"
            )
        })
    }

    /// A call that takes less time than its instructions need behaves differently without
    /// callgrind.
    fn too_fast(&self, call_s: f64) -> Option<String> {
        let fewest = self.kinds.iter().map(|kind| kind.least.instructions).min()?;
        let least_s = fewest as f64 / INSTRUCTIONS_PER_S_MAX;
        (call_s < least_s).then(|| {
            format!(
                "{fewest} instructions take at least {least_s:.2e} s, but a call {call_s:.2e} s"
            )
        })
    }
}

impl CallKind {
    /// Whether some of these calls do less than half of the work of others; or less than the
    /// others, which save less than half as much, so that the gain is not that of a table which is
    /// made once: noticeably less, or enough to explain half of a gain of `ratio`.
    fn is_unequal(&self, ratio: f64) -> bool {
        let [parent, least, most] =
            [self.parent, self.least, self.most].map(|cost| cost.instructions as f64);
        let is_cache = least < parent && parent - most < SAVED_SHARE * (parent - least);
        let beyond_setup = self.most.instructions - self.least.instructions > FIRST_CALL_EXTRA;
        let explained = beyond_setup && explains(1.0 - least / most, ratio);
        let noticeably = is_cache && (least < UNEQUAL_SHARE * most || explained);
        self.calls >= CALLS_MIN && (least < most / 2.0 || noticeably)
    }

    /// Why these calls do not show that the candidate did the work; `dearest` is the most that a
    /// repeated call costs it.
    fn objection(&self, dearest: CallCost) -> Option<String> {
        let Self { parent, least, most, .. } = self;
        if self.calls >= CALLS_MIN && !least.reaches(EQUAL_SHARE, *most) {
            return Some(format!(
                "equal calls do not do equal work: one has {} instructions and {} memory accesses, \
                 another {} and {}",
                most.instructions, most.accesses, least.instructions, least.accesses
            ));
        }
        // Such as the first call of all, which may fill a cache.
        if self.calls < CALLS_MIN {
            return (!dearest.reaches(EQUAL_SHARE, *most)).then(|| {
                format!(
                    "a single call has {} instructions and {} memory accesses, repeated calls \
                     have at most {} and {}",
                    most.instructions, most.accesses, dearest.instructions, dearest.accesses
                )
            });
        }
        (!least.reaches(1.0 / FEWER_MAX, *parent)).then(|| {
            format!(
                "a call has {} instructions and {} memory accesses instead of {} and {}: more \
                 than {FEWER_MAX:.0} times fewer",
                least.instructions, least.accesses, parent.instructions, parent.accesses
            )
        })
    }
}

/// Whether a share of the work that is not done explains much of a gain.
fn explains(share: f64, ratio: f64) -> bool {
    share >= (EXPLAINED_SHARE * (1.0 - 1.0 / ratio)).max(CALLS_APART)
}

/// Why work counts do not prove a gain; `call_s` is the time of a candidate's call on a case, if
/// known.
pub fn objection(counts: &WorkCounts, call_s: &dyn Fn(usize) -> Option<f64>) -> Option<String> {
    match counts {
        WorkCounts::NotCounted { why } | WorkCounts::Evaded { why } => Some(why.clone()),
        WorkCounts::Counted { cases } if cases.is_empty() => Some("no case was counted".into()),
        WorkCounts::Counted { cases } => {
            cases.iter().find_map(|case| case.objection(call_s(case.case)))
        }
    }
}

/// Why counting would show nothing: the candidate could behave differently while it is counted.
/// `sources` are the files that it changed.
pub fn can_notice(findings: &[AuditFinding], rule: &AuditRule, sources: &str) -> Option<String> {
    if rule.mode == AuditMode::Off || !rule.allow.is_empty() {
        let why = "[audit] in karve.toml turns rules off, and a candidate that is not audited can \
                   behave differently while its work is counted";
        return Some(why.to_owned());
    }
    let other = |finding: &&AuditFinding| !COUNTABLE_RULES.contains(&finding.rule.as_str());
    if let Some(found) = findings.iter().find(other) {
        return Some(format!("work is not counted with {}", found.describe()));
    }
    let sources = sources.to_ascii_lowercase();
    let word = PATH_WORDS.iter().find(|word| sources.contains(*word))?;
    Some(format!("the source says {word:?}, and could take another path while it is counted"))
}

/// Why there are no calls to count, by the globs of the editable files: only a compiled function is
/// seen by its name.
pub fn is_interpreted(editable: &[String]) -> Option<String> {
    let in_python = !editable.is_empty() && editable.iter().all(|glob| glob.ends_with(".py"));
    let why = "calls are counted by compiled functions, and Python is interpreted";
    in_python.then(|| why.to_owned())
}

/// Why the counts of a candidate say nothing although it can be counted: it can tell the tool from
/// the processor by a computation, or the processor takes a path that the tool does not have.
/// `sources` are the files that it changed.
pub fn can_tell_by_computing(sources: &str) -> Option<String> {
    let words: Vec<&str> = sources.split_whitespace().collect();
    let sources = words.join(" ").to_ascii_lowercase();
    let emulated = EMULATED.into_iter().find(|word| sources.contains(word));
    let literal = has_long_literal(&sources).then_some("a literal of type long double");
    if let Some(word) = emulated.or(literal) {
        let why = "which has another precision while work is counted";
        return Some(format!("the source says {word:?}, {why}"));
    }
    let chooses = PATH_WORDS.iter().find(|word| sources.contains(*word))?;
    let why = "and instructions of AVX-512 are not counted";
    sources.contains("avx512").then(|| format!("the source says {chooses:?}, {why}"))
}

/// Whether a text has a literal such as `1.0L`, whose type needs no name.
fn has_long_literal(text: &str) -> bool {
    text.match_indices('l').any(|(at, _)| {
        let digits = text[..at].trim_end_matches(|c: char| c.is_ascii_digit());
        digits.ends_with('.') && !text[at + 1..].starts_with(|c: char| c.is_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::integrity::Severity;
    use karve_numerics::stats::DrawRng;

    #[test]
    fn calls_in_python_are_not_counted_and_those_of_a_compiled_function_are() {
        let said = |globs: &[&str]| {
            let globs: Vec<String> = globs.iter().map(|glob| (*glob).to_owned()).collect();
            is_interpreted(&globs).is_some()
        };
        assert!(said(&["src/trigger.py"]) && said(&["a.py", "ops/*.py"]));
        assert!(!said(&["a.py", "fast.c"]) && !said(&["ops/**"]) && !said(&[]));
    }

    fn cost(instructions: u64) -> CallCost {
        CallCost { instructions, accesses: instructions / 4 }
    }

    /// A run with these instructions in its calls, and 100,000 elsewhere.
    fn run(calls: &[u64]) -> CountedRun {
        let calls: Vec<CallCost> = calls.iter().map(|call| cost(*call)).collect();
        let instructions = 100_000 + calls.iter().map(|call| call.instructions).sum::<u64>();
        CountedRun { calls, instructions }
    }

    fn objects(parent: &CountedRun, candidate: &CountedRun) -> Option<String> {
        let cases = vec![CaseWork::of(0, parent, candidate)];
        objection(&WorkCounts::Counted { cases }, &|_| None)
    }

    #[track_caller]
    fn check(parent: &[u64], candidate: &[u64], want: &str) {
        let found = objects(&run(parent), &run(candidate));
        match want {
            "" => assert_eq!(found, None),
            want => assert!(found.as_ref().is_some_and(|f| f.contains(want)), "{found:?}: {want}"),
        }
    }

    #[test]
    fn calls_are_known_if_both_arms_make_as_many_of_one_kind() {
        let calls = |parent: &[u64], candidate: &[u64]| {
            let cases = vec![CaseWork::of(3, &run(parent), &run(candidate))];
            let counts = WorkCounts::Counted { cases };
            assert_eq!(counts.calls_of(2), None);
            counts.calls_of(3)
        };
        assert_eq!(calls(&[24_000; 10], &[3_000; 10]), Some(10.0));
        // A small one for the check, which a reading is not about.
        let mut checked = [24_000; 11];
        checked[0] = 500;
        assert_eq!(calls(&checked, &[3_000; 11]), Some(10.0));
        assert_eq!(calls(&[24_000; 10], &[3_000; 9]), None);
        let two: Vec<u64> = (0..10).map(|i| if i % 2 == 0 { 24_000 } else { 48_000 }).collect();
        assert_eq!(calls(&two, &[3_000; 10]), None);
        assert_eq!(WorkCounts::NotCounted { why: String::new() }.calls_of(3), None);
    }

    #[test]
    fn a_call_does_the_work_if_every_call_does_and_vectors_explain_the_rest() {
        let old = [24_000; 10];
        check(&old, &[24_000; 10], "");
        check(&old, &[3_000; 10], "");
        check(&[25_600; 10], &[800; 10], "");
        check(&old, &[300; 10], "more than 32 times fewer");
        // A table that is filled once, and costs less than a tenth of a call.
        let mut lazy = [3_000; 10];
        lazy[0] = 3_200;
        check(&old, &lazy, "");
    }

    #[test]
    fn a_cache_is_cheap_from_its_second_call_on() {
        let old = [24_000; 10];
        // Keyed by an address.
        let mut memo = [12; 10];
        memo[0] = 24_012;
        check(&old, &memo, "equal calls do not do equal work");
        // Keyed by the whole content, which is compared in every call.
        let mut memo = [5_000; 10];
        memo[0] = 29_000;
        check(&old, &memo, "equal calls do not do equal work");
        // Every third call does the work of three.
        check(&old, &[24_000, 10, 10, 24_000, 10, 10, 24_000, 10, 10, 24_000], "equal calls");
        // Cheap only after many calls.
        let mut late = [24_000; 10];
        late[9] = 12;
        check(&old, &late, "equal calls");
        // Two inputs in turns.
        let two: Vec<u64> = (0..10).map(|i| if i % 2 == 0 { 24_000 } else { 48_000 }).collect();
        let mut memo = [12; 10];
        (memo[0], memo[1]) = (24_012, 48_012);
        check(&two, &memo, "equal calls");
    }

    #[test]
    fn equal_calls_are_unequal_where_one_does_much_less() {
        let unequal_at = |ratio: f64, parent: u64, candidate: &[u64]| {
            let old = vec![parent; candidate.len()];
            let cases = vec![CaseWork::of(0, &run(&old), &run(candidate))];
            WorkCounts::Counted { cases }.unequal_calls(ratio)
        };
        let unequal = |candidate: &[u64]| unequal_at(9.0, 24_000, candidate);
        assert_eq!(unequal(&[3_000; 10]), None);
        assert_eq!(unequal(&[5_000, 3_000, 3_000, 3_000]), None);
        assert!(unequal(&[24_000, 3_000, 3_000]).unwrap().contains("24000 instructions"));
        assert_eq!(unequal(&[24_000, 3_000]), None);
        // A memo of 45% of the work, also of a kernel that is otherwise faster.
        assert!(unequal(&[24_000, 13_200, 13_200, 13_200]).is_some());
        assert!(unequal(&[21_000, 12_000, 12_000, 12_000]).is_some());
        assert!(unequal(&[25_000, 19_000, 19_000, 19_000]).is_some());
        // A table that is made once, calls that differ a little, and gains that are not in
        // instructions.
        assert_eq!(unequal(&[16_000, 12_000, 12_000]), None);
        assert_eq!(unequal(&[23_000, 19_000, 19_000]), None);
        assert_eq!(unequal(&[36_000, 24_000, 24_000]), None);
        // A memo of 15% of the work, which is most of the gain; a part of a larger one; and as
        // much as a first call needs for itself.
        let memo = [240_000, 204_000, 204_000, 204_000];
        assert!(unequal_at(1.17, 240_000, &memo).unwrap().contains("240000 instructions"));
        assert!(unequal_at(1.05, 240_000, &memo).is_some());
        assert_eq!(unequal_at(2.0, 240_000, &memo), None);
        assert_eq!(unequal_at(1.17, 24_000, &[24_000, 20_400, 20_400]), None);
        // Calls that differ, with the gain in all of them, or by as little as the incumbent's do.
        assert_eq!(unequal_at(1.03, 240_000, &[239_000, 229_000, 231_000]), None);
        assert_eq!(unequal_at(1.6, 240_000, &[160_000, 140_000, 150_000]), None);
        assert_eq!(WorkCounts::NotCounted { why: String::new() }.unequal_calls(2.0), None);
        let evaded = WorkCounts::Evaded { why: "no AVX-512".into() }.unequal_calls(2.0);
        assert!(evaded.is_some_and(|why| why.ends_with("its own cannot: no AVX-512")));
        assert_eq!(can_tell_by_computing("double x; long y;"), None);
        for tells in ["static long double one;", "long\n  double x;", "typeof(1.0L) x;", "1.L / 3"]
        {
            assert!(can_tell_by_computing(tells).is_some(), "{tells}");
        }
        for plain in ["long x = 10L;", "a.label", "v.0.len()", "double x = 1.0;"] {
            assert_eq!(can_tell_by_computing(plain), None, "{plain}");
        }
        // A path that only the processor takes.
        let fast = "__attribute__((target(\"avx512f\"))) void fast(void);";
        assert_eq!(can_tell_by_computing(fast), None);
        assert!(can_tell_by_computing(&format!("{fast} __builtin_cpu_supports(n)")).is_some());
        assert_eq!(can_tell_by_computing("target_clones(\"avx2\", \"default\")"), None);
    }

    #[test]
    fn calls_are_skipped_where_the_incumbent_always_makes_more() {
        let skipped = |ratio: f64, candidate: usize, again: Option<u32>| {
            let mut work = CaseWork::of(0, &run(&[24_000; 100]), &run(&vec![24_000; candidate]));
            work.again = again;
            WorkCounts::Counted { cases: vec![work] }.skipped_calls(ratio)
        };
        assert_eq!(skipped(9.0, 10, Some(100)), Some([100, 10]));
        assert_eq!(skipped(1.3, 80, Some(100)), Some([100, 80]));
        // A benchmark that calls until some time has passed, one that was not counted again, and
        // a few calls less that explain little.
        assert_eq!(skipped(9.0, 10, Some(93)), None);
        assert_eq!(skipped(9.0, 10, None), None);
        assert_eq!(skipped(9.0, 80, Some(100)), None);
        assert_eq!(skipped(1.02, 97, Some(100)), None);
        assert_eq!(skipped(2.0, 100, Some(100)), None);
        assert_eq!(skipped(2.0, 150, Some(100)), None);
    }

    #[test]
    fn the_first_call_may_differ_only_if_it_is_not_the_dearest() {
        // The incumbent fills a table in its first call, so nothing else is like that call.
        let mut old = [24_000; 10];
        old[0] = 240_000;
        let mut memo = [2_400; 10];
        memo[0] = 24_000;
        check(&old, &memo, "a single call has 24000 instructions");
        check(&old, &[2_400; 10], "");
        // Kinds of calls that are never repeated show nothing.
        check(
            &[1_000, 2_000, 4_000],
            &[1_000, 2_000, 4_000],
            "no kind of call is repeated 3 times",
        );
        check(&[24_000; 2], &[24_000; 2], "no kind of call is repeated 3 times");
        check(&[], &[], "no kind of call is repeated");
    }

    #[test]
    fn calls_that_cannot_be_matched_prove_nothing() {
        check(&[24_000; 10], &[3_000; 30], "called 10 times in the incumbent and 30 times");
        check(&[24_000; 10], &[3_000; 1], "called 10 times in the incumbent and 1 times");
        let many: Vec<u64> = (0..60).map(|i| 1_000 << (i / 3)).collect();
        check(&many, &many, "more than 16 kinds");
    }

    #[test]
    fn work_that_moved_out_of_the_calls_is_not_saved() {
        let old = run(&[24_000; 10]);
        let mut new = run(&[3_000; 10]);
        assert_eq!(objects(&old, &new), None);
        // It is done before the first call instead.
        new.instructions = old.instructions;
        assert!(objects(&old, &new).unwrap().contains("the whole program only 0"));
    }

    #[test]
    fn accesses_count_like_instructions() {
        let old = run(&[24_000; 10]);
        let mut new = run(&[20_000; 10]);
        for call in &mut new.calls[1..] {
            call.accesses = 3;
        }
        assert!(objects(&old, &new).unwrap().contains("equal calls"));
        new.calls[0].accesses = 3;
        assert!(objects(&old, &new).unwrap().contains("32 times fewer"));
    }

    #[test]
    fn a_call_takes_at_least_the_time_of_its_instructions() {
        let cases = vec![CaseWork::of(0, &run(&[50_000; 5]), &run(&[50_000; 5]))];
        let counted = WorkCounts::Counted { cases };
        assert_eq!(objection(&counted, &|_| Some(2e-6)), None);
        let why = objection(&counted, &|_| Some(1e-8)).unwrap();
        assert!(why.contains("take at least 1.00e-6 s"), "{why}");
    }

    #[test]
    fn without_counts_nothing_is_proven() {
        let none = WorkCounts::NotCounted { why: "install valgrind".into() };
        assert_eq!(objection(&none, &|_| None).as_deref(), Some("install valgrind"));
        assert!(objection(&WorkCounts::Counted { cases: Vec::new() }, &|_| None).is_some());
    }

    /// No memo passes, whatever its costs are, unless even a hit costs as much as a miss.
    #[test]
    fn no_memo_passes_whose_hits_are_cheaper_than_its_misses() {
        let mut draws = DrawRng::new(11);
        let mut below = |n: u64| (draws.next_f64() * n as f64) as u64;
        for _ in 0..5_000 {
            let sizes: Vec<u64> = (0..1 + below(3)).map(|_| 1_000 + below(100_000)).collect();
            let order: Vec<usize> = (0..40).map(|_| below(sizes.len() as u64) as usize).collect();
            let (faster, hit) = (1 + below(8), below(80));
            let mut seen = vec![false; sizes.len()];
            let old: Vec<u64> = order.iter().map(|at| sizes[*at]).collect();
            let new: Vec<u64> = order
                .iter()
                .map(|at| {
                    let miss = sizes[*at] / faster;
                    if std::mem::replace(&mut seen[*at], true) { miss * hit / 100 } else { miss }
                })
                .collect();
            assert!(objects(&run(&old), &run(&new)).is_some(), "{old:?} {new:?}");
        }
    }

    #[test]
    fn what_could_notice_that_it_is_counted_is_not_counted() {
        let finding = |rule: &str| AuditFinding {
            rule: rule.into(),
            severity: Severity::Suspicious,
            bucket: None,
            file: "k.c".into(),
            line: 1,
            what: "s".into(),
        };
        let on = AuditRule::default();
        let notices = |rules: &[&str], rule: &AuditRule, text: &str| {
            let findings: Vec<AuditFinding> = rules.iter().map(|rule| finding(rule)).collect();
            can_notice(&findings, rule, text)
        };
        assert_eq!(notices(&["static-state", "static-buffer"], &on, "double x;"), None);
        for rule in ["timer", "env-read", "inline-asm", "threads", "replay", "call-counter"] {
            assert!(notices(&["static-state", rule], &on, "").unwrap().contains(rule));
        }
        assert!(notices(&[], &on, "if (__builtin_cpu_supports(\"avx512f\"))").is_some());
        assert!(notices(&[], &on, "is_x86_feature_detected!(\"avx2\")").is_some());
        let off = AuditRule { mode: AuditMode::Off, ..AuditRule::default() };
        let allow = AuditRule { allow: vec!["timer".into()], ..AuditRule::default() };
        assert!(notices(&[], &off, "").is_some() && notices(&[], &allow, "").is_some());
    }
}
