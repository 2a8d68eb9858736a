//! Histograms of gray images, and what is made of them.

mod equalize;
mod histogram;

pub use equalize::equalize;
pub use histogram::histogram;
