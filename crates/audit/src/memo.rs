//! Results that are used again: saved state that holds what an earlier call made of its inputs, and
//! a branch on saved state that hands it out.
//!
//! ```text
//! if (key == last_key) return saved;     given where state decides
//! if (!have) saved = f(x);  return saved;  made where state decides
//! static float saved = f(x);               made once
//! ```
//!
//! State that every call sets again before it asks is scratch, and scratch is fine.

use super::analyzed::AnalyzedFile;
use super::data_flow::DataFlow;
use super::flow::FunctionFlow;
use super::reading::FileFacts;
use std::collections::BTreeSet;

/// Reports the state that holds results, and adds it to what is `cached`.
pub(super) fn examine(
    file: &AnalyzedFile<'_>,
    flows: &[FunctionFlow<'_>],
    cached: &mut BTreeSet<String>,
    reading: &mut FileFacts,
) {
    // What is keyed on an identity or a sample is reported as that.
    let keyed = cached.clone();
    let flows: Vec<DataFlow<'_>> = flows.iter().map(DataFlow::of).collect();
    let (mut made, mut made_where_decided) = (BTreeSet::new(), BTreeSet::new());
    for flow in &flows {
        for (name, node) in flow.made() {
            if flow.is_decided(node) {
                made_where_decided.insert(name.clone());
            }
            made.insert(name);
        }
    }
    for flow in &flows {
        for (name, node) in flow.given() {
            let again = made.contains(&name) && flow.is_decided(node);
            let is_known = keyed.contains(&name);
            if !is_known && (again || made_where_decided.contains(&name)) {
                let what =
                    format!("`{}` is the result of an earlier call", file.tree.excerpt(node));
                reading.note("result-memo", &name, file.tree.line(node), what);
                cached.insert(name);
            }
        }
        for (state, value) in &flow.flow.function.once {
            let Some(name) = flow.flow.outside(*state).filter(|_| flow.depends(*value)) else {
                continue;
            };
            let what = format!("{name} is made of an input, once: `{}`", file.tree.excerpt(*value));
            reading.note("result-memo", &name, file.tree.line(*value), what);
            cached.insert(name);
        }
    }
}
