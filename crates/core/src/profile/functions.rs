//! The functions of a disassembly, and the loops in them.

use super::instruction_mix;
use serde::Serialize;

/// Functions that are read.
const FUNCTIONS_MAX: usize = 20_000;

/// The generated code of one function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DisassembledFunction {
    /// Its symbol.
    pub name: String,
    /// Its instructions, one per line.
    pub code: String,
    /// How often its most frequent instructions occur.
    pub mix: String,
    /// The shortest loops, as line numbers of `code` from 1: the first and the last line.
    pub loops: Vec<(usize, usize)>,
}

/// The functions of what objdump printed, in order; those without code are left out.
pub fn functions_of(text: &str) -> Vec<DisassembledFunction> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        if let Some(name) = heading(line) {
            if found.len() == FUNCTIONS_MAX {
                break;
            }
            found.push((name.to_owned(), String::new()));
        } else if let Some((_, code)) = found.last_mut().filter(|_| line.contains(":\t")) {
            code.push_str(line.trim_end());
            code.push('\n');
        }
    }
    let found = found.into_iter().filter_map(|(name, code)| {
        let mix = instruction_mix(&code)?;
        Some(DisassembledFunction { loops: loops_of(&code), name, mix, code })
    });
    found.collect()
}

/// `0000000000001139 <product>:`: the name.
fn heading(line: &str) -> Option<&str> {
    let (address, rest) = line.split_once(" <")?;
    let is_address = address.len() >= 8 && address.chars().all(|c| c.is_ascii_hexdigit());
    rest.strip_suffix(">:").filter(|_| is_address)
}

/// Loops without another loop inside: a jump back to a line that no later jump goes back to.
fn loops_of(code: &str) -> Vec<(usize, usize)> {
    let address = |text: &str| u64::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok();
    let at: Vec<Option<u64>> =
        code.lines().map(|line| address(line.split_once(":\t")?.0)).collect();
    let mut loops: Vec<(usize, usize)> = Vec::new();
    for (last, line) in code.lines().enumerate() {
        let words: Vec<&str> =
            line.split_once(":\t").map_or("", |(_, code)| code).split_whitespace().collect();
        let is_jump = words.first().is_some_and(|name| name.starts_with(['j', 'b', 't', 'c']));
        let target = words
            .iter()
            .skip(1)
            .find_map(|word| address(word.rsplit(',').next().unwrap_or(word)).filter(|_| is_jump));
        let first = target.and_then(|target| at.iter().position(|line| *line == Some(target)));
        if let Some(first) = first.filter(|first| *first < last) {
            loops.retain(|(start, _)| *start < first);
            if !loops.iter().any(|(_, end)| *end > first) {
                loops.push((first, last));
            }
        }
    }
    loops.iter().map(|(first, last)| (first + 1, last + 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "\nkernel.so:     file format elf64-x86-64\n\n\
        Disassembly of section .text:\n\n\
        0000000000001000 <product>:\n    1000:\txor    %eax,%eax\n    \
        1002:\tmulss  (%rdi),%xmm0\n    1006:\tadd    $0x4,%rdi\n    \
        100a:\tcmp    %rsi,%rdi\n    100d:\tjne    1002 <product+0x2>\n    100f:\tret\n\n\
        0000000000001010 <empty>:\n";

    #[test]
    fn functions_have_their_code_their_mix_and_their_loops() {
        let found = functions_of(CODE);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].name, "product");
        assert_eq!(found[0].code.lines().count(), 6);
        assert!(found[0].mix.starts_with("6 instructions"), "{}", found[0].mix);
        assert_eq!(found[0].loops, [(2, 5)]);
        assert!(functions_of("no code").is_empty());
    }
}
