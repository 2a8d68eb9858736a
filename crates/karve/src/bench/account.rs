//! Reads a saved bench, and checks that it is consistent: a file is trusted no more than a
//! benchmark.
//!
//! Redundant values must agree, and everything that a rule decided is decided again. That does not
//! make forgery impossible, but editing a single reading, flag or threshold is detected.

use super::command_args::ALPHA_MAX;
use super::record::BenchRecord;
use super::with_second;
use karve_core::bench::BenchRule;
use karve_core::charter::{Metric, OwnClock};
use karve_core::measurement::{Block, DiscardReason, Sample};
use karve_core::policy::WarmUpRule;
use karve_core::sampling::WarmUp;
use karve_os::error::{CommandError, Result};
use karve_os::files;
use std::collections::HashMap;
use std::path::Path;

/// The largest file that is read, in bytes.
const BYTES_MAX: u64 = 64 << 20;

/// The most blocks of a file.
const BLOCKS_MAX: usize = 100_000;

/// The tolerance between a clock in whole microseconds and a value that was divided.
const ROUNDING_US: f64 = 1.5;

impl BenchRecord {
    /// Reads it from a file.
    pub fn load(path: &Path) -> Result<Self> {
        let hint = "name a file that \"karve bench --save FILE\" wrote";
        let refused = |cause: String| {
            CommandError::usage(format!("{} is not a saved bench", path.display()))
                .cause(cause)
                .hint(hint)
        };
        let unreadable = |error: std::io::Error| {
            let what = format!("cannot read {}", path.display());
            CommandError::usage(what).cause(error).hint(hint)
        };
        let text = files::read_text(path, BYTES_MAX).map_err(unreadable)?;
        let read: Self = serde_json::from_str(&text).map_err(|error| refused(error.to_string()))?;
        if read.version > Self::VERSION {
            return Err(refused("a newer karve wrote it".to_owned()));
        }
        check(&read).map_err(|why| {
            CommandError::usage(format!("{} is inconsistent", path.display()))
                .cause(why)
                .hint("measure again, with \"karve bench --save FILE\"")
        })?;
        Ok(read)
    }
}

/// Checks a file, or says why it is inconsistent.
fn check(recorded: &BenchRecord) -> std::result::Result<(), String> {
    if recorded.cases.is_empty() {
        return Err("it has no cases".into());
    }
    if recorded.blocks.is_empty() {
        return Err("it has no blocks".into());
    }
    if recorded.blocks.len() > BLOCKS_MAX {
        return Err(format!("it has more than {BLOCKS_MAX} blocks"));
    }
    check_rule(&recorded.rule, &recorded.metric)?;
    check_blocks(&recorded.blocks, recorded.rule.blocks_max)?;
    for (number, block) in recorded.blocks.iter().enumerate() {
        for pair in &block.pairs {
            for (side, sample) in [("A", &pair.parent), ("B", &pair.candidate)] {
                check_sample(sample, &recorded.metric)
                    .map_err(|why| format!("block {number}, {side}: {why}"))?;
            }
        }
    }
    Ok(())
}

fn check_rule(rule: &BenchRule, metric: &Metric) -> std::result::Result<(), String> {
    let sane = rule.null_ln >= 0.0
        && rule.effect_ln >= rule.null_ln
        && (0.0..=ALPHA_MAX).contains(&rule.alpha)
        && rule.alpha > 0.0
        && rule.blocks_max > 0
        && (0.0..1.0).contains(&rule.beta)
        && rule.beta > 0.0;
    if !sane {
        return Err("its thresholds are inconsistent".into());
    }
    if with_second(*rule, metric) != *rule {
        return Err("its rule uses other clocks than its metric asks for".into());
    }
    Ok(())
}

/// The blocks are all different, not too many, and only warm-up blocks are left out.
fn check_blocks(blocks: &[Block], blocks_max: u32) -> std::result::Result<(), String> {
    let mut seen = HashMap::new();
    let mut warm_up = WarmUp::new(WarmUpRule::Detected);
    let mut counted = 0_u32;
    for (number, block) in blocks.iter().enumerate() {
        if block.pairs.is_empty() {
            return Err(format!("block {number} is empty"));
        }
        if let Some(twin) = seen.insert((block.seed, block.pad), number) {
            return Err(format!("block {number} is a copy of block {twin}"));
        }
        let due = warm_up.discards(&block.pairs);
        warm_up.record_block(&block.pairs);
        if block.discarded != due {
            let word = |flag: Option<DiscardReason>| match flag {
                Some(DiscardReason::WarmUp) => "left out as warm-up",
                None => "counted",
            };
            return Err(format!(
                "block {number} is {}, but by its readings it should be {}",
                word(block.discarded),
                word(due)
            ));
        }
        counted += u32::from(due.is_none());
    }
    if counted > blocks_max {
        return Err(format!("{counted} blocks count, but its rule allows {blocks_max}"));
    }
    Ok(())
}

fn check_sample(sample: &Sample, metric: &Metric) -> std::result::Result<(), String> {
    for (name, time) in [("wall_us", sample.wall_us), ("cpu_us", sample.cpu_us)] {
        if time == 0 {
            return Err(format!("{name} is 0, but every run takes time"));
        }
    }
    let Some(per_unit) = metric.seconds_per_unit() else {
        return Ok(());
    };
    let seconds = sample.value * per_unit;
    let (name, read_us) = match metric.own_clock() {
        None if sample.can_hold(seconds) => return Ok(()),
        None => {
            return Err(format!(
                "{} is {} {}, but the whole command took {} us",
                metric.name, sample.value, metric.unit, sample.wall_us
            ));
        }
        Some(OwnClock::Wall) => ("wall_us", sample.wall_us),
        Some(OwnClock::Cpu) => ("cpu_us", sample.cpu_us),
    };
    // NaN fails too.
    if (seconds * 1e6 - read_us as f64).abs() <= ROUNDING_US {
        return Ok(());
    }
    Err(format!("{} is {} {}, but {name} is {read_us}", metric.name, sample.value, metric.unit))
}
