//! Asking a model: what is tried again and when, what a question may cost, and what is left out of
//! a conversation that grows too long.
//!
//! ```text
//! retry   after a question without an answer
//! budget  before a question that costs something
//! room    before a question that may be too long
//! ```

pub mod budget;
pub mod retry;
pub mod room;
