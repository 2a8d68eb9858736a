//! Commands whose allocator overwrites memory that it hands out and takes back, so that a kernel
//! finds nothing there from an earlier call.

use super::Harness;
use karve_os::error::Result;
use karve_os::random::fresh_seed;

/// The variable with the settings of the C library's allocator.
const TUNABLES: &str = "GLIBC_TUNABLES";

impl Harness {
    /// The same harness with overwritten memory, by a byte that no candidate knows.
    pub fn overwriting_memory(mut self) -> Result<Self> {
        // Neither the byte nor its complement, which fresh memory gets, is zero.
        self.overwrites = u8::try_from(1 + fresh_seed()? % 254).ok();
        Ok(self)
    }

    /// The variable that makes the allocator overwrite memory, after what the project sets.
    pub(super) fn overwriting_variable(&self) -> Option<(&'static str, String)> {
        let byte = self.overwrites?;
        // What a thread caches is not overwritten, so nothing is cached.
        let ours = format!("glibc.malloc.perturb={byte}:glibc.malloc.tcache_count=0");
        let theirs = self.commands.env.get(TUNABLES).filter(|of| !of.is_empty());
        let value = theirs.map_or(ours.clone(), |theirs| format!("{theirs}:{ours}"));
        Some((TUNABLES, value))
    }
}
