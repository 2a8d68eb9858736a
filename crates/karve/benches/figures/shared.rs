//! What benchmarks of single calls share: how a call is timed, how a figure is told and held to its
//! bound, and what the program ends with.

use karve::ui;
use karve_numerics::stats;
use karve_os::error::Result;
use std::fs;
use std::process::ExitCode;
use std::time::Instant;

/// What a benchmark ends with: 1 if a bound was missed.
pub(crate) fn exit_code(held: Result<bool>) -> ExitCode {
    match held {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            ui::note(&error.to_string());
            ExitCode::from(error.kind.exit_code())
        }
    }
}

/// Prints a figure, and says whether it holds its bound.
pub(crate) fn tell(what: &str, value: f64, unit: &str, most: Option<f64>) -> bool {
    let holds = most.is_none_or(|most| value <= most);
    let bound = most.map_or_else(String::new, |most| {
        let verdict = if holds { "ok" } else { "MISSED" };
        format!(" <= {most}: {verdict}")
    });
    ui::outln(&format!("{what:<44} {value:>10.3} {unit}{bound}"));
    holds
}

/// What one call took, in milliseconds.
pub(crate) struct Took {
    /// The median by the clock.
    pub(crate) clock_ms: f64,
    /// The mean in CPU time; not a number where that is not told.
    pub(crate) cpu_ms: f64,
}

impl Took {
    /// What others do to the clock meanwhile is not the call's own.
    pub(crate) fn own_ms(&self) -> f64 {
        self.cpu_ms.min(self.clock_ms)
    }
}

/// Times a call, so many times.
pub(crate) fn time(calls: usize, mut call: impl FnMut()) -> Took {
    let mut times_ms = Vec::with_capacity(calls);
    let cpu_before = cpu_ms();
    for _ in 0..calls {
        let begun = Instant::now();
        call();
        times_ms.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    Took {
        clock_ms: stats::median(&times_ms).unwrap_or(f64::NAN),
        cpu_ms: (cpu_ms() - cpu_before) / calls as f64,
    }
}

/// CPU time of this process up to now, in milliseconds; not a number where it is not told.
fn cpu_ms() -> f64 {
    let text = fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let first = text.split_whitespace().next();
    let ns = first.and_then(|word| word.parse::<f64>().ok());
    ns.map_or(f64::NAN, |ns| ns / 1e6)
}
