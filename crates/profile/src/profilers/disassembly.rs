//! Parses objdump disassembly: which instructions are floating-point arithmetic, how many
//! operations each of them does, and whether they are vectorized.

use super::ProfileParseError;
use super::text::{Lines, NumberedLine};
use std::collections::BTreeMap;

/// Bits of a vector register whose length is not in the code (SVE); the smallest possible.
const SCALABLE_BITS: u32 = 128;
/// Operations of one lane in `a * b + c`.
const FUSED: u32 = 2;

/// What one instruction does in floating point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arithmetic {
    /// Operations of all lanes together.
    pub(super) operations: u32,
    /// Whether it works on several lanes at a time.
    pub(super) in_vectors: bool,
}

/// Whose instructions they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InstructionSet {
    X86,
    Arm64,
}

/// The disassembly of one object.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Disassembly {
    /// Instructions by address; none for one that is not floating-point arithmetic.
    pub(super) at: BTreeMap<u64, Option<Arithmetic>>,
}

/// Parses the disassembly of several objects; a line with this prefix precedes each of them.
pub(super) fn parse(text: &str, part: &str) -> Result<Vec<Disassembly>, ProfileParseError> {
    let mut parts: Vec<Disassembly> = Vec::new();
    let mut architecture = None;
    for (number, line) in Lines::of(text)?.whole {
        if line.starts_with(part) {
            parts.push(Disassembly::default());
            architecture = None;
            continue;
        }
        let Some(last) = parts.last_mut() else {
            continue;
        };
        if let Some((_, format)) = line.split_once("file format ") {
            architecture = Some(named((number, format))?);
        } else if let (Some(of), Some((address, words))) = (architecture, instruction(line)) {
            last.at.insert(address, arithmetic(of, words));
        }
    }
    Ok(parts)
}

/// The architecture of `elf64-x86-64` or `elf64-littleaarch64`.
fn named((number, format): NumberedLine<'_>) -> Result<InstructionSet, ProfileParseError> {
    if format.contains("x86-64") || format.contains("i386") {
        Ok(InstructionSet::X86)
    } else if format.contains("aarch64") {
        Ok(InstructionSet::Arm64)
    } else {
        let format: String = format.chars().take(40).collect();
        let reason = format!("karve does not support the instruction set of {format:?}");
        Err(ProfileParseError::at(number, reason))
    }
}

/// `    1255:\tvmulps (%rcx,%rax,1),%ymm4,%ymm1`: the address, and the instruction.
fn instruction(line: &str) -> Option<(u64, &str)> {
    let (address, words) = line.split_once(":\t")?;
    let address = u64::from_str_radix(address.trim(), 16).ok()?;
    Some((address, words.trim()))
}

fn arithmetic(of: InstructionSet, words: &str) -> Option<Arithmetic> {
    let (mnemonic, operands) = words.split_once(char::is_whitespace)?;
    match (of, mnemonic.starts_with('{')) {
        // `{vex}` is the encoding of the next word.
        (InstructionSet::X86, true) => {
            let (mnemonic, operands) = operands.trim().split_once(char::is_whitespace)?;
            of_x86(mnemonic, operands)
        }
        (InstructionSet::X86, false) => of_x86(mnemonic, operands),
        (InstructionSet::Arm64, _) => of_arm64(mnemonic, operands),
    }
}

/// `vfmadd231ps`: an operation, then whether it is scalar or packed, and the element width.
fn of_x86(mnemonic: &str, operands: &str) -> Option<Arithmetic> {
    const PLAIN: [&str; 15] = [
        "add", "sub", "mul", "div", "min", "max", "sqrt", "rcp", "rsqrt", "rcp14", "rsqrt14",
        "hadd", "hsub", "addsub", "dp",
    ];
    // The x87 unit works on a stack, one value at a time.
    const STACK: [&str; 7] = ["fadd", "fsub", "fsubr", "fmul", "fdiv", "fdivr", "fsqrt"];
    let without = mnemonic.strip_suffix(['p', 's', 'l']);
    if STACK.contains(&mnemonic) || without.is_some_and(|name| STACK.contains(&name)) {
        return Some(one(1));
    }
    let name = mnemonic.strip_prefix('v').unwrap_or(mnemonic);
    let end = name.len().checked_sub(2).filter(|at| name.is_char_boundary(*at))?;
    let (stem, kind) = name.split_at(end);
    let fused = stem
        .strip_prefix("fn")
        .or_else(|| stem.strip_prefix('f'))
        .map(|stem| stem.trim_end_matches(|c: char| c.is_ascii_digit()))
        .is_some_and(|stem| ["madd", "msub", "maddsub", "msubadd"].contains(&stem));
    let each = match (fused, PLAIN.contains(&stem)) {
        (true, _) => FUSED,
        (false, true) => 1,
        (false, false) => return None,
    };
    let bits = match operands {
        _ if operands.contains("zmm") => 512,
        _ if operands.contains("ymm") => 256,
        _ => 128,
    };
    match kind {
        "ss" | "sd" | "sh" => Some(one(each)),
        "ps" => Some(many(each, bits / 32)),
        "pd" => Some(many(each, bits / 64)),
        "ph" => Some(many(each, bits / 16)),
        _ => None,
    }
}

/// `fmla v0.4s, v1.4s, v2.4s`: the first operand gives the number of lanes.
fn of_arm64(mnemonic: &str, operands: &str) -> Option<Arithmetic> {
    const PLAIN: [&str; 16] = [
        "fadd", "fsub", "fmul", "fnmul", "fdiv", "fdivr", "fsubr", "fmax", "fmin", "fmaxnm",
        "fminnm", "fsqrt", "faddp", "fabd", "frecpe", "frsqrte",
    ];
    const BOTH: [&str; 8] = ["fmla", "fmls", "fmad", "fmsb", "fmadd", "fmsub", "fnmadd", "fnmsub"];
    let each = match (BOTH.contains(&mnemonic), PLAIN.contains(&mnemonic)) {
        (true, _) => FUSED,
        (false, true) => 1,
        (false, false) => return None,
    };
    let first = operands.split(',').next()?.trim();
    let Some((register, shape)) = first.split_once('.') else {
        let is_one = first.starts_with(['s', 'd', 'h']);
        return is_one.then(|| one(each));
    };
    let bits_of = |lane: &str| match lane {
        "h" => Some(16),
        "s" => Some(32),
        "d" => Some(64),
        _ => None,
    };
    if register.starts_with('z') {
        let lane = shape.split('/').next().unwrap_or(shape);
        return Some(many(each, SCALABLE_BITS / bits_of(lane)?));
    }
    let digits = shape.trim_end_matches(['h', 's', 'd']);
    bits_of(&shape[digits.len()..])?;
    let lanes = digits.parse().ok().filter(|lanes| (1..=8).contains(lanes))?;
    Some(many(each, lanes))
}

fn one(operations: u32) -> Arithmetic {
    Arithmetic { operations, in_vectors: false }
}

fn many(each: u32, lanes: u32) -> Arithmetic {
    Arithmetic { operations: each * lanes, in_vectors: lanes > 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(of: InstructionSet, words: &str, want: Option<(u32, bool)>) {
        let found = arithmetic(of, words).map(|found| (found.operations, found.in_vectors));
        assert_eq!(found, want, "{words}");
    }

    #[test]
    fn arithmetic_of_x86_is_known_by_its_name_and_its_registers() {
        let check = |words: &str, want| check(InstructionSet::X86, words, want);
        check("addss  %xmm1,%xmm0", Some((1, false)));
        check("mulsd  (%rax),%xmm0", Some((1, false)));
        check("vaddss %xmm3,%xmm0,%xmm0", Some((1, false)));
        check("mulps  %xmm1,%xmm0", Some((4, true)));
        check("vmulps (%rcx,%rax,1),%ymm4,%ymm1", Some((8, true)));
        check("vdivpd %zmm4,%zmm1,%zmm2", Some((8, true)));
        check("vfmadd231ps %ymm4,%ymm1,%ymm2", Some((16, true)));
        check("vfnmadd132sd %xmm4,%xmm1,%xmm2", Some((2, false)));
        check("{evex} vaddps %ymm4,%ymm1,%ymm2", Some((8, true)));
        check("faddp  %st,%st(1)", Some((1, false)));
        check("fmuls  0x10(%rsp)", Some((1, false)));
        for none in [
            "add    $0x20,%rax",
            "imul   %eax,%edx",
            "mulx   %rax,%rdx,%rcx",
            "vmovups (%rdi,%rax,1),%ymm4",
            "vxorps %xmm0,%xmm0,%xmm0",
            "vshufps $0x55,%xmm1,%xmm1,%xmm3",
            "cvtsi2ss %eax,%xmm0",
            "paddd  %xmm1,%xmm0",
            "cs nopw 0x0(%rax,%rax,1)",
            "fld    %st(0)",
            "ret",
            "subs   %é",
        ] {
            check(none, None);
        }
    }

    #[test]
    fn arithmetic_of_arm_is_known_by_its_first_operand() {
        let check = |words: &str, want| check(InstructionSet::Arm64, words, want);
        check("fadd\ts0, s0, s1", Some((1, false)));
        check("fmadd\td0, d1, d2, d0", Some((2, false)));
        check("fmla\tv0.4s, v1.4s, v2.s[0]", Some((8, true)));
        check("fmul\tv0.2d, v1.2d, v2.2d", Some((2, true)));
        check("fmla\tz0.s, p0/m, z1.s, z2.s", Some((8, true)));
        for none in [
            "add\tx0, x0, #0x1",
            "fmov\ts0, #1.0",
            "ldr\tq0, [x1]",
            "fadd\tv0.99s, v1.4s, v2.4s",
            "fadd\tv0.4q, v1.4s, v2.4s",
            "fcvt\td0, s0",
        ] {
            check(none, None);
        }
    }

    #[test]
    fn the_parts_of_a_disassembly_are_told_apart() {
        let text = "part 0\n\nk:     file format elf64-x86-64\n\nDisassembly of section .text:\n\n\
                    0000000000001220 <dot>:\n    1220:\tmov    %rsi,%rcx\n    \
                    1255:\tvmulps (%rcx,%rax,1),%ymm4,%ymm1\npart 1\npart 2\n\
                    l:     file format elf64-littleaarch64\n  40: \tret\n  44:\tfadd\ts0, s0, s1\n";
        let parts = parse(text, "part ").unwrap();
        assert_eq!(parts.len(), 3);
        let at = |part: usize, address: u64| parts[part].at.get(&address).copied();
        assert_eq!(at(0, 0x1220), Some(None));
        assert_eq!(at(0, 0x1255), Some(Some(many(1, 8))));
        assert!(parts[1].at.is_empty());
        assert_eq!(at(2, 0x44), Some(Some(one(1))));
        let other = "part 0\nk:     file format elf32-powerpc\n";
        assert!(parse(other, "part ").is_err_and(|e| e.reason.contains("powerpc")));
    }

    proptest! {
        #[test]
        fn no_text_is_too_much(text in "\\PC{0,200}", mnemonic in "\\PC{0,8}") {
            let _ = parse(&text, "part ");
            let line = format!("part 0\nx: file format elf64-x86-64\n 1:\t{mnemonic} {text}\n");
            let _ = parse(&line, "part ");
            let line = format!("part 0\nx: file format aarch64\n 1:\t{mnemonic} {text}\n");
            let _ = parse(&line, "part ");
        }
    }
}
