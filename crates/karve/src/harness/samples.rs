//! From the output of a benchmark to samples: read whole or not at all, and checked by our clock.

use super::{Gated, Harness, rows, wrong};
use crate::process::{Exit, Run};
use karve_core::charter::{Case, OwnClock};
use karve_core::measurement::{FailureCategory, Gate, Sample};
use std::time::Duration;

/// A reported time may exceed the whole command's time by this much, for rounding.
const CLOCK_SLACK: f64 = 1.05;

impl Harness {
    pub(super) fn read_samples(&self, run: &Run, text: &str, cases: &[Case]) -> Gated<Vec<Sample>> {
        let name = cases
            .first()
            .map_or("the benchmark", |case| case.name.as_str());
        match run.exit {
            Exit::Code(0) => {}
            Exit::TimedOut => {
                return Err(Gate::TimedOut {
                    what: format!("the benchmark on {name}"),
                });
            }
            Exit::Code(_) | Exit::Signal(_) | Exit::Stopped => return Err(wrong(name, run)),
        }
        let wall_us = micros(run.wall);
        let cpu_us = micros(run.cpu);
        let sample = |value| Sample {
            value,
            wall_us,
            cpu_us,
        };
        if let Some(value) = self.own_clock(run) {
            return Ok(cases.iter().map(|_| sample(value)).collect());
        }
        if run.stdout.truncated() && !self.output.from_file {
            let excerpt = "the benchmark printed more than karve keeps".to_owned();
            return Err(unreadable(name, excerpt));
        }
        let values = rows::values(text, &self.output, &self.metric, cases)?;
        for (value, case) in values.iter().zip(cases) {
            self.check_plausible(*value, case, run)?;
        }
        Ok(values.into_iter().map(sample).collect())
    }

    /// The metrics that karve's own clock supplies: no output needs to be read.
    fn own_clock(&self, run: &Run) -> Option<f64> {
        let per_unit = self.metric.seconds_per_unit()?;
        let seconds = match self.metric.own_clock()? {
            OwnClock::Wall => run.wall.as_secs_f64(),
            OwnClock::Cpu => run.cpu.as_secs_f64().max(1e-6),
        };
        Some(seconds / per_unit)
    }

    /// A time for one call cannot exceed the time of the whole command.
    fn check_plausible(&self, value: f64, case: &Case, run: &Run) -> Gated<()> {
        let name = &case.name;
        if !(value.is_finite() && value > 0.0) {
            let why = format!(
                "{name}: {} is {value}, which no kernel can be",
                self.metric.name
            );
            return Err(Gate::Dishonest { why });
        }
        let Some(per_unit) = self.metric.seconds_per_unit() else {
            return Ok(());
        };
        let wall_s = run.wall.as_secs_f64();
        if value * per_unit > wall_s * CLOCK_SLACK {
            let why = format!(
                "{name}: it reports {value} {}, but the whole command took {wall_s:.6} s",
                self.metric.unit
            );
            return Err(Gate::Dishonest { why });
        }
        Ok(())
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

pub(super) fn unreadable(case: &str, excerpt: String) -> Gate {
    Gate::WrongResult {
        case: case.to_owned(),
        category: FailureCategory::Other,
        excerpt,
    }
}
