//! karve-core decides what an optimization campaign does next; it executes nothing.
//!
//! Reading order: `charter`, `agenda` and `policy` are what the user agreed to; `campaign` is the
//! machine; `measurement`, `basis`, `stats`, `sampling`, `duel`, `bench`, `comparison` and
//! `verdict` judge,
//! `power` and `noise` say what could have been detected; `integrity` says how much of a gain is
//! real;
//! `profile` says why a kernel is slow, `knowledge` what is known about that; `strategy`, `space`,
//! `grid`, `search` and `variants` choose what to try, `roles` says who is asked, `asking` how
//! a model is asked; `score`, `suite`, `lineage`, `spending`, `view` and `payload` are what people
//! see;
//! `markdown` reads forms. `tensor`, `draw` and `accuracy` are the arithmetic of the inputs and
//! outputs of kernels.

#[macro_use]
mod names;

pub mod agenda;
pub mod asking;
pub mod attribution;
pub mod basis;
pub mod bench;
pub mod campaign;
pub mod chart;
pub mod charter;
pub mod comparison;
pub mod duel;
pub mod hypothesis;
pub mod integrity;
pub mod knowledge;
pub mod ladder;
pub mod lineage;
pub mod markdown;
pub mod measurement;
pub mod mutants;
pub mod noise;
pub mod parts;
pub mod pause;
pub mod payload;
pub mod policy;
pub mod power;
pub mod profile;
pub mod roles;
pub mod roofline;
pub mod sampling;
pub mod score;
pub mod spending;
pub mod suite;
pub mod text;
// Support for the tests of this crate lies outside of its sources.
#[cfg(test)]
#[path = "../testing/testing.rs"]
mod testing;
pub mod variants;
pub mod verdict;
pub mod view;
pub mod why;
pub mod word_lists;
