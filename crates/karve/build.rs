//! Lists the files of `knowledge`, so that a new entry needs no other change.

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
    Ok(())
}
