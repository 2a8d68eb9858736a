//! How much of a kernel's arithmetic is vectorized, if the processor does not count it: how often
//! each instruction ran (callgrind) times what the instruction does (objdump).

use super::disassembly::{self, Disassembly};
use karve_core::profile::{KernelProfile, ProfileSource};
use karve_harness::commands::{CodeRange, PART};
use std::collections::BTreeMap;

/// The tools that the result comes from.
const TOOL: &str = "callgrind+objdump";
/// The most functions whose code is disassembled.
const PARTS_MAX: usize = 8;
/// The most bytes of code of one function.
const SPAN_MAX: u64 = 1 << 20;
/// The most bytes of an instruction.
const INSTRUCTION_BYTES: u64 = 16;
/// How much of the executed code must be disassembled, in percent.
const COVERED_PCT_MIN: f64 = 50.0;
/// The start of a note that says why there is no value.
pub(super) const NOT_READ: &str = "vector_pct was not read";

/// How often each instruction of a kernel ran.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct KernelCode {
    /// The kernel.
    pub(super) kernel: String,
    /// Its functions, the most executed first.
    pub(super) parts: Vec<FunctionCode>,
    /// How many instructions ran, including those of functions that are not a part.
    pub(super) all: u64,
}

/// The instructions of one function in one object.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct FunctionCode {
    /// The function.
    pub(super) function: String,
    /// The file that contains it.
    pub(super) object: String,
    /// How often each instruction ran, by its address.
    pub(super) counts: BTreeMap<u64, u64>,
}

impl FunctionCode {
    fn ran(&self) -> u64 {
        self.counts.values().fold(0, |sum, n| sum.saturating_add(*n))
    }
}

impl KernelCode {
    /// The code of the most executed functions of a kernel.
    pub(super) fn of(kernel: &str, mut parts: Vec<FunctionCode>) -> Self {
        let all = parts.iter().fold(0, |sum: u64, part| sum.saturating_add(part.ran()));
        let near = |part: &FunctionCode| {
            let (first, last) = (part.counts.keys().next(), part.counts.keys().next_back());
            let (first, last) = (first.copied()?, last.copied()?);
            (last - first <= SPAN_MAX && !part.object.is_empty()).then_some(())
        };
        parts.retain(|part| near(part).is_some());
        parts.sort_by_key(|part| std::cmp::Reverse(part.ran()));
        parts.truncate(PARTS_MAX);
        Self { kernel: kernel.to_owned(), parts, all }
    }

    /// What to disassemble, part by part.
    pub(super) fn ranges(&self) -> Vec<CodeRange> {
        let range = |part: &FunctionCode| CodeRange {
            object: part.object.clone(),
            start: part.counts.keys().next().copied().unwrap_or(0),
            stop: part
                .counts
                .keys()
                .next_back()
                .map_or(0, |last| last.saturating_add(INSTRUCTION_BYTES)),
        };
        self.parts.iter().map(range).collect()
    }

    /// Sets the counter from the disassembly of all parts, or says why not.
    pub(super) fn weigh(&self, text: &str, kernel: &mut KernelProfile) -> Result<(), String> {
        let parts = disassembly::parse(text, PART).map_err(|why| format!("objdump: {why}"))?;
        let (mut seen, mut operations, mut in_vectors) = (0_u64, 0.0, 0.0);
        for (part, code) in self.parts.iter().zip(&parts) {
            seen = seen.saturating_add(weigh_part(part, code, |done, vector| {
                operations += done;
                in_vectors += if vector { done } else { 0.0 };
            }));
        }
        let seen_pct = 100.0 * float(seen) / float(self.all.max(1));
        if seen_pct < COVERED_PCT_MIN {
            return Err(format!(
                "only the code of {seen_pct:.0}% of the instructions could be disassembled"
            ));
        }
        if operations <= 0.0 {
            return Err("no floating-point arithmetic was seen".to_owned());
        }
        let names: Vec<&str> = self.parts.iter().map(|part| part.function.as_str()).collect();
        let quote = format!(
            "{in_vectors} of {operations} floating-point operations are vectorized, by the code of \
             {seen_pct:.0}% of the instructions: {}",
            names.join(", ")
        );
        let value = 100.0 * in_vectors / operations;
        kernel.set("vector_pct", value, ProfileSource::at(TOOL, 0, &quote));
        Ok(())
    }
}

/// Passes the total operations of each arithmetic instruction to `tell`; returns how many
/// instructions of the part are known.
fn weigh_part(part: &FunctionCode, code: &Disassembly, mut tell: impl FnMut(f64, bool)) -> u64 {
    let mut seen = 0_u64;
    for (address, count) in &part.counts {
        let Some(found) = code.at.get(address) else {
            continue;
        };
        seen = seen.saturating_add(*count);
        if let Some(done) = found {
            tell(f64::from(done.operations) * float(*count), done.in_vectors);
        }
    }
    seen
}

#[allow(clippy::cast_precision_loss, reason = "a share of a count does not need more digits")]
fn float(n: u64) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "karve part 0\nk:     file format elf64-x86-64\n    \
        10:\tvmulps (%rcx,%rax,1),%ymm4,%ymm1\n    14:\taddss  %xmm1,%xmm0\n    18:\tret\n";

    fn code(counts: &[(u64, u64)]) -> KernelCode {
        let part = FunctionCode {
            function: "dot".into(),
            object: "/k".into(),
            counts: counts.iter().copied().collect(),
        };
        KernelCode::of("dot", vec![part])
    }

    fn check(counts: &[(u64, u64)], text: &str, want: Result<f64, &str>) {
        let mut kernel = KernelProfile::named("dot");
        match (code(counts).weigh(text, &mut kernel), want) {
            (Ok(()), Ok(want)) => {
                assert_eq!(kernel.value("vector_pct"), Some(want), "{counts:?}");
                assert_eq!(kernel.counters["vector_pct"].source.tool, TOOL);
            }
            (Err(why), Err(want)) => assert!(why.contains(want), "{why}"),
            (found, want) => panic!("{found:?}, not {want:?}"),
        }
    }

    #[test]
    fn each_instruction_counts_as_often_as_it_ran() {
        // Eight lanes once equal one lane eight times.
        check(&[(0x10, 1), (0x14, 8), (0x18, 1)], TEXT, Ok(50.0));
        check(&[(0x10, 3), (0x18, 1)], TEXT, Ok(100.0));
        check(&[(0x14, 1 << 40), (0x18, 1)], TEXT, Ok(0.0));
        check(&[(0x18, 5)], TEXT, Err("no floating-point arithmetic"));
        check(&[(0x14, 1), (0x99, 5)], TEXT, Err("17%"));
        check(&[(0x14, 1)], "", Err("0%"));
        check(&[], TEXT, Err("0%"));
    }

    #[test]
    fn only_few_functions_of_some_size_are_looked_at() {
        let part = |at: u64, count: u64, object: &str| FunctionCode {
            function: format!("f{at}"),
            object: object.into(),
            counts: BTreeMap::from([(at, count), (at + 4, count)]),
        };
        let mut parts: Vec<FunctionCode> = (0..20).map(|n| part(n * 64, n, "/k")).collect();
        let mut wide = part(0, 100, "/k");
        wide.counts.insert(SPAN_MAX + 1, 1);
        parts.extend([wide, part(9, 99, "")]);
        let code = KernelCode::of("all", parts);
        assert_eq!(code.all, 2 * 190 + 201 + 198);
        let ranges = code.ranges();
        assert_eq!(ranges.len(), PARTS_MAX);
        assert_eq!((ranges[0].start, ranges[0].stop), (19 * 64, 19 * 64 + 20));
    }
}
