//! One file per command. `--help` of each has an example.

pub mod agents;
pub mod answer;
pub mod apply;
pub mod audit;
pub mod bench;
pub mod check;
pub mod completions;
pub mod demo;
pub mod doctor;
pub mod history;
pub mod init;
pub mod install;
pub mod knowledge;
pub mod list;
pub mod mcp;
pub mod messages;
pub mod new;
pub mod noise;
pub mod profile;
pub mod report;
pub mod roles;
pub mod roofline;
pub mod run;
pub mod spin;
pub mod status;
pub mod sweep;
pub mod tune;
pub mod verify;
pub mod visit;
pub mod worker;

use crate::project::Place;
use clap::{Parser, Subcommand};
use karve_os::error::Result;

/// karve carves compute kernels to the hardware limit, and referees every gain.
///
/// It drives the built-in strategy, a coding agent or any program through an optimization
/// campaign. Whatever it reports as faster was measured interleaved with the incumbent, was
/// correct on every case, and can be judged again from the log.
#[derive(Debug, Parser)]
#[command(
    name = "karve",
    version,
    propagate_version = true,
    max_term_width = 100
)]
#[command(after_help = "Examples:
  karve demo                      a whole campaign on an embedded kernel, in under three minutes
  karve new --template c          a starter kernel: c, rust, python-numpy, triton or cuda
  karve init && karve doctor      write karve.toml for your kernel and check it
  karve run --yes --hours 8       run a campaign overnight; resume it with \"karve run\"
  karve report                    what got faster, by how much, and why the rest was dropped
  karve bench main .              is the worktree faster than main? without a campaign
  karve tune --budget 10m         find good knob values in few trials

Exit codes: 0 success, 1 check failed, 2 usage or karve.toml, 3 environment, 4 busy,
70 a bug in karve, 130 stopped by the user.")]
pub struct Cli {
    #[command(flatten)]
    place: Place,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::Demo),
    New(new::New),
    Init(init::Init),
    Doctor(doctor::Doctor),
    Agents(agents::Agents),
    Install(install::Install),
    Roles(roles::Roles),
    Messages(messages::Messages),
    Run(run::Run),
    Next(visit::Next),
    Propose(visit::Propose),
    Submit(visit::Submit),
    Check(check::Check),
    Audit(audit::Audit),
    Bench(bench::Bench),
    Noise(noise::Noise),
    Tune(tune::Tune),
    Profile(profile::Profile),
    Knowledge(knowledge::Knowledge),
    Roofline(roofline::Roofline),
    Status(status::Status),
    Log(history::Log),
    Show(history::Show),
    Diff(history::Diff),
    Best(status::Best),
    Report(report::Report),
    Verify(verify::Verify),
    Apply(apply::Apply),
    List(list::List),
    Mcp(mcp::Mcp),
    Queue(answer::Queue),
    Answer(answer::Answer),
    Schema(completions::Schema),
    Spin(spin::Spin),
    Worker(worker::Worker),
    Sweep(sweep::Sweep),
    Completions(completions::Completions),
}

/// Runs the command line.
pub fn run(cli: &Cli) -> Result<()> {
    let place = &cli.place;
    // Held until the command has ended.
    let _sweeper = starts_others(&cli.command).then(sweep::Sweep::start);
    match &cli.command {
        Command::Demo(command) => command.run(),
        Command::New(command) => command.run(place),
        Command::Init(command) => command.run(place),
        Command::Doctor(command) => command.run(place),
        Command::Agents(command) => command.run(place),
        Command::Install(command) => command.run(place),
        Command::Roles(command) => command.run(place),
        Command::Messages(command) => command.run(),
        Command::Run(command) => command.run(place),
        Command::Next(command) => command.run(place),
        Command::Propose(command) => command.run(place),
        Command::Submit(command) => command.run(place),
        Command::Check(command) => command.run(place),
        Command::Audit(command) => command.run(place),
        Command::Bench(command) => command.run(place),
        Command::Noise(command) => command.run(place),
        Command::Tune(command) => command.run(place),
        Command::Profile(command) => command.run(place),
        Command::Knowledge(command) => command.run(place),
        Command::Roofline(command) => command.run(place),
        Command::Status(command) => command.run(place),
        Command::Log(command) => command.run(place),
        Command::Show(command) => command.run(place),
        Command::Diff(command) => command.run(place),
        Command::Best(command) => command.run(place),
        Command::Report(command) => command.run(place),
        Command::Verify(command) => command.run(place),
        Command::Apply(command) => command.run(place),
        Command::List(command) => command.run(place),
        Command::Mcp(command) => command.run(place),
        Command::Queue(command) => command.run(place),
        Command::Answer(command) => command.run(place),
        Command::Schema(command) => command.run(),
        Command::Spin(command) => command.run(),
        Command::Worker(command) => command.run(),
        Command::Sweep(command) => command.run(),
        Command::Completions(command) => command.run(),
    }
}

/// Whether a command runs the project's own commands, which may be many and slow.
fn starts_others(command: &Command) -> bool {
    matches!(
        command,
        Command::Demo(_)
            | Command::Doctor(_)
            | Command::Agents(_)
            | Command::Run(_)
            | Command::Mcp(_)
            | Command::Next(_)
            | Command::Propose(_)
            | Command::Submit(_)
            | Command::Check(_)
            | Command::Bench(_)
            | Command::Noise(_)
            | Command::Tune(_)
            | Command::Profile(_)
            | Command::Roofline(_)
    )
}
