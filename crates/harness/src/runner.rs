//! The ring: where two kernels meet in workers that karve owns.
//!
//! karve draws the inputs from a secret, different for every call and the same bytes for both
//! arms; it holds the clock; it checks what was written, on every timed call against the other
//! arm, and on a secret few against the reference. An arm that is not asked stands still.
//!
//! ```text
//! terms     where kernel and reference come from, and how a worker is started
//! stage     inputs, poison, guards: what the arms find in memory, and what they leave there
//! arm       one worker: woken, asked, timed, frozen
//! broken    why a worker is of no use any more
//! oracle    the reference
//! check     what an output is worth
//! exam      the gate: everything that must hold before a kernel is timed
//! duel      the pairs of a duel        clocks   whether all clocks tell the same
//! pace      the turns of a block       seat     the CPUs of both arms
//! spread    many calls at once, for devices
//! protocol  the messages        worker   the other side of them
//! python    the same worker for modules in Python: worker.py, and how it is started
//! inputs    asks the module of a reference for its arguments
//! sys       shared memory and calls into shared objects; unsafe code
//! ```

mod arm;
mod broken;
mod check;
mod clocks;
mod duel;
mod exam;
mod inputs;
mod oracle;
mod pace;
mod protocol;
mod python;
mod seat;
mod solo;
mod spread;
mod stage;
mod terms;
mod worker;

pub use duel::{Corner, Duelling, Spent};
pub use exam::examine;
pub use inputs::ask_inputs;
pub use solo::{calls_for, handover, readings};
pub use terms::{Terms, no_reference};
pub use worker::serve;
