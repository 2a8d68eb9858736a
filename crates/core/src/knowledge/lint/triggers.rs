//! What is wrong with triggers: ones that cannot be parsed, use no counter, or never fire.

use super::super::{Entry, EntryKind};
use super::{LintFindings, never};
use crate::profile::Predicate;
use crate::profile::counters::known;

/// What is wrong with the triggers of an entry.
pub(super) fn lint(entry: &Entry, list: &mut LintFindings<'_>) {
    let acts = matches!(entry.kind, EntryKind::Optimization | EntryKind::AntiPattern);
    if acts && entry.triggers.is_empty() && entry.scope.is_everywhere() {
        list.error("it has neither a trigger nor a scope, so it would always be shown");
    }
    for trigger in &entry.triggers {
        match Predicate::parse(trigger) {
            Err(reason) => list.error(format!("the trigger {trigger:?} cannot be read: {reason}")),
            Ok(predicate) => {
                for name in predicate.names() {
                    if known(name).is_none() {
                        let what = format!("{trigger:?} asks for {name}, which is not a counter");
                        list.error(format!("the trigger {what}"));
                    }
                }
                if let Some(why) = never::trigger_error(trigger) {
                    list.error(format!("the trigger {trigger:?} {why}"));
                }
            }
        }
    }
}
