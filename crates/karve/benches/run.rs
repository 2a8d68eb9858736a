//! The cost of a run: how much of the time goes by between the end of one command and the start of
//! the next?
//!
//! `cargo bench --bench run` runs a command of 2 ms many times, one after another, as a duel does.
//! What passes outside of the time that [`karve::process::Run::wall`] tells is karve's own. The
//! figures are only shown: a clock on a shared machine is no test.

use karve::ui;
use karve_os::error::Result;
use karve_os::process::{Command, StopFlag, run};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How long the command takes.
const COMMAND: Duration = Duration::from_millis(2);
/// How often it runs.
const RUNS: u32 = 500;
/// Runs before it counts.
const WARM_UP: u32 = 20;
/// What makes this program the command.
const SPIN: &str = "--spin";

fn main() -> ExitCode {
    if std::env::args().any(|arg| arg == SPIN) {
        let begun = Instant::now();
        while begun.elapsed() < COMMAND {}
        return ExitCode::SUCCESS;
    }
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            ui::note(&error.to_string());
            ExitCode::from(error.kind.exit_code())
        }
    }
}

fn measure() -> Result<()> {
    let me = std::env::current_exe().unwrap_or_default();
    let by_argv = Command::argv([me.as_os_str(), SPIN.as_ref()], Path::new("/"));
    let line = format!("{} {SPIN}", me.display());
    let by_line = Command::line(line.as_str(), Path::new("/"));
    let by_shell = Command::shell(line, Path::new("/"));
    tell("started directly", &by_argv)?;
    tell("started by a line", &by_line)?;
    tell("started by a shell", &by_shell)?;
    tell("directly, with a tag", &by_argv.tag("bench"))
}

fn tell(what: &str, command: &Command) -> Result<()> {
    let stop = StopFlag::new();
    let (mut walls, mut cpus, mut owns) = (Vec::new(), Vec::new(), Vec::new());
    for n in 0..WARM_UP + RUNS {
        let begun = Instant::now();
        let ran = run(command, &stop)?;
        let own = begun.elapsed().saturating_sub(ran.wall);
        if n >= WARM_UP {
            walls.push(ran.wall.as_secs_f64() * 1e6);
            cpus.push(ran.cpu.as_secs_f64() * 1e6);
            owns.push(own.as_secs_f64() * 1e6);
        }
    }
    let median = |values: &[f64]| karve_numerics::stats::median(values).unwrap_or(f64::NAN);
    let sum = |values: &[f64]| values.iter().sum::<f64>();
    let share = |wall: f64, own: f64| 100.0 * own / (wall + own);
    let (wall, own) = (median(&walls), median(&owns));
    ui::outln(&format!(
        "{what:<24} wall {wall:>6.0} us, cpu {:>6.0} us, karve's own {own:>5.1} us: {:>5.2}% \
         (all runs {:>5.2}%)",
        median(&cpus),
        share(wall, own),
        share(sum(&walls), sum(&owns)),
    ));
    Ok(())
}
