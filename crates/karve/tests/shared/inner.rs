//! Tests that start another test in a process of its own, which may be killed.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;
use std::{env, fs, thread};

/// Tells a test which another one starts in a process of its own that it was started so, and where
/// to write.
pub(crate) const INNER: &str = "KARVE_TEST_INNER";

/// Ends a process with the test at the latest.
pub(crate) struct Started(pub(crate) Child);

impl Started {
    /// kill -9, and waits for the end.
    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a test of this program, named with its module, alone in its own process with its own
/// leases.
pub(crate) fn start(name: &str, dir: &Path) -> Started {
    let child = Command::new(env::current_exe().unwrap())
        .args(["--exact", name, "--ignored"])
        .env(INNER, dir)
        .env(karve_os::device::lease::DIR, dir.join("leases"))
        .spawn();
    Started(child.unwrap())
}

/// Waits for something that another process does, for a minute at most.
pub(crate) fn wait_until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..6_000 {
        if holds() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("{what} does not come true");
}

/// Whether a process lives; a zombie does not.
pub(crate) fn lives(pid: &str) -> bool {
    fs::read_to_string(format!("/proc/{}/stat", pid.trim()))
        .is_ok_and(|stat| !stat.rsplit_once(')').unwrap().1.starts_with(" Z"))
}
