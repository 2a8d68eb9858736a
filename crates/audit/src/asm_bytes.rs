//! Instructions that are written as data: the bytes of a system call in assembly.

/// Directives that emit numbers, and how many bytes each number takes.
const DIRECTIVES: [(&str, usize); 14] = [
    (".byte", 1),
    (".1byte", 1),
    (".db", 1),
    (".word", 2),
    (".short", 2),
    (".value", 2),
    (".hword", 2),
    (".2byte", 2),
    (".long", 4),
    (".int", 4),
    (".4byte", 4),
    (".inst", 4),
    (".quad", 8),
    (".8byte", 8),
];
/// Directives that emit strings.
const STRINGS: [&str; 4] = [".ascii", ".asciz", ".string", ".string8"];
/// The bytes of `syscall`, `sysenter`, `int 0x80`, and `svc #0` on Arm.
const CALLS: [&[u8]; 4] = [&[0x0f, 0x05], &[0x0f, 0x34], &[0xcd, 0x80], &[0x01, 0x00, 0x00, 0xd4]];
/// More bytes of one piece of assembly are not looked at.
const BYTES_MAX: usize = 1 << 16;

/// What is wrong with the data of a piece of assembly, if anything: it contains a system call, or
/// it is computed by the assembler, so that it cannot be read here.
pub(super) fn hidden_call(text: &str) -> Option<&'static str> {
    let mut bytes = Vec::new();
    for statement in statements(text) {
        let (word, rest) = statement.split_once(char::is_whitespace).unwrap_or((&statement, ""));
        let word = word.to_ascii_lowercase();
        if STRINGS.contains(&word.as_str()) {
            bytes.extend(unescaped(rest));
        } else if let Some((_, size)) = DIRECTIVES.iter().find(|(name, _)| *name == word) {
            for number in rest.split(',') {
                let Some(value) = number_of(number) else {
                    if number.contains(['+', '-', '^', '|', '<', '>', '*', '~', '/', '%']) {
                        return Some("computed data");
                    }
                    continue;
                };
                bytes.extend(&value.to_le_bytes()[..*size]);
            }
        }
        bytes.truncate(BYTES_MAX);
    }
    let holds = |call: &&[u8]| bytes.windows(call.len()).any(|window| window == *call);
    CALLS.iter().any(holds).then_some("the bytes of a system call")
}

/// The statements of assembly as it is written in a string, a macro or a file.
fn statements(text: &str) -> Vec<String> {
    let text = text.replace("\\n", "\n").replace("\\t", " ").replace("\\\"", "\u{1}");
    let text = text.replace(['"', '(', ')', '{', '}'], "\n").replace('\u{1}', "\"");
    let parts = text.split(['\n', ';']).map(|part| part.trim().to_owned());
    // A label may stand before a directive.
    let directive = |part: String| match part.find(" .") {
        Some(at) if part[..at].trim_end().ends_with(':') => part[at + 1..].to_owned(),
        _ => part,
    };
    parts.map(directive).filter(|part| part.starts_with('.')).collect()
}

fn number_of(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let text = text.trim_start_matches(['$', '#']);
    let radix = |digits: &str, radix| u64::from_str_radix(digits, radix).ok();
    if let Some(digits) = text.strip_prefix("0x") {
        return radix(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0b") {
        return radix(digits, 2);
    }
    match text.strip_prefix('0').filter(|digits| !digits.is_empty()) {
        Some(digits) => radix(digits, 8),
        None => text.parse().ok(),
    }
}

/// The bytes of a string with escapes: `\x0f`, `\\x0f`, `\017`.
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.trim_matches(['"', ' ']);
    while let Some(first) = rest.chars().next() {
        let after = rest.trim_start_matches('\\');
        let digits = |text: &str, most: usize, radix: u32| {
            text.chars().take(most).take_while(|c| c.is_digit(radix)).count()
        };
        let (length, radix, skip) = match after.strip_prefix('x') {
            _ if first != '\\' => (0, 10, 0),
            Some(hex) => (digits(hex, 2, 16), 16, 1),
            None => (digits(after, 3, 8), 8, 0),
        };
        if length == 0 {
            bytes.push(u8::try_from(first).unwrap_or(0xff));
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let number = &after[skip..skip + length];
        bytes.push(u16::from_str_radix(number, radix).map_or(0, |n| n.to_le_bytes()[0]));
        rest = &after[skip + length..];
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::hidden_call;

    #[test]
    fn a_system_call_is_found_however_its_bytes_are_written() {
        for text in [
            r#"asm volatile(".byte 0x0f,0x05")"#,
            r#"asm(".byte 15, 5" : "=a"(r) : "a"(1))"#,
            r#"asm(".byte 0x0f\n\t.byte 0x05")"#,
            r#"asm(".byte 017" "\n.byte 05")"#,
            r#"asm(".word 0x050f")"#,
            r#"asm("nop; .short 1295")"#,
            r#"asm(".ascii \"\\x0f\\x05\"")"#,
            r#"asm(".ascii \"\\017\\005\"")"#,
            r#"core::arch::asm!(".2byte 0x050f", "nop")"#,
            r#"asm(".quad 0x9090050f90909090")"#,
            r#"asm("1: .byte 0xcd, 0x80")"#,
            r#"asm(".byte 0x0e+1, 4+1")"#,
        ] {
            assert!(hidden_call(text).is_some(), "{text}");
        }
    }

    #[test]
    fn tables_and_instructions_are_not_system_calls() {
        for text in [
            "vaddps %ymm0, %ymm1, %ymm2",
            "table:\n  .long 0x3f800000, 0x40000000\n  .byte 1, 2, 3\n",
            r#"asm volatile("prefetcht0 (%0)" :: "r"(p))"#,
            ".section .rodata\n.string \"text\"\n.align 16",
        ] {
            assert_eq!(hidden_call(text), None, "{text}");
        }
    }
}
