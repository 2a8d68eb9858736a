//! The command line: parse, run, show an error once.

use karve::commands::{help, run};
use karve::ui;
use std::process::ExitCode;

fn main() -> ExitCode {
    match run(&help::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if !error.message.is_empty() {
                if help::asks_json() {
                    ui::out_json_error(&error);
                }
                ui::note(&error.to_string());
            }
            ExitCode::from(error.kind.exit_code())
        }
    }
}
