//! The instruction mix of generated code, from the text of a disassembler or an assembler.

use std::collections::BTreeMap;

/// Instructions that are named.
const NAMED_MAX: usize = 12;
/// Lines that are read.
const LINES_MAX: usize = 200_000;

/// How often the most frequent instructions occur, in one line; none if the text has no code.
pub fn instruction_mix(text: &str) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for name in text.lines().take(LINES_MAX).filter_map(instruction) {
        *counts.entry(name).or_default() += 1;
    }
    let total: usize = counts.values().sum();
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
    let named = counts.iter().take(NAMED_MAX).map(|(name, count)| format!("{name} {count}"));
    let named: Vec<String> = named.collect();
    (total > 0).then(|| format!("{total} instructions, most often {}", named.join(", ")))
}

/// The instruction of a line: `  4010:\tvfmadd231ps %ymm0,…` or, in assembly, `\tv_mfma_f32 …`.
fn instruction(line: &str) -> Option<&str> {
    let code = match line.split_once(":\t") {
        Some((address, code)) if is_address(address) => code,
        _ if line.starts_with('\t') && !line.trim_start().starts_with(['.', '#', '/', ';']) => line,
        _ => return None,
    };
    let name = code.split_whitespace().next()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "._".contains(c);
    (name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(plain)).then_some(name)
}

fn is_address(text: &str) -> bool {
    let text = text.trim();
    !text.is_empty() && text.chars().all(|c| c.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_of_disassemblers_and_of_assembly_are_counted() {
        let code = "\nkernel.o:     file format elf64\n\n0000 <f>:\n    0:\tvfmadd231ps %ymm0\n    \
                    6:\tvfmadd231ps %ymm1\n    c:\tret\n";
        let want = "3 instructions, most often vfmadd231ps 2, ret 1";
        assert_eq!(instruction_mix(code).as_deref(), Some(want));
        let gpu = "\t.globl f\nf:\n\tv_mfma_f32_32x32 a[0:15]\n\ts_waitcnt 0\n";
        assert!(instruction_mix(gpu).unwrap().starts_with("2 instructions, most often s_waitcnt"));
        assert_eq!(instruction_mix("no code here"), None);
    }
}
