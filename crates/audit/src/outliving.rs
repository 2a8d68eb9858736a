//! State that outlives a call: which names functions write and read again, and whether something is
//! cached by the identity or the content of an input.

use super::analyzed::AnalyzedFile;
use super::flow::FunctionFlow;
use super::reading::FileFacts;
use super::{caller_memory, compared, memo, state};
use std::collections::BTreeSet;

impl AnalyzedFile<'_> {
    /// Scans all functions.
    pub(super) fn examine(&self, reading: &mut FileFacts) {
        let written = self.written();
        let flow = |function| {
            let taint = self.taint(function);
            FunctionFlow { file: self, function, taint, written: &written }
        };
        let flows: Vec<FunctionFlow<'_>> = self.functions.iter().map(flow).collect();
        let mut cached = BTreeSet::new();
        for flow in &flows {
            flow.examine_keys(&mut cached, reading);
        }
        memo::examine(self, &flows, &mut cached, reading);
        state::examine(self, &flows, &cached, reading);
        caller_memory::examine(self, &flows, reading);
        if self.declared.is_none() {
            compared::examine(self, &flows, &cached, reading);
        }
        if self.tree.is_exhausted() {
            let what = "too much to analyze; the rest was not read".to_owned();
            reading.note("unaudited", "fuel", 0, what);
        }
    }
}
