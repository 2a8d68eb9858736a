//! `karve noise`: how small a difference this benchmark can detect on this host, and what helps.

use crate::bench::command_args::PlainCommandArgs;
use crate::bench::noise::{HostNoise, NoiseBudget, NoiseRemedy};
use crate::bench::sides::{ConfinementChoice, SideOptions, SideTests};
use crate::bench::view::percent_text;
use crate::bench::{noise, sides};
use crate::project::ProjectArgs;
use crate::ui::Progress;
use crate::{session, ui};
use karve_core::comparison::Clock;
use karve_core::noise::ClockNoise;
use karve_core::score::{count, figure};
use karve_numerics::search::budget::parse_time;
use karve_os::error::{CommandError, Result};
use karve_os::process::StopFlag;
use std::time::Duration;

/// A/A test a benchmark: how noisy this host is, what it can detect, and what would help
///
/// Runs the unchanged benchmark interleaved with itself: the project's own (HEAD plus your changes
/// to the editable files), or a command after "--". From these readings karve simulates duels with
/// true speedups of 1, 2, 3 and 5%. Each remedy is tried interleaved with the plain benchmark, and
/// is only recommended if it makes the smallest detectable difference smaller by a fifth.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve noise                      the benchmark of this project
  karve noise -- './kernel 64'     a command
  karve noise --quick --json")]
pub struct NoiseArgs {
    /// A command instead of the project's benchmark
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    #[command(flatten)]
    given: PlainCommandArgs,
    /// Fewer pairs, for a first impression
    #[arg(long)]
    quick: bool,
    /// Maximum time for the A/A test and for each remedy
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_time)]
    time: Duration,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl NoiseArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        let stop = StopFlag::new();
        session::watch_signals_at_once(&stop, "stopping; showing the results so far")?;
        session::unless_stopped(&stop, self.run_until(place, &stop))
    }

    fn run_until(&self, place: &ProjectArgs, stop: &StopFlag) -> Result<()> {
        let mut progress = Progress::new();
        let ground = match &self.command[..] {
            [] => {
                let choices = SideOptions {
                    given: &self.given,
                    harness: None,
                    tests: SideTests::Skipped,
                    confined: ConfinementChoice::AsUsual,
                };
                let say = |text: &str| progress.start_phase(text);
                sides::of_revisions(place, [".", "."], choices, stop, &say)?
            }
            [line] => {
                let confined = ConfinementChoice::AsUsual;
                sides::of_commands(place, [line, line], &self.given, confined, stop)?
            }
            _ => {
                return Err(CommandError::usage("only one command can be given")
                    .hint("quote it, as in \"karve noise -- './kernel 64'\""));
            }
        };
        let effort = if self.quick {
            NoiseBudget { pairs: 30, remedy_pairs: 16, time: self.time / 4 }
        } else {
            NoiseBudget { pairs: 100, remedy_pairs: 40, time: self.time }
        };
        let measured = noise::measure(&ground, effort, stop, &mut |text| progress.at(|| text))?;
        drop(progress);
        if self.json {
            ui::out_json(&measured);
        } else {
            ui::out(&render(&measured, &ground.charter.metric));
        }
        if measured.stopped {
            return Err(session::stopped());
        }
        Ok(())
    }
}

fn render(noise: &HostNoise, metric: &karve_core::charter::Metric) -> String {
    let mut lines = vec![format!(
        "pairs     {} of the benchmark against itself, {} s each",
        noise.pairs,
        figure(noise.seconds_per_pair)
    )];
    for clock in &noise.clocks {
        let unit = match clock.clock {
            Clock::Metric => metric.unit.as_str(),
            Clock::Cpu | Clock::Wall => "us",
        };
        let name = clock.clock.called(metric);
        lines.push(String::new());
        lines.extend(clock_lines(clock, (name, unit), noise.seconds_per_pair));
    }
    lines.push(String::new());
    lines.extend(advice(&noise.remedies));
    lines.join("\n") + "\n"
}

fn clock_lines(clock: &ClockNoise, (name, unit): (&str, &str), pair_s: f64) -> Vec<String> {
    let percent = |ln: f64| format!("{:.2}%", ln * 100.0);
    let or_none = |value: Option<f64>, show: &dyn Fn(f64) -> String| {
        value.map_or_else(|| "-".to_owned(), show)
    };
    let mut lines = vec![name.to_owned()];
    if let Some(times) = &clock.times {
        lines.push(format!(
            "  readings  median {} {unit}, interquartile range {}, p10 {}, p90 {}",
            figure(times.median),
            figure(times.iqr),
            figure(times.p10),
            figure(times.p90)
        ));
    }
    if let Some(ratios) = &clock.ln_ratios {
        lines.push(format!(
            "  ratios    median {}, interquartile range {}, p10 {}, p90 {}",
            percent(ratios.median),
            percent(ratios.iqr),
            percent(ratios.p10),
            percent(ratios.p90)
        ));
    }
    lines.push(format!(
        "  drift     {} over all pairs; lag-1 autocorrelation {}",
        or_none(clock.drift_ln, &percent),
        or_none(clock.lag1, &|value| format!("{value:.2}"))
    ));
    lines.push(format!(
        "  A/A       B was faster in {:.0}% of the pairs; evidence for a difference {} (a warning \
        from 20 on)",
        clock.positive_share * 100.0,
        count(clock.evidence)
    ));
    for power in &clock.power {
        lines.push(format!(
            "  at {:<6} detected in {:>3.0}% of benches, {:>3.0} pairs or {} s on average",
            percent_text((power.ratio - 1.0) * 100.0),
            power.share * 100.0,
            power.blocks,
            figure(power.blocks * pair_s)
        ));
    }
    let smallest = or_none(clock.smallest, &|ratio| percent_text((ratio - 1.0) * 100.0));
    lines.push(format!("  smallest  {smallest} is detected four times out of five"));
    lines
}

fn advice(remedies: &[NoiseRemedy]) -> Vec<String> {
    let shown = |percent: Option<f64>| percent.map_or_else(|| "nothing".to_owned(), percent_text);
    let line = |remedy: &NoiseRemedy| {
        format!(
            "{}: the smallest detectable difference went from {} to {}, and a pair took {:.1} \
            times as long",
            remedy.advice,
            shown(remedy.before_percent),
            shown(remedy.after_percent),
            remedy.cost
        )
    };
    let helped: Vec<&NoiseRemedy> = remedies.iter().filter(|remedy| remedy.helped).collect();
    let mut lines: Vec<String> =
        helped.iter().map(|remedy| format!("advice    {}", line(remedy))).collect();
    if helped.is_empty() {
        let tried: Vec<String> = remedies.iter().map(line).collect();
        lines.push("advice    nothing that was tried helped".to_owned());
        lines.extend(tried.iter().map(|text| format!("tried     {text}")));
    }
    lines
}
