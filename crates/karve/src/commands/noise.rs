//! `karve noise`: how small a difference this benchmark can detect on this host, and what helps.

use crate::bench::command_args::PlainCommandArgs;
use crate::bench::noise::{HostNoise, NoiseBudget};
use crate::bench::sides::{ConfinementChoice, SideOptions, SideTests};
use crate::bench::{noise, sides};
use crate::project::ProjectArgs;
use crate::ui::{Progress, template};
use crate::{session, ui};
use karve_core::charter::Metric;
use karve_core::comparison::Clock;
use karve_core::noise::ClockNoise;
use karve_numerics::search::budget::parse_time;
use karve_os::error::{CommandError, Result};
use karve_os::process::StopFlag;
use minijinja::value::Serde;
use minijinja::{Value, context};
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
    /// Run it on this remote, with the files of this checkout; see `karve remote`
    #[arg(long, value_name = "NAME")]
    pub(super) on: Option<String>,
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

fn render(noise: &HostNoise, metric: &Metric) -> String {
    let clock = |clock: &ClockNoise| {
        let unit = match clock.clock {
            Clock::Metric => metric.unit.as_str(),
            Clock::Cpu | Clock::Wall => "us",
        };
        context! { noise => Serde(clock), name => clock.clock.called(metric), unit }
    };
    let clocks: Vec<Value> = noise.clocks.iter().map(clock).collect();
    template::render(include_str!("noise.txt.j2"), context! { noise => Serde(noise), clocks })
}
