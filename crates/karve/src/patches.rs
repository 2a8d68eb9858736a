//! The change of a round, as its artifact has it: pages and screens show the same one.

use karve_harness::store::{self, CampaignDir};
use karve_os::error::Result;

/// A change is shown up to this size.
const PATCH_BYTES_MAX: usize = 1 << 20;

/// Reads a change; of a long one the beginning.
pub fn read_patch(dir: &CampaignDir, hash: &str) -> Result<String> {
    let mut bytes = store::get_artifact(dir, hash)?;
    bytes.truncate(PATCH_BYTES_MAX);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
