//! What the user asked for with Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// Whether the user wants to stop: once, after the current step; twice, immediately.
#[derive(Clone, Debug, Default)]
pub struct StopFlag(Arc<AtomicU8>);

impl StopFlag {
    /// A flag that is not raised.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks to stop; the second time, to stop immediately. May be called in a signal handler.
    pub fn request(&self) {
        // The error means that the maximum is already reached, which is just as good.
        let _ = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_add(1));
    }

    /// Whether to stop after the current step.
    pub fn finish_step(&self) -> bool {
        self.0.load(Ordering::SeqCst) >= 1
    }

    /// Whether to stop immediately.
    pub fn at_once(&self) -> bool {
        self.0.load(Ordering::SeqCst) >= 2
    }
}
