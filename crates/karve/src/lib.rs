//! karve does what `karve-core` decides: it runs the campaign and referees every gain.

pub mod error;
