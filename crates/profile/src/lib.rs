//! Why a kernel is slow: what profilers say, what the device allows.

pub mod devices;
pub mod profilers;
pub mod roofline;
