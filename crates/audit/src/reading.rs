//! What one version of a file contains, before it is compared with the other.

use super::AuditContext;
use super::asm_bytes;
use super::asm_text::assembly;
use super::names::{LanguageFamily, NameContext, NameUse, in_text, is_reference, known, suggests};
use super::tree::excerpt;

use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of Findings in one file; more do not matter.
const MATCHES_MAX: usize = 2_000;
/// Smaller values of a case are too common to mean anything.
const VALUE_MIN: u64 = 16;
/// What a line that comes from elsewhere contains, in lower case, and what that is.
const ORIGINS: [(&str, &str); 19] = [
    ("spdx-license-identifier", "a license header"),
    ("copyright (c)", "a license header"),
    ("copyright 2", "a license header"),
    ("licensed under", "a license header"),
    ("all rights reserved", "a license header"),
    ("copied from", "text of another project"),
    ("adapted from", "text of another project"),
    ("ported from", "text of another project"),
    ("ggml_vec_", "a name of llama.cpp"),
    ("flash_fwd_", "a name of FlashAttention"),
    ("xnn_f32_", "a name of XNNPACK"),
    ("bli_sgemm", "a name of BLIS"),
    ("openblas", "a name of OpenBLAS"),
    ("cutlass::", "a name of CUTLASS"),
    ("eigen::internal", "a name of Eigen"),
    ("dnnl::impl", "a name of oneDNN"),
    ("at::native", "a name of PyTorch"),
    ("ck_tile::", "a name of Composable Kernel"),
    ("mkl_blas", "a name of MKL"),
];

/// A match of a rule at a line. The same key in parent and candidate is the same match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RuleMatch {
    pub(super) rule: &'static str,
    pub(super) key: String,
    pub(super) line: u32,
    pub(super) what: String,
}

/// Where assembly is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AsmScope {
    /// In a function, or beside functions of another language.
    Inline,
    /// In a file of its own.
    File,
}

/// What a file contains.
#[derive(Debug, Default)]
pub(super) struct FileFacts {
    /// The directories between the root of the repository and the file.
    pub(super) folders: usize,
    pub(super) seen: Vec<RuleMatch>,
    /// Launches of kernels.
    pub(super) launches: u32,
    /// Tolerances: the name, its value and its line.
    pub(super) tolerances: Vec<(String, f64, u32)>,
    /// State that the file writes and functions that return it, by the last part of their names.
    pub(super) shared: BTreeSet<String>,
    /// The functions of the file, each with the parameters whose contents it changes and a line.
    pub(super) functions: BTreeMap<String, BTreeMap<String, u32>>,
    /// Names that decide and that the file neither defines nor writes, with a line.
    pub(super) asked: BTreeMap<String, u32>,
    /// Files of the harness, by the names under which they are used.
    pub(super) harness: Vec<String>,
    /// Values of visible cases by parameter, in lower case.
    values: Vec<(String, String)>,
}

impl FileFacts {
    /// An empty one for the campaign.
    pub(super) fn of(scene: &AuditContext<'_>) -> Self {
        let numbers = |value: &String| value.parse::<u64>().is_ok_and(|n| n >= VALUE_MIN);
        let mut values = Vec::new();
        for case in scene.cases {
            let those = case.params.iter().filter(|(_, value)| numbers(value));
            values.extend(those.map(|(name, value)| (name.to_lowercase(), value.clone())));
        }
        values.sort_unstable();
        values.dedup();
        Self { values, harness: scene.harness.to_vec(), ..Self::default() }
    }

    /// Adds a match.
    pub(super) fn note(&mut self, rule: &'static str, key: &str, line: u32, what: String) {
        if self.seen.len() < MATCHES_MAX {
            self.seen.push(RuleMatch { rule, key: key.to_owned(), line, what });
        }
    }

    /// Whether a path that the file names leads out of the repository.
    pub(super) fn is_outside(&self, path: &str) -> bool {
        let mut depth = Some(self.folders);
        for part in path.split('/') {
            depth = match part {
                ".." => depth.and_then(|depth| depth.checked_sub(1)),
                "" | "." => depth,
                _ => depth.map(|depth| depth + 1),
            };
        }
        depth.is_none() || path.starts_with(['/', '~'])
    }

    /// Adds what is known about a name; returns whether it is known at all.
    pub(super) fn note_name(
        &mut self,
        family: LanguageFamily,
        found: NameUse<'_>,
        line: u32,
    ) -> bool {
        let hits = known(family, found);
        for (rule, name) in &hits {
            if !["memo", "hash"].contains(rule) {
                let name = name.trim_start_matches('.');
                let what = if name == found.path {
                    format!("`{name}`")
                } else {
                    format!("`{}`, which is {name}", found.path)
                };
                self.note(rule, found.path, line, what);
            }
        }
        !hits.is_empty()
    }

    /// Adds what a string contains.
    pub(super) fn note_string(&mut self, family: LanguageFamily, text: &str, line: u32) {
        for (rule, name) in in_text(family, NameContext::Text, text) {
            self.note(rule, name, line, format!("the string contains {name}"));
        }
    }

    /// Adds what a piece of assembly contains.
    pub(super) fn note_asm(&mut self, family: LanguageFamily, text: &str, line: u32) {
        for (rule, name) in in_text(family, NameContext::Asm, &assembly(text)) {
            self.note(rule, name, line, format!("assembly with {name}"));
        }
        self.note_asm_bytes(text, line);
        // A label may give a function another name.
        for word in text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
            let found = NameUse { path: word, called: false };
            self.note_name(LanguageFamily::C, found, line);
        }
        self.note("inline-asm", "asm", line, "inline assembly".to_owned());
    }

    /// Adds what assembly reads although it did not set it.
    pub(super) fn note_asm_reads(&mut self, read: Option<String>, line: u32) {
        if let Some(read) = read {
            self.note("static-state", "asm", line, format!("assembly reads {read}"));
        }
    }

    /// Adds a system call that assembly contains as data.
    pub(super) fn note_asm_bytes(&mut self, text: &str, line: u32) {
        if let Some(what) = asm_bytes::hidden_call(text) {
            self.note("raw-syscall", "bytes", line, format!("assembly with {what}"));
        }
    }

    /// Adds lines that come from elsewhere: license headers, and known libraries by name.
    pub(super) fn note_origin(&mut self, text: &str) {
        for (line, number) in text.lines().zip(1..) {
            let lower = line.to_ascii_lowercase();
            let found = ORIGINS.iter().find(|(mark, _)| lower.contains(mark));
            if let Some((mark, what)) = found {
                self.note("foreign-code", mark, number, format!("{what}: {}", excerpt(line)));
            }
        }
    }

    /// Adds a call of the reference or of the harness.
    pub(super) fn note_call(&mut self, name: &str, line: u32) {
        if is_reference(name) {
            self.note("reference-call", name, line, format!("`{name}` is called"));
        }
        if suggests("layout-words", name) && !name.starts_with("_mm") {
            self.note("layout-copy", name, line, format!("`{name}` is called"));
        }
    }

    /// Adds a file that is included or imported, by its path or dotted name.
    pub(super) fn note_import(&mut self, path: &str, line: u32) {
        let last = path.rsplit(['/', '.']).find(|part| !part.is_empty());
        let stem = path.rsplit('/').next().and_then(|file| file.split('.').next());
        let of_harness = [last, stem]
            .into_iter()
            .flatten()
            .any(|name| self.harness.iter().any(|file| file == name));
        if of_harness {
            let what = format!("`{path}` of the harness is used");
            self.note("reference-call", path, line, what);
        }
    }

    /// Adds a number that something is compared with, if it is a value of a case.
    pub(super) fn note_number(&mut self, text: &str, line: u32) {
        let digits = text.trim_end_matches(['u', 'U', 'l', 'L', 'z', 'Z']).replace(['_', '\''], "");
        let digits = digits.trim_end_matches("usize").to_owned();
        let Some((name, _)) = self.values.iter().find(|(_, value)| *value == digits) else {
            return;
        };
        let what = format!("compared with {digits}, which is {name} of a case");
        self.note("shape-constant", &digits, line, what);
    }

    /// Adds a constant that has the name and the value of a case's parameter.
    pub(super) fn note_constant(&mut self, name: &str, value: &str, line: u32) {
        let lower = name.to_lowercase();
        let value = value.trim();
        if self.values.iter().any(|(param, of)| *param == lower && of == value) {
            let what = format!("{name} is fixed to {value}, as in a case");
            self.note("shape-constant", name, line, what);
        }
        self.note_tolerance(name, value, line);
    }

    /// Adds a number that is called a tolerance.
    pub(super) fn note_tolerance(&mut self, name: &str, value: &str, line: u32) {
        if !suggests("tolerance-words", name) {
            return;
        }
        let number = value.trim().trim_end_matches(['f', 'F', 'l', 'L']).replace('_', "");
        if let Ok(number) = number.parse::<f64>()
            && number.is_finite()
        {
            self.tolerances.push((name.to_owned(), number, line));
        }
    }
}
