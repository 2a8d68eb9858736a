//! The command line: parse, run, show an error once.

use karve::commands::{help, run};
use std::process::ExitCode;

fn main() -> ExitCode {
    match run(&help::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if !error.message.is_empty() {
                karve::ui::note(&error.to_string());
            }
            ExitCode::from(error.kind.exit_code())
        }
    }
}
