//! Every record as a line of JSON, for programs.

use super::{Screen, out_line};
use karve_core::campaign::{Campaign, Record, Step};

/// Prints each record once it is durable.
#[derive(Debug, Default)]
pub struct JsonLinesScreen;

impl Screen for JsonLinesScreen {
    fn starts(&mut self, _: &Campaign, _: &Step) {}

    fn saw(&mut self, _: &Campaign, record: &Record) {
        if let Ok(line) = serde_json::to_string(record) {
            out_line(&line);
        }
    }
}
