//! Lists the files of `knowledge`, so that a new entry needs no other change, and makes the release
//! binary smaller (docs/decisions/0038).

use std::error::Error;
use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=knowledge");
    let dir = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("knowledge");
    let mut paths = Vec::new();
    for file in fs::read_dir(&dir)? {
        paths.push(file?.path());
    }
    paths.sort();
    let mut list = "&[\n".to_owned();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|end| end == "md")) {
        let id = path.file_stem().unwrap_or_default().to_string_lossy();
        writeln!(list, "({id:?}, include_str!({path:?})),")?;
    }
    list.push_str("]\n");
    fs::write(Path::new(&env::var("OUT_DIR")?).join("catalog.rs"), list)?;
    if is_plain_release() {
        let script = Path::new(&env::var("OUT_DIR")?).join("small.ld");
        fs::write(&script, DISCARD_UNWIND_TABLES)?;
        println!("cargo::rustc-link-arg-bins=-Wl,-T,{}", script.display());
        println!("cargo::rustc-link-arg-bins=-Wl,--no-eh-frame-hdr,--icf=all");
    }
    Ok(())
}

/// A program that aborts on a panic never reads these.
const DISCARD_UNWIND_TABLES: &str = "SECTIONS {
    /DISCARD/ : { *(.eh_frame) *(.eh_frame_hdr) *(.gcc_except_table*) }
} INSERT AFTER .comment;
";

/// Whether this is the release profile (the only one with `opt-level = "z"`; it aborts on a panic),
/// linked by the linker that comes with Rust on this target.
fn is_plain_release() -> bool {
    let is = |name, value: &str| env::var(name).is_ok_and(|found| found == value);
    is("OPT_LEVEL", "z")
        && is("TARGET", "x86_64-unknown-linux-gnu")
        && is("CARGO_ENCODED_RUSTFLAGS", "")
        && env::var_os("RUSTC_LINKER").is_none()
}
