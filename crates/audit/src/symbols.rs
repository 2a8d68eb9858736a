//! Symbols that a kernel must not define: those of the C library, and any in inline assembly.

use super::asm_text::assembly;
use super::names::is_listed;
use super::reading::{AsmScope, FileFacts};

impl FileFacts {
    /// Adds the symbols that assembly defines, and registers that show the caller.
    pub(super) fn note_symbols(&mut self, text: &str, scope: AsmScope, line: u32) {
        let code = assembly(text);
        let only = code.trim_matches(['(', ')', ' ', '"', '\n']);
        if is_listed("stack-registers", only) {
            self.note("frames", only, line, format!("the register {only} as a variable"));
        }
        if is_listed("c-library", only) {
            self.note("patching", only, line, format!("another name for {only}"));
        }
        let register = |word: &&str| is_listed("stack-registers", word);
        let mut words = code.split(|c: char| !c.is_ascii_alphanumeric());
        let used = words.find(register).filter(|_| scope == AsmScope::Inline);
        if let Some(register) = used.filter(|register| *register != only) {
            self.note("frames", register, line, format!("assembly with {register}"));
        }
        for statement in code.split(['\n', ';', '"']) {
            let mut words = statement.split([' ', '\t', ',']).filter(|word| !word.is_empty());
            let Some(first) = words.next().map(|word| word.trim_start_matches(['(', '{'])) else {
                continue;
            };
            let label = first.strip_suffix(':').filter(|name| is_listed("c-library", name));
            let directive = is_listed("asm-symbols", first);
            let operand = words.next().unwrap_or_default();
            let of_library = is_listed("c-library", operand);
            if label.is_some() || (directive && (scope == AsmScope::Inline || of_library)) {
                let what = format!("assembly defines a symbol: `{}`", statement.trim());
                self.note("patching", first, line, what);
            }
        }
    }

    /// Adds a function of the C library that the kernel defines.
    pub(super) fn note_definition(&mut self, name: &str, line: u32) {
        if is_listed("c-library", name) {
            self.note("patching", name, line, format!("`{name}` of the C library is defined"));
        }
    }
}
