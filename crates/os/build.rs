//! Compiles the worker for kernels in Python to a shared object, which karve carries as bytes.

use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::{env, io};

fn main() -> Result<(), Box<dyn Error>> {
    let shared = ["src/float_mode.rs", "src/gpu/clock.rs", "src/gpu/cuda.rs", "src/plain_work.rs"];
    for part in ["python_worker"].into_iter().chain(shared) {
        println!("cargo::rerun-if-changed={part}");
    }
    let dir = env::var("CARGO_MANIFEST_DIR")?;
    let target = env::var("TARGET")?;
    let mut rustc = Command::new(env::var("RUSTC")?);
    rustc
        .args(["--edition", "2024", "--crate-name", "karve_python_worker"])
        .args(["--crate-type", "cdylib", "--target", &target, "-D", "warnings"])
        .args(["-C", "opt-level=3", "-C", "panic=abort", "-C", "strip=symbols"])
        .arg("-o")
        .arg(Path::new(&env::var("OUT_DIR")?).join("python_worker.so"))
        .arg(Path::new(&dir).join("python_worker/lib.rs"));
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.arg("-C").arg(format!("linker={linker}"));
    }
    // Otherwise there are no shared objects for musl.
    if target.contains("musl") {
        rustc.args(["-C", "target-feature=-crt-static"]);
    }
    match rustc.status()?.success() {
        true => Ok(()),
        false => Err(io::Error::other("the worker for kernels in Python does not compile").into()),
    }
}
