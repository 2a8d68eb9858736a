//! From the output of a benchmark to samples: read completely or not at all, and checked against
//! our clock.

use super::rows::unreadable;
use super::{Harness, names_case, rows, wrong};
use karve_core::charter::OwnClock;
use karve_core::measurement::{Gate, Sample};
use karve_core::score::implied_seconds;
use karve_numerics::case::Case;
use karve_os::process::{CommandOutcome, Exit};
use std::slice;
use std::time::Duration;

impl Harness {
    /// Whether one run of the benchmark gives all cases.
    pub fn benches_all_at_once(&self, cases: &[Case]) -> bool {
        !self.is_under_contract() && !names_case(&self.commands.bench, cases)
    }

    pub(super) fn read_samples(
        &self,
        run: &CommandOutcome,
        text: &str,
        cases: &[Case],
    ) -> Result<Vec<Sample>, Gate> {
        match cases {
            [_] => self.samples_of(run, text, cases).map_err(|gate| gate.on(cases)),
            // A run that is not told its cases knows nothing that an agent could not read.
            _ => self.samples_of(run, text, cases),
        }
    }

    fn samples_of(
        &self,
        run: &CommandOutcome,
        text: &str,
        cases: &[Case],
    ) -> Result<Vec<Sample>, Gate> {
        let name = cases.first().map_or("the benchmark", |case| case.name.as_str());
        match run.exit {
            Exit::Code(0) => {}
            Exit::TimedOut => {
                return Err(Gate::TimedOut { what: format!("the benchmark on {name}") });
            }
            Exit::Code(_) | Exit::Signal(_) | Exit::Stopped | Exit::TooMuch(_) => {
                return Err(wrong(name, run));
            }
        }
        if run.orphans > 0 {
            let why = format!(
                "{name}: the benchmark left other processes running, {} in all, which could work \
                 for a later run",
                run.orphans
            );
            return Err(Gate::Dishonest { why });
        }
        let wall_us = micros(run.wall);
        let cpu_us = micros(run.cpu);
        let sample = |value| Sample { value, wall_us, cpu_us, passes: None, snr_db: None };
        if let Some(value) = self.own_clock(run) {
            return Ok(cases.iter().map(|_| sample(value)).collect());
        }
        if run.stdout.truncated() && !self.output.from_file {
            let excerpt = "the benchmark printed more than karve keeps".to_owned();
            return Err(unreadable(name, excerpt));
        }
        let values = rows::values(text, &self.output, &self.metric, cases)?;
        let samples: Vec<Sample> = values
            .into_iter()
            .map(|row| Sample { passes: row.passes, snr_db: row.snr_db, ..sample(row.value) })
            .collect();
        for (sample, case) in samples.iter().zip(cases) {
            self.check_plausible(sample, case).map_err(|gate| gate.on(slice::from_ref(case)))?;
        }
        Ok(samples)
    }

    /// The metrics that karve's own clock supplies: no output needs to be parsed.
    fn own_clock(&self, run: &CommandOutcome) -> Option<f64> {
        let per_unit = self.metric.seconds_per_unit()?;
        let seconds = match self.metric.own_clock()? {
            OwnClock::Wall => run.wall.as_secs_f64(),
            OwnClock::Cpu => run.cpu.as_secs_f64().max(1e-6),
        };
        Some(seconds / per_unit)
    }

    /// One call cannot take longer than the whole command, whether reported as a time or as a rate.
    fn check_plausible(&self, sample: &Sample, case: &Case) -> Result<(), Gate> {
        let (name, value) = (&case.name, sample.value);
        let dishonest = |why: String| Err(Gate::Dishonest { why });
        if !(value.is_finite() && value > 0.0) {
            let metric = &self.metric.name;
            return dishonest(format!("{name}: {metric} is {value}, which is impossible"));
        }
        let Some(seconds) = implied_seconds(&self.metric, value, case) else {
            return Ok(());
        };
        if sample.can_hold(seconds) {
            return Ok(());
        }
        let unit = &self.metric.unit;
        let wall_s = sample.wall_us as f64 * 1e-6;
        let means = match self.metric.seconds_per_unit() {
            Some(_) => String::new(),
            None => format!(", which is {seconds:.6} s for a call by metric.work"),
        };
        dishonest(format!(
            "{name}: it reports {value} {unit}{means}, but the whole command took {wall_s:.6} s"
        ))
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
