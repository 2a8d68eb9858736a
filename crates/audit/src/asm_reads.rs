//! Assembly that takes a value from where it did not put one: a register that nothing wrote, or an
//! output that no instruction sets. What an earlier call left there is state.

use super::asm_text::{assembly, strings_of};
use std::collections::BTreeSet;

/// Statements of one piece of assembly that are read.
const STATEMENTS_MAX: usize = 4_096;
/// How instructions begin that read the destination which they change.
const UPDATES: [&str; 32] = [
    "add", "sub", "and", "or", "xor", "inc", "dec", "adc", "sbb", "shl", "shr", "sar", "rol",
    "ror", "not", "neg", "imul", "mul", "div", "max", "min", "padd", "psub", "pand", "por", "pxor",
    "cmov", "xchg", "xadd", "bt", "test", "pmul",
];
/// How instructions begin that read all that they name.
const READS: [&str; 9] =
    ["st", "push", "cmp", "ucom", "com", "ptest", "vptest", "vtest", "kortest"];
/// Instructions that set the four general registers.
const SETS_FOUR: [&str; 8] = ["cpuid", "xgetbv", "mul", "imul", "div", "idiv", "cqto", "cltd"];
/// Registers with a letter of their own in constraints.
const LETTERS: [(&str, char); 6] =
    [("ax", 'a'), ("bx", 'b'), ("cx", 'c'), ("dx", 'd'), ("si", 'S'), ("di", 'D')];

/// What a piece of assembly in C reads although it did not set it.
pub(super) fn in_c(text: &str) -> Option<String> {
    let parts = sections(text);
    let template = assembly(&strings_of(parts.first()?));
    let outputs = operands(parts.get(1).copied().unwrap_or_default());
    let inputs = operands(parts.get(2).copied().unwrap_or_default());
    let all: Vec<&(String, String)> = outputs.iter().chain(&inputs).collect();
    let letters: String = all.iter().map(|(_, constraint)| constraint.as_str()).collect();
    let order = OperandOrder::of(&template);
    let mut registers = Registers::default();
    for (at, (name, constraint)) in outputs.iter().enumerate() {
        let tied =
            inputs.iter().any(|(_, of)| of.trim() == at.to_string() || *of == format!("[{name}]"));
        let plain = constraint.trim_start_matches(['=', '&', '%']);
        let fixed = plain.len() == 1 && plain.starts_with(['a', 'b', 'c', 'd', 'S', 'D', 'A']);
        let memory = plain.starts_with('m');
        let known = tied || memory || (fixed && !template.is_empty());
        if constraint.starts_with('=') && !known {
            registers.outputs.insert(format!("%{at}"));
            if template.trim().is_empty() {
                return Some("an output that no instruction sets".to_owned());
            }
        }
    }
    let of_letter = |register: &str| {
        LETTERS.iter().any(|(name, letter)| *name == register && letters.contains(*letter))
    };
    for statement in template.split(['\n', ';']).take(STATEMENTS_MAX) {
        let statement = with_numbers(statement, &all);
        if let Some(read) = registers.step(&statement, order).filter(|read| !of_letter(read)) {
            return Some(format!("{read}, which nothing set before"));
        }
    }
    None
}

/// The same in Rust.
pub(super) fn in_rust(text: &str) -> Option<String> {
    let template = assembly(&strings_of(text));
    let order = if text.contains("att_syntax") { OperandOrder::Last } else { OperandOrder::First };
    let mut registers = Registers::default();
    let mut given = BTreeSet::new();
    for (at, _) in text.match_indices("(\"") {
        let name = text[at + 2..].split('"').next().unwrap_or_default();
        let Some(register) = canonical(name) else {
            continue;
        };
        let word = text[..at].rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        let mentions = template.matches(name).count();
        if word.ends_with("out")
            && !word.starts_with("in")
            && mentions < 2
            && !is_general(&register)
        {
            return Some(format!("{name}, which no instruction sets"));
        }
        given.insert(register);
    }
    for statement in template.split(['\n', ';', '"']).take(STATEMENTS_MAX) {
        if let Some(read) = registers.step(statement, order).filter(|read| !given.contains(read)) {
            return Some(format!("{read}, which nothing set before"));
        }
    }
    None
}

/// The parts of a statement in parentheses, between its colons.
fn sections(text: &str) -> Vec<&str> {
    let inner = text.trim().strip_prefix('(').unwrap_or(text);
    let (mut parts, mut start, mut depth, mut in_string) = (Vec::new(), 0, 0_i32, false);
    let mut escaped = false;
    for (at, c) in inner.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if in_string => escaped = true,
            '"' => in_string = !in_string,
            _ if in_string => {}
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ':' if depth == 0 => {
                parts.push(&inner[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inner[start..]);
    parts
}

/// The name and the constraint of each operand of a part.
fn operands(part: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = part;
    while let Some(at) = rest.find('"') {
        let before = &rest[..at];
        let name = before.rsplit_once('[').and_then(|(_, name)| name.split_once(']'));
        let name = name.map_or("", |(name, _)| name.trim());
        let Some((constraint, after)) = rest[at + 1..].split_once('"') else {
            break;
        };
        found.push((name.to_owned(), constraint.to_owned()));
        // The expression may have strings of its own only in odd code, which is then misread.
        rest = after;
    }
    found
}

/// A statement with the numbers of operands instead of their names, without modifiers.
fn with_numbers(statement: &str, operands: &[&(String, String)]) -> String {
    let mut text = statement.to_owned();
    for (at, (name, _)) in operands.iter().enumerate().filter(|(_, (name, _))| !name.is_empty()) {
        text = text.replace(&format!("[{name}]"), &at.to_string());
    }
    text
}

/// Where an instruction has its destination.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OperandOrder {
    First,
    Last,
}

impl OperandOrder {
    /// By the registers of a template, or by the processor, on which it will run.
    fn of(template: &str) -> Self {
        let mut words = template.split(|c: char| !(c.is_ascii_alphanumeric() || c == '%'));
        let bare = words.any(|word| canonical(word).is_some());
        if template.contains("%%") || (!bare && cfg!(target_arch = "x86_64")) {
            Self::Last
        } else {
            Self::First
        }
    }
}

/// What was set so far.
#[derive(Default)]
struct Registers {
    set: BTreeSet<String>,
    /// Operands that have no value before.
    outputs: BTreeSet<String>,
}

impl Registers {
    /// Follows one instruction; returns what it reads although nothing set it.
    fn step(&mut self, statement: &str, order: OperandOrder) -> Option<String> {
        let statement = statement.rsplit(": ").next().unwrap_or(statement).trim();
        let (word, rest) = statement.split_once(char::is_whitespace)?;
        if word.starts_with(['.', '/', '#']) {
            return None;
        }
        // Assembly of a GPU: `ld.global.f32 %0, [%1]`.
        let order = if word.contains('.') { OperandOrder::First } else { order };
        let parts = split_operands(rest);
        let target = match order {
            OperandOrder::First => 0,
            OperandOrder::Last => parts.len().saturating_sub(1),
        };
        let named: Vec<Vec<String>> = parts.iter().map(|part| self.named(part, order)).collect();
        let in_memory = |at: usize| parts.get(at).is_some_and(|part| part.contains(['(', '[']));
        let same = named.iter().all(|of| *of == named[0]) && parts.len() > 1;
        let clears = same && ["xor", "sub", "cmpeq"].iter().any(|form| word.contains(form));
        let begins = |forms: &[&str]| forms.iter().any(|form| word.starts_with(form));
        let updates = begins(&["vfm", "vfnm", "fml", "vpdp"])
            || (parts.len() < 3 && begins(&UPDATES))
            || begins(&READS);
        let only_set = !updates && !in_memory(target);
        for (at, registers) in named.iter().enumerate() {
            let read = !(clears || (at == target && only_set));
            let unset = registers.iter().find(|of| !self.set.contains(*of));
            if let Some(unset) = unset.filter(|_| read) {
                return Some(unset.clone());
            }
        }
        if SETS_FOUR.contains(&word) {
            self.set.extend(LETTERS.map(|(name, _)| name.to_owned()));
        }
        self.set.extend(named.into_iter().flatten());
        None
    }

    /// The registers and the unset outputs in an operand.
    fn named(&self, operand: &str, order: OperandOrder) -> Vec<String> {
        let mut found = Vec::new();
        let mut before = ' ';
        let words = operand.split_inclusive(|c: char| !c.is_ascii_alphanumeric());
        for piece in words {
            let word = piece.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            let digits = word.trim_start_matches(|c: char| c.is_ascii_alphabetic());
            let output = format!("%{digits}");
            if before == '%' && self.outputs.contains(&output) && word.len() <= digits.len() + 1 {
                found.push(output);
            } else if order == OperandOrder::First || before == '%' {
                found.extend(canonical(word));
            }
            before = piece.chars().last().unwrap_or(' ');
        }
        found
    }
}

fn split_operands(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_i32);
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

/// One name for each register of processors, whatever part of it is meant; not those of the stack,
/// which have a rule of their own.
pub(super) fn canonical(word: &str) -> Option<String> {
    let word = word.to_ascii_lowercase();
    let number = |start: &str| {
        let digits = word.strip_prefix(start)?.trim_end_matches(['d', 'w', 'b']);
        digits.parse::<u8>().ok().filter(|n| *n < 32)
    };
    for start in ["xmm", "ymm", "zmm", "v", "q"] {
        if let Some(n) = number(start) {
            return Some(format!("vector register {n}"));
        }
    }
    for start in ["mm", "k", "r", "x"] {
        if let Some(n) = number(start) {
            return Some(format!("{start}{n}"));
        }
    }
    let legacy = word.trim_start_matches(['r', 'e']);
    LETTERS.iter().find(|(name, _)| *name == legacy).map(|(name, _)| (*name).to_owned())
}

fn is_general(register: &str) -> bool {
    LETTERS.iter().any(|(name, _)| *name == register)
}

#[cfg(test)]
mod tests {
    use super::{in_c, in_rust};

    #[test]
    fn values_that_nothing_set_are_found() {
        for text in [
            r#"("movq %%xmm15, %0" : "=r"(v))"#,
            r#"("vmovdqu %%ymm14, %0" : "=m"(v))"#,
            r#"("movq %%xmm15, %[out]" : [out]"=r"(v) : : "xmm15")"#,
            r#"("" : "=x"(v))"#,
            r#"("" : "=a"(v))"#,
            r#"("" : "=@ccc"(v))"#,
            r#"("movq %0, %1" : "=x"(v), "=r"(w))"#,
            r#"("kmovq %%k7, %0\n\tinc %0" : "=r"(v))"#,
            r#"("mov %%r15, %0" : "=r"(v))"#,
            r#"("add $0, %%r14; mov %%r14, %0" : "=r"(v))"#,
            r#"("mov %%rbx, %0" : "=r"(v))"#,
            r#"("mov %0, x28" : "=r"(v))"#,
            r#"("mov.s %%xmm15, %0" : "=r"(v))"#,
        ] {
            assert!(in_c(text).is_some(), "{text}");
        }
        for text in [
            r#"asm!("movq {}, xmm15", out(reg) v)"#,
            r#"asm!("", out("xmm15") v)"#,
            r#"core::arch::asm!("mov {0}, r15", out(reg) v)"#,
        ] {
            assert!(in_rust(text).is_some(), "{text}");
        }
    }

    #[test]
    fn values_that_the_assembly_makes_are_not() {
        for text in [
            r#"("" : "+r"(x))"#,
            r#"("" : : "r"(p) : "memory")"#,
            r#"("" : "=r"(x) : "0"(x))"#,
            r#"("addl %2, %0" : "=r"(r) : "0"(n), "r"(m))"#,
            r#"("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(1))"#,
            r#"("mov %%rbx, %1; cpuid; xchg %%rbx, %1" : "=a"(a), "=r"(b) : "b"(0))"#,
            r#"("vmovups (%1), %%ymm0\n\tvmulps %%ymm0, %%ymm0, %%ymm1\n\tvmovups %%ymm1, (%0)"
                : : "r"(out), "r"(in) : "ymm0", "ymm1", "memory")"#,
            r#"("vxorps %%ymm2, %%ymm2, %%ymm2\n\tvfmadd231ps (%0), %%ymm2, %%ymm2" : : "r"(p))"#,
            r#"("1: subq $1, %0\n\tjnz 1b" : "+r"(n))"#,
            r#"("popcnt %1, %0" : "=r"(c) : "r"(x))"#,
            r#"("ldr q0, [%0]\n fmul v1.4s, v0.4s, v0.4s\n str q1, [%1]" : : "r"(a), "r"(b))"#,
            r#"("bsf %1, %0" : "=r"(c) : "r"(x))"#,
            r#"("prefetcht0 (%0)" :: "r"(p))"#,
            r#"("ld.global.nc.f32 %0, [%1];" : "=f"(v) : "l"(p))"#,
        ] {
            assert_eq!(in_c(text), None, "{text}");
        }
        for text in [
            r#"asm!("vmovups ymm0, [{0}]", "vaddps ymm0, ymm0, ymm0", in(reg) p, out("ymm0") _)"#,
            r#"asm!("add {0}, {1}", inout(reg) a, in(reg) b)"#,
            r#"asm!("mul {0}", in(reg) b, inout("rax") a, out("rdx") hi)"#,
        ] {
            assert_eq!(in_rust(text), None, "{text}");
        }
    }
}
