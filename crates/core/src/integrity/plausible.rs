//! The most that a change can gain. A larger gain is a measurement error or a cheat: it is
//! blocked, not celebrated.
//!
//! ```text
//! roofline   a call that does W operations and moves B bytes takes max(W / peak, B / bandwidth)
//! Amdahl     a change to a share p of the time makes the whole faster by 1 / (1 - p) at most
//! ```

use crate::measurement::Gate;

/// A measured peak is itself a little too low: a time may be below the floor by this factor.
pub const ROOFLINE_SLACK: f64 = 0.8;
/// A time below the floor by this factor is impossible, however the peak was measured.
pub const ROOFLINE_HARD: f64 = 0.5;
/// A share of the time is also measured: a gain may exceed the bound by this factor.
const AMDAHL_SLACK: f64 = 1.1;

/// Why a figure is impossible.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ImplausibleReason {
    /// No call can be that short on this device.
    BelowRoofline {
        /// The measured time, in seconds.
        time_s: f64,
        /// The shortest possible time.
        floor_s: f64,
    },
    /// No change to that part can gain so much.
    BeyondAmdahl {
        /// The measured speedup.
        ratio: f64,
        /// The largest possible speedup.
        bound: f64,
    },
    /// A time or a ratio that is not a positive number.
    NotANumber,
}

impl ImplausibleReason {
    /// In words.
    pub fn describe(self) -> String {
        match self {
            Self::BelowRoofline { time_s, floor_s } => format!(
                "{time_s:.3e} s for one call is below the roofline of this device (all cores that \
                 may take part), {floor_s:.3e} s"
            ),
            Self::BeyondAmdahl { ratio, bound } => {
                format!("{ratio:.3}x is more than the changed part can gain, {bound:.3}x")
            }
            Self::NotANumber => "the figure is not a positive number".to_owned(),
        }
    }

    /// Whether it is impossible even with measurement slack; otherwise it only deserves a look.
    pub fn is_certain(self) -> bool {
        match self {
            Self::BelowRoofline { time_s, floor_s } => time_s < floor_s * ROOFLINE_HARD,
            Self::BeyondAmdahl { .. } | Self::NotANumber => true,
        }
    }

    /// The gate's message.
    pub fn gate(self, case: &str) -> Gate {
        Gate::Dishonest { why: format!("{case}: {}", self.describe()) }
    }
}

/// Assesses the time of one call against the roofline; without a floor, any positive time passes.
pub fn assess_time(time_s: f64, floor_s: Option<f64>) -> Result<(), ImplausibleReason> {
    if !(time_s.is_finite() && time_s > 0.0) {
        return Err(ImplausibleReason::NotANumber);
    }
    match floor_s {
        Some(floor_s) if time_s < floor_s * ROOFLINE_SLACK => {
            Err(ImplausibleReason::BelowRoofline { time_s, floor_s })
        }
        Some(_) | None => Ok(()),
    }
}

/// The largest speedup of the whole when a share of its time, 0 to 1, disappears.
pub fn amdahl_ratio(share: f64) -> f64 {
    let share = if share.is_nan() { 1.0 } else { share.clamp(0.0, 1.0) };
    1.0 / (1.0 - share)
}

/// Assesses a speedup against the share of the time that was changed, if that is known.
pub fn assess_gain(ratio: f64, share: Option<f64>) -> Result<(), ImplausibleReason> {
    if !(ratio.is_finite() && ratio > 0.0) {
        return Err(ImplausibleReason::NotANumber);
    }
    let Some(bound) = share.map(amdahl_ratio) else {
        return Ok(());
    };
    if ratio > bound * AMDAHL_SLACK {
        return Err(ImplausibleReason::BeyondAmdahl { ratio, bound });
    }
    Ok(())
}
