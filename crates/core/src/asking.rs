//! Calls to a model: what is retried and when, what a request may cost, and what is left out of a
//! conversation that grows too long.
//!
//! ```text
//! retry   after a request that got no reply
//! budget  before a request that costs money or tokens
//! room    before a request that may be too long
//! ```

pub mod budget;
pub mod context_window;
pub mod retry;
