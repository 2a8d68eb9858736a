//! The mutation check: a bug is planted in the kernel, and the tests must catch it.
//!
//! A harness that does not exercise the editable files would pass any candidate. So karve replaces
//! operators of the kernel with others in a scratch worktree, builds, and requires the test to
//! fail. A single site may be dead code, so all uses of an operator are replaced at once; if that
//! does not build, each half of them is tried separately. One caught bug is enough. How strong the
//! tests are is another question: then small bugs of several kinds are planted one by one, as long
//! as the time for that lasts, and those that the tests notice are counted.

use super::fit_cases;
use karve_core::campaign::PlantedBug;
use karve_core::charter::Charter;
use karve_core::measurement::Gate;
use karve_core::mutants::{
    MUTANTS_MAX, Mutant, TestStrength, choose_mutants, code_of, ends_kernel, mutants_in,
};
use karve_harness::commands::{CommandVariant, Harness};
use karve_harness::git::{Oid, Repo};
use karve_harness::outcome::split;
use karve_harness::project_file;
use karve_harness::worktrees::Worktrees;
use karve_numerics::case::Case;
use karve_os::error::{Result, WithContext};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Most bugs that are planted.
const PLANTED_MAX: usize = 24;

/// Mutants that are built at most to find some that count.
const MUTANTS_TRIED_MAX: usize = 96;
/// As long as no mutant counts, the time for them is this many times as long.
const NONE_COUNTS_FACTOR: u32 = 6;
/// A test on a mutated kernel may take this many times as long as on the unchanged one.
const LIMIT_FACTOR: u32 = 20;
/// The limit is at least this long.
const LIMIT_MIN: Duration = Duration::from_secs(10);
/// Characters of a message that are kept.
const DETAIL_CHARS: usize = 400;

/// One operator that can be replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
struct MutationSite {
    file: String,
    line: usize,
    column: usize,
    from: &'static str,
    to: &'static str,
}

/// Operators and their replacements, the most effective first. Spaces or operands are required
/// around those that have other meanings elsewhere.
const SWAPS: [(&str, &str); 11] = [
    ("+=", "-="),
    ("*=", "+="),
    (" * ", " + "),
    (" + ", " - "),
    ("*", "+"),
    ("+", "-"),
    (" - ", " + "),
    (" / ", " * "),
    (" @ ", " + "),
    ("/=", "*="),
    (RETURN, "return -"),
];

/// If a kernel consists only of calls, its return value can still be changed.
const RETURN: &str = "return ";

/// What a mutation check works with.
#[derive(Clone, Copy, Debug)]
pub struct MutationCheck<'a> {
    /// Where the commit is.
    pub repo: &'a Repo,
    /// Where it is checked out.
    pub trees: &'a Worktrees,
    /// What builds and tests it.
    pub harness: &'a Harness,
    /// The cases and the editable files.
    pub charter: &'a Charter,
    /// How long the search for a bug that the tests catch may take, if that is limited.
    pub time_max: Option<Duration>,
    /// How long mutants are planted to see how strong the tests are; not at all if it is zero.
    pub strength_max: Duration,
}

/// The result of a mutation check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MutationResult {
    /// Whether the tests caught a bug.
    pub caught: bool,
    /// Each bug that was planted.
    pub bugs: Vec<PlantedBug>,
    /// How many of them could be built and tested.
    pub tested: u32,
    /// Whether the time was up before all were tried.
    pub time_up: bool,
    /// How many small bugs the tests noticed, if that was counted.
    pub strength: Option<TestStrength>,
}

impl MutationCheck<'_> {
    /// Plants bugs in a commit until the tests catch one.
    pub fn run(self, commit: &str) -> Result<MutationResult> {
        let tree = self.trees.fresh(self.repo, "engagement", commit)?;
        self.trees.use_seed(self.harness, &tree);
        let result = self.search(&tree, commit);
        self.trees.remove(self.repo, &tree)?;
        result
    }

    fn search(self, tree: &Path, commit: &str) -> Result<MutationResult> {
        let Self { harness, charter, .. } = self;
        let mut cases: Vec<Case> =
            charter.visible_cases().iter().map(|index| charter.cases[*index].clone()).collect();
        let start = Instant::now();
        let mut unchanged = None;
        let passed = harness.build(tree).and_then(|()| {
            unchanged = harness.artifacts_digest(tree)?;
            fit_cases(harness, tree, &mut cases)
        });
        let mut result = MutationResult::default();
        if let Err(gate) = split(passed)? {
            result.bugs.push(PlantedBug {
                file: String::new(),
                bug: "none: the unchanged kernel does not pass its own test".into(),
                noticed: false,
                unbuilt: true,
                detail: bounded(&gate.describe()),
            });
            return Ok(result);
        }
        self.trees.keep_seed(harness, tree);
        let whole = Duration::from_secs(charter.limits.command_s);
        let limit = (start.elapsed() * LIMIT_FACTOR).clamp(LIMIT_MIN.min(whole), whole);
        let hasty = harness.clone().with_limit(limit);
        let gate =
            MutantGate { harness: &hasty, tree, cases: &cases, unchanged: unchanged.as_deref() };
        let mut groups = sites(self.repo, commit, &charter.editable)?;
        groups.reverse();
        while let Some(group) = groups.pop() {
            result.time_up = self.time_max.is_some_and(|most| start.elapsed() > most);
            if result.bugs.len() >= PLANTED_MAX || result.time_up {
                break;
            }
            let bug = plant(gate, &group)?;
            let built = !bug.unbuilt;
            result.caught = bug.noticed;
            result.tested += u32::from(built);
            result.bugs.push(bug);
            if result.caught {
                break;
            }
            if !built && group.len() > 1 {
                let (first, second) = group.split_at(group.len() / 2);
                groups.push(second.to_vec());
                groups.push(first.to_vec());
            }
        }
        self.count_mutants(gate, commit, &mut result)?;
        if result.bugs.is_empty() {
            result.bugs.push(PlantedBug {
                file: charter.editable.join(", "),
                bug: "none: the editable files contain no arithmetic to break".into(),
                noticed: false,
                unbuilt: true,
                detail: String::new(),
            });
        }
        Ok(result)
    }
}

impl MutationCheck<'_> {
    /// Plants small bugs one by one while there is time. If nothing was caught before, one that is
    /// noticed now shows that the tests exercise the kernel.
    fn count_mutants(
        self,
        gate: MutantGate<'_>,
        commit: &str,
        result: &mut MutationResult,
    ) -> Result<()> {
        // Under a contract karve judges the results itself.
        let is_due = self.charter.contract.is_none() || !result.caught;
        if self.strength_max.is_zero() || !is_due {
            return Ok(());
        }
        let globs = project_file::glob_set(&self.charter.editable)?;
        let files = self.repo.read_matching(&Oid::named(commit)?, &globs)?;
        let texts = files
            .into_iter()
            .filter_map(|(file, bytes)| Some((file, String::from_utf8(bytes).ok()?)));
        let all: Vec<Mutant> = texts.flat_map(|(file, text)| mutants_in(&file, &text)).collect();
        let mut strength = TestStrength::default();
        let start = Instant::now();
        // Those that do not build, or change nothing of what is built, do not count, so there are
        // more in reserve.
        for (tried, mutant) in choose_mutants(&all, MUTANTS_TRIED_MAX).into_iter().enumerate() {
            let factor = if strength.tested > 0 { 1 } else { NONE_COUNTS_FACTOR };
            let is_over = start.elapsed() > self.strength_max * factor && tried > 0;
            if strength.tested as usize >= MUTANTS_MAX || is_over || gate.harness.stopped() {
                break;
            }
            let path = gate.tree.join(&mutant.file);
            let cannot = || format!("cannot change {}", path.display());
            let text = fs::read_to_string(&path).context(cannot)?;
            fs::write(&path, mutant.apply(&text)).context(cannot)?;
            let tested = gate.tested()?;
            fs::write(&path, text).context(|| format!("cannot restore {}", path.display()))?;
            let Some(said) = tested else {
                continue;
            };
            let (noticed, _) = noticed_and_built(Some(&said));
            strength.count(&mutant.describe(), &mutant.file, noticed);
            if noticed && !result.caught {
                result.caught = true;
                let detail = bounded(&said.describe());
                let (file, bug) = (mutant.file.clone(), mutant.describe());
                result.bugs.push(PlantedBug { file, bug, noticed, unbuilt: false, detail });
            }
        }
        result.strength = (strength.tested > 0).then_some(strength);
        Ok(())
    }
}

/// What builds and tests a mutant, and where.
#[derive(Clone, Copy)]
struct MutantGate<'a> {
    harness: &'a Harness,
    tree: &'a Path,
    cases: &'a [Case],
    /// A digest of what the unchanged tree builds, if that is known.
    unchanged: Option<&'a str>,
}

impl MutantGate<'_> {
    /// What the tests say about a mutant; nothing if it does not build, or builds to the bytes of
    /// the unchanged tree.
    fn tested(self) -> Result<Option<Gate>> {
        let Self { harness, tree, cases, unchanged } = self;
        if split(harness.build(tree))?.is_err()
            || (unchanged.is_some() && harness.artifacts_digest(tree)?.as_deref() == unchanged)
        {
            return Ok(None);
        }
        let tested = harness.test(tree, cases, CommandVariant::Usual);
        Ok(Some(split(tested)?.err().unwrap_or(Gate::Passed)))
    }

    /// What the gate says about the tree, if it does not pass.
    fn failed(self) -> Result<Option<Gate>> {
        let Self { harness, tree, cases, .. } = self;
        let tested =
            harness.build(tree).and_then(|()| harness.test(tree, cases, CommandVariant::Usual));
        Ok(split(tested)?.err())
    }
}

/// Whether the tests noticed a bug, and whether it was built: a bug that does not compile says
/// nothing about the tests.
fn noticed_and_built(gate: Option<&Gate>) -> (bool, bool) {
    match gate {
        Some(Gate::WrongResult { .. } | Gate::TimedOut { .. }) => (true, true),
        Some(Gate::BuildFailed { .. }) => (false, false),
        Some(
            Gate::OutOfScope { .. }
            | Gate::SlowerElsewhere { .. }
            | Gate::Dishonest { .. }
            | Gate::Passed,
        )
        | None => (false, true),
    }
}

/// Plants one bug at all these sites.
fn plant(place: MutantGate<'_>, group: &[MutationSite]) -> Result<PlantedBug> {
    let mut originals: Vec<(PathBuf, String)> = Vec::new();
    // From the end of a file to its start, so that columns stay valid.
    for site in group.iter().rev() {
        let path = place.tree.join(&site.file);
        let cannot = || format!("cannot change {}", path.display());
        let text = fs::read_to_string(&path).context(cannot)?;
        fs::write(&path, with_bug(&text, site)).context(cannot)?;
        if !originals.iter().any(|(known, _)| *known == path) {
            originals.push((path, text));
        }
    }
    let gate = place.failed()?;
    for (path, text) in originals {
        fs::write(&path, text).context(|| format!("cannot restore {}", path.display()))?;
    }
    let (noticed, built) = noticed_and_built(gate.as_ref());
    let said = gate.map_or_else(|| "the test still passed".to_owned(), |g| g.describe());
    let mut files: Vec<&str> = group.iter().map(|site| site.file.as_str()).collect();
    files.dedup();
    Ok(PlantedBug {
        file: files.join(", "),
        bug: describe(group),
        noticed,
        unbuilt: !built,
        detail: bounded(&said),
    })
}

fn describe(group: &[MutationSite]) -> String {
    let Some(first) = group.first() else {
        return String::new();
    };
    let change = format!("`{}` became `{}`", first.from.trim(), first.to.trim());
    match group.len() {
        1 => format!("{change} in line {}", first.line + 1),
        n => format!("{change} in {n} places starting at line {}", first.line + 1),
    }
}

fn bounded(text: &str) -> String {
    text.chars().take(DETAIL_CHARS).collect()
}

fn with_bug(text: &str, site: &MutationSite) -> String {
    let mut out = String::with_capacity(text.len());
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if number == site.line {
            out.push_str(&line[..site.column]);
            out.push_str(site.to);
            out.push_str(&line[site.column + site.from.len()..]);
        } else {
            out.push_str(line);
        }
    }
    out
}

/// Sites for planted bugs, one group per operator, the most effective first.
fn sites(repo: &Repo, commit: &str, editable: &[String]) -> Result<Vec<Vec<MutationSite>>> {
    let globs = project_file::glob_set(editable)?;
    let commit = Oid::named(commit)?;
    let mut all: Vec<Vec<MutationSite>> = vec![Vec::new(); SWAPS.len()];
    for (file, bytes) in repo.read_matching(&commit, &globs)? {
        let Ok(text) = String::from_utf8(bytes) else {
            continue;
        };
        sites_in(&file, &text, &mut all);
    }
    all.retain(|group| !group.is_empty());
    Ok(all)
}

fn sites_in(file: &str, text: &str, all: &mut [Vec<MutationSite>]) {
    for (number, line) in text.lines().take_while(|line| !ends_kernel(line)).enumerate() {
        let code = code_of(line);
        let mut taken: Vec<usize> = Vec::new();
        for (kind, (from, to)) in SWAPS.iter().enumerate() {
            for (column, _) in code.match_indices(from) {
                let place = column + from.len() - from.trim_start().len();
                if !taken.contains(&place) && is_arithmetic(code, column, from) {
                    taken.push(place);
                    let file = file.to_owned();
                    all[kind].push(MutationSite { file, line: number, column, from, to });
                }
            }
        }
    }
}

/// Whether an operator is between two operands, and not in `**`, `++`, `->` or `a *p`.
fn is_arithmetic(code: &str, column: usize, from: &str) -> bool {
    let before = code[..column].trim_end();
    let after = code[column + from.len()..].trim_start();
    let bare = from.trim() == from && !from.ends_with('=');
    // `float *A` declares, `2 *A` multiplies: a bare star needs the same space on both sides.
    let spaced = |side: Option<char>| side.is_some_and(char::is_whitespace);
    let uneven = bare
        && spaced(code[..column].chars().last())
            != spaced(code[column + from.len()..].chars().next());
    let operand = |c: char| c.is_alphanumeric() || c == '_';
    if from == RETURN {
        return before.is_empty() && after.starts_with(|c: char| operand(c) || c == '(');
    }
    before.ends_with(|c: char| operand(c) || c == ')' || c == ']')
        && after.starts_with(|c: char| operand(c) || c == '(')
        && !uneven
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, want: &[&str]) {
        let mut all = vec![Vec::new(); SWAPS.len()];
        sites_in("k.c", line, &mut all);
        let found: Vec<String> =
            all.into_iter().flatten().map(|site| with_bug(line, &site)).collect();
        assert_eq!(found, want, "{line}");
    }

    #[test]
    fn operators_between_operands_are_turned() {
        check("sum += a[i] * b[i];", &["sum -= a[i] * b[i];", "sum += a[i] + b[i];"]);
        check("c[i*N+j] = x;", &["c[i+N+j] = x;", "c[i*N-j] = x;"]);
    }

    #[test]
    fn what_is_made_of_calls_is_turned_where_it_returns() {
        check(
            "    return np.maximum(x @ w, 0)",
            &["    return np.maximum(x + w, 0)", "    return -np.maximum(x @ w, 0)"],
        );
        check("h /= np.sqrt(v)", &["h *= np.sqrt(v)"]);
        check("no_return x;", &[]);
        check("return;", &[]);
    }

    #[test]
    fn pointers_directives_comments_and_imports_are_left_alone() {
        check("void f(const float *A, float **b);", &[]);
        check("#define X (a + b)", &[]);
        check("// a + b", &[]);
        check("from x import y", &[]);
        check("i++;", &[]);
        check("printf(\"a + b\");", &[]);
    }
}
