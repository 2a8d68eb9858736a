//! An error of the karve on another machine, as it travels.

use karve_os::error::{CommandError, ErrorKind};
use serde::{Deserialize, Serialize};

/// An error as it travels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireError {
    code: u8,
    message: String,
    causes: Vec<String>,
    hints: Vec<String>,
}

impl From<CommandError> for WireError {
    fn from(error: CommandError) -> Self {
        let CommandError { kind, message, causes, hints } = error;
        Self { code: kind.exit_code(), message, causes, hints }
    }
}

impl WireError {
    /// The error, as one of a host.
    pub fn on(self, host: &str) -> CommandError {
        let kind = ErrorKind::of_exit_code(self.code.into());
        let message = format!("{host}: {}", self.message);
        let mut error = CommandError::new(kind.unwrap_or(ErrorKind::Bug), message);
        error.causes = self.causes;
        error.hints = self.hints;
        error
    }
}
