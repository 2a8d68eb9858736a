//! The operating system, with every line of unsafe code that karve has.
//!
//! Reading order: `process` starts and ends processes, `sandbox` confines them, `device` is the
//! lease and the quiet that a measurement needs; `host`, `clock` and `random` are facts of the
//! machine; `files` and `text` read and show what others wrote; `sync` locks; `native` is shared
//! memory and functions of shared objects; `gpu` draws and compares tensors on a device; `error` is
//! how everything fails. The directory `python_worker` is a library of its own, which the
//! interpreter of a kernel in Python loads.

pub mod clock;
pub mod copy;
pub mod device;
pub mod error;
pub mod files;
#[allow(unsafe_code)]
mod float_mode;
#[allow(unsafe_code)]
pub mod gpu;
pub mod host;
#[allow(unsafe_code)]
pub mod native;
pub mod plain_work;
pub mod process;
pub mod random;
pub mod sandbox;
pub mod sync;
pub mod text;

/// The worker for kernels in Python, a shared object: `build.rs` compiles it.
pub const PYTHON_WORKER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/python_worker.so"));
