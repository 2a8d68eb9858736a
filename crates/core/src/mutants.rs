//! Small bugs for a kernel's source, to see how many of them its tests notice.
//!
//! Pure and by lines, for any language with C-like or Python-like expressions. A mutant changes one
//! place. Some mutants do not change what the kernel computes, so a few that survive prove nothing;
//! a suite that misses most of them is weak.

use serde::{Deserialize, Serialize};

mod places;

/// Most mutants that are tried.
pub const MUTANTS_MAX: usize = 12;

/// Most survivors that are named.
const SURVIVORS_MAX: usize = 4;

/// What is wrong with a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MutantKind {
    /// An index at a border is mirrored or taken from the other side instead of clamped.
    Border,
    /// A loop or a condition ends one too early or too late.
    Bound,
    /// Another operator.
    Operator,
    /// Another constant.
    Constant,
    /// A statement is left out.
    Statement,
    /// The operands of an operator are swapped.
    Operands,
}

impl MutantKind {
    /// All of them, those that tests miss most easily first.
    pub const ALL: [Self; 6] = [
        Self::Border,
        Self::Bound,
        Self::Operator,
        Self::Constant,
        Self::Statement,
        Self::Operands,
    ];
}

/// One small bug in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutant {
    /// What is wrong with it.
    pub kind: MutantKind,
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is replaced.
    pub from: String,
    /// By what.
    pub to: String,
    /// Where in the line, in bytes.
    column: usize,
}

impl Mutant {
    /// The text of its file with the bug.
    pub fn apply(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len() + self.to.len());
        for (index, line) in text.split_inclusive('\n').enumerate() {
            let end = self.column + self.from.len();
            if index + 1 == self.line && line.get(self.column..end) == Some(self.from.as_str()) {
                out.push_str(&line[..self.column]);
                out.push_str(&self.to);
                out.push_str(&line[end..]);
            } else {
                out.push_str(line);
            }
        }
        out
    }

    /// The bug in words.
    pub fn describe(&self) -> String {
        let (from, to) = (self.from.trim(), self.to.trim());
        match self.kind {
            MutantKind::Statement => format!("`{from}` left out in line {}", self.line),
            MutantKind::Border if to.len() > from.len() => {
                format!("`{from}` mirrored at the border in line {}", self.line)
            }
            MutantKind::Border
            | MutantKind::Bound
            | MutantKind::Operator
            | MutantKind::Constant
            | MutantKind::Operands => format!("`{from}` became `{to}` in line {}", self.line),
        }
    }
}

/// How many of the planted mutants the tests noticed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestStrength {
    /// Those that the tests noticed.
    pub killed: u32,
    /// Those that could be built and tested in the time there was.
    pub tested: u32,
    /// A few of the others, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub survivors: Vec<String>,
}

impl TestStrength {
    /// Counts one bug, in words, of a file.
    pub fn count(&mut self, bug: &str, file: &str, is_noticed: bool) {
        self.tested += 1;
        match is_noticed {
            true => self.killed += 1,
            false if self.survivors.len() < SURVIVORS_MAX => {
                self.survivors.push(format!("{bug} of {file}"));
            }
            false => {}
        }
    }

    /// Whether the tests miss more than half of the bugs.
    pub fn is_weak(&self) -> bool {
        self.tested > 0 && 2 * self.killed < self.tested
    }

    /// The count in words, with what a low one means.
    pub fn describe(&self) -> String {
        let mutants = if self.tested == 1 { "mutant" } else { "mutants" };
        let count = format!("the tests killed {} of {} {mutants}", self.killed, self.tested);
        match self.is_weak() {
            true => format!("{count}, so a broken kernel may pass them"),
            false => count,
        }
    }
}

/// Every mutant of a file.
pub fn mutants_in(file: &str, text: &str) -> Vec<Mutant> {
    let is_python = file.ends_with(".py");
    let mut all = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if ends_kernel(line) {
            break;
        }
        let code = code_of(line);
        if code.trim().is_empty() {
            continue;
        }
        for place in places::in_line(code, is_python) {
            all.push(Mutant {
                kind: place.kind,
                file: file.to_owned(),
                line: index + 1,
                from: code[place.range.clone()].to_owned(),
                to: place.to,
                column: place.range.start,
            });
        }
    }
    all
}

/// A few mutants: of all kinds in turn, and of each kind from all over the files.
pub fn choose_mutants(all: &[Mutant], max: usize) -> Vec<Mutant> {
    let of_kind = |kind: &MutantKind| -> Vec<&Mutant> {
        let those: Vec<&Mutant> = all.iter().filter(|mutant| mutant.kind == *kind).collect();
        spread(those.len()).into_iter().map(|at| those[at]).collect()
    };
    let by_kind: Vec<Vec<&Mutant>> = MutantKind::ALL.iter().map(of_kind).collect();
    let longest = by_kind.iter().map(Vec::len).max().unwrap_or(0);
    let turns = (0..longest).flat_map(|turn| by_kind.iter().filter_map(move |of| of.get(turn)));
    turns.take(max).map(|mutant| (*mutant).clone()).collect()
}

/// The indices below a length, far from those before: the middle, then the middles of the halves.
fn spread(length: usize) -> Vec<usize> {
    let mut order = Vec::with_capacity(length);
    let mut open = std::collections::VecDeque::from([(0, length)]);
    while let Some((from, to)) = open.pop_front() {
        if from >= to {
            continue;
        }
        let middle = from + (to - from) / 2;
        order.push(middle);
        open.push_back((from, middle));
        open.push_back((middle + 1, to));
    }
    order
}

/// Whether what follows a line is a test or a benchmark in the kernel's own file.
pub fn ends_kernel(line: &str) -> bool {
    line.trim_start().starts_with("#[cfg(test)]") || line.starts_with("if __name__")
}

/// A line without its comment and without what follows a quotation mark; none if it is a directive,
/// an import or a comment.
pub fn code_of(line: &str) -> &str {
    let trimmed = line.trim_start();
    let skipped = ["#", "//", "/*", "* ", "*/", "import ", "from ", "use ", "include", "--", "@"];
    if trimmed == "*" || skipped.iter().any(|start| trimmed.starts_with(start)) {
        return "";
    }
    let line = line.split('"').next().unwrap_or_default();
    line.split("//").next().unwrap_or_default().split(" #").next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLUR: &str = "#include <x>
void blur(const float *in, float *out, int n) {
    for (int i = 0; i < n; ++i) {
        float sum = 0.0f;
        const int at = std::clamp(i + 1, 0, n - 1);
        sum += in[at] * 3;
        out[i] = sum / 9.0f;
    }
}
";

    #[test]
    fn code_next_to_a_string_or_behind_a_star_counts() {
        assert_eq!(
            code_of("    return np.sort(x, kind=\"stable\")"),
            "    return np.sort(x, kind="
        );
        assert_eq!(code_of("    *b = 1.0 / (1.0 + e);"), "    *b = 1.0 / (1.0 + e);");
        for comment in [" * a + b", " */", " *", "\"\"\"a + b", "// a + b", "# a"] {
            assert_eq!(code_of(comment).trim(), "", "{comment}");
        }
    }

    fn check(line: &str, want: &[&str]) {
        let found = mutants_in("k.c", line);
        let texts: Vec<String> = found.iter().map(|mutant| mutant.apply(line)).collect();
        assert_eq!(texts, want, "{line}");
    }

    #[test]
    fn every_kind_of_bug_is_planted_in_a_kernel() {
        let found = mutants_in("blur.cpp", BLUR);
        for kind in MutantKind::ALL {
            assert!(found.iter().any(|mutant| mutant.kind == kind), "{kind:?}");
        }
        for mutant in &found {
            let changed = mutant.apply(BLUR);
            assert_ne!(changed, BLUR, "{}", mutant.describe());
            assert_eq!(changed.lines().count(), BLUR.lines().count());
        }
        let border = found.iter().find(|mutant| mutant.kind == MutantKind::Border).unwrap();
        assert!(border.apply(BLUR).contains("2 * (n - 1) - (i + 1)"), "{}", border.apply(BLUR));
        assert!(border.describe().contains("mirrored at the border in line 5"));
    }

    #[test]
    fn lines_get_the_bugs_that_fit_them() {
        check("y[i] = a;", &[";"]);
        check("if (i <= n) {", &["if (i < n) {"]);
        check("x = min(a, b)", &["x = max(a, b)"]);
        check("s += v;", &["s -= v;", ";"]);
        check("d = hi - lo", &["d = hi + lo", "d = lo - hi"]);
        check("k = 4", &["k = 5"]);
        check("int main(void) // a + b", &[]);
        check("float *p;", &[]);
        check("#define X 3", &[]);
    }

    #[test]
    fn python_statements_become_nothing_and_tests_are_left_alone() {
        let found = mutants_in("k.py", "def f(u):\n    u[0] = v\nif __name__ == 3:\n    x = 1\n");
        let texts: Vec<String> = found.iter().map(|mutant| mutant.to.clone()).collect();
        assert_eq!(texts, ["1", "pass"]);
        assert_eq!(mutants_in("k.rs", "#[cfg(test)]\nmod tests { let a = b + c; }"), []);
    }

    #[test]
    fn a_few_mutants_are_of_all_kinds_and_from_all_over() {
        let all = mutants_in("blur.cpp", &BLUR.repeat(5));
        let few = choose_mutants(&all, 6);
        let kinds: Vec<MutantKind> = few.iter().map(|mutant| mutant.kind).collect();
        assert_eq!(kinds, MutantKind::ALL);
        let many = choose_mutants(&all, 18);
        let lines: std::collections::BTreeSet<usize> =
            many.iter().map(|mutant| mutant.line / 9).collect();
        assert!(lines.len() >= 4, "{lines:?}");
        assert_eq!(choose_mutants(&all, usize::MAX).len(), all.len());
        assert_eq!(spread(5), [2, 1, 4, 0, 3]);
    }

    #[test]
    fn the_strength_counts_and_names_a_few_survivors() {
        let all = mutants_in("blur.cpp", BLUR);
        let mut strength = TestStrength::default();
        assert!(!strength.is_weak());
        for (at, mutant) in all.iter().take(7).enumerate() {
            strength.count(&mutant.describe(), &mutant.file, at == 0);
        }
        let text = "the tests killed 1 of 7 mutants, so a broken kernel may pass them";
        assert_eq!(strength.describe(), text);
        assert_eq!(strength.survivors.len(), SURVIVORS_MAX);
        assert!(strength.is_weak());
        let strong = TestStrength { killed: 1, tested: 2, survivors: Vec::new() };
        assert_eq!(strong.describe(), "the tests killed 1 of 2 mutants");
    }
}
