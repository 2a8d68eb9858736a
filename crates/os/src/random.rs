//! Unpredictable numbers, from the operating system.

use crate::error::{CommandError, Result};
use std::fs;
use std::sync::OnceLock;

/// An unpredictable seed.
pub fn fresh_seed() -> Result<u64> {
    // Programs often read a seed as a signed 32-bit number.
    Ok(secret()? & 0x7fff_ffff)
}

/// An unpredictable number.
pub fn secret() -> Result<u64> {
    let mut bytes = [0; 8];
    random_source().and_then(|mut file| std::io::Read::read_exact(&mut file, &mut bytes)).map_err(
        |error| CommandError::environment("cannot read the system's random source").cause(error),
    )?;
    Ok(u64::from_le_bytes(bytes))
}

/// The system's random source, opened once.
fn random_source() -> std::io::Result<&'static fs::File> {
    static SOURCE: OnceLock<fs::File> = OnceLock::new();
    if let Some(source) = SOURCE.get() {
        return Ok(source);
    }
    let opened = fs::File::open("/dev/urandom")?;
    Ok(SOURCE.get_or_init(|| opened))
}
