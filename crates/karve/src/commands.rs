//! One file per command. `--help` of each has an example.

pub mod agents;
pub mod answer;
pub mod apply;
pub mod audit;
pub mod bench;
pub mod check;
pub mod checkout;
pub mod clean;
pub mod completions;
pub mod contract;
pub mod demo;
pub mod doctor;
pub mod exec;
pub mod explain;
pub mod export;
pub mod external;
pub mod help;
pub mod history;
pub mod import;
pub mod init;
pub mod install;
pub mod knowledge;
pub mod lint_task;
pub mod list;
pub mod mcp;
pub mod messages;
pub mod names;
pub mod new;
pub mod noise;
pub mod profile;
mod project_files;
pub mod reap;
pub mod relay;
pub mod remote;
pub mod report;
pub mod roles;
pub mod roofline;
pub mod run;
pub mod serve;
pub mod spin;
pub mod status;
pub mod suite;
pub mod tune;
pub mod verify;
pub mod watch;
pub mod why;
pub mod worker;

use crate::project::ProjectArgs;
use clap::{Parser, Subcommand};
use karve_os::error::Result;

/// karve carves compute kernels to the hardware limit, and referees every gain.
///
/// It drives the built-in strategy, a coding agent or any program through an optimization
/// campaign. Whatever it reports as faster was measured interleaved with the incumbent, was
/// correct on every case, and can be judged again from the log.
#[derive(Debug, Parser)]
#[command(name = "karve", version, propagate_version = true, max_term_width = 100)]
#[command(after_help = "Examples:
  karve demo                      a whole campaign on an embedded kernel, in under three minutes
  karve new --template c          a starter kernel: c, rust, triton, cutile and more
  karve init && karve doctor      write karve.toml for your kernel and check it
  karve run --yes --hours 8       run a campaign overnight; resume it with \"karve run\"
  karve report                    what got faster, by how much, and why the rest was dropped
  karve bench main .              is the worktree faster than main? without a campaign

Exit codes: 0 success, 1 check failed, 2 usage or karve.toml, 3 environment, 4 busy,
70 a bug in karve, 130 stopped by the user.")]
pub struct Cli {
    #[command(flatten)]
    place: ProjectArgs,
    #[command(subcommand)]
    command: CliCommand,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    Demo(demo::DemoArgs),
    New(new::NewArgs),
    Init(init::InitArgs),
    Contract(contract::ContractArgs),
    Import(import::TaskImportArgs),
    LintTask(lint_task::LintTaskArgs),
    Export(export::TaskExportArgs),
    Doctor(doctor::DoctorArgs),
    Agents(agents::AgentsArgs),
    Install(install::InstallArgs),
    Roles(roles::RolesArgs),
    Messages(messages::MessagesArgs),
    Run(run::RunArgs),
    Suite(suite::SuiteArgs),
    Next(external::NextArgs),
    Propose(external::ProposeArgs),
    Submit(external::SubmitArgs),
    Check(check::CheckArgs),
    Audit(audit::AuditArgs),
    Bench(bench::BenchArgs),
    Noise(noise::NoiseArgs),
    Tune(tune::TuneArgs),
    Profile(profile::ProfileArgs),
    Explain(explain::ExplainArgs),
    Knowledge(knowledge::KnowledgeArgs),
    Roofline(roofline::RooflineArgs),
    Status(status::StatusArgs),
    Watch(watch::WatchArgs),
    Log(history::LogArgs),
    Show(history::ShowArgs),
    Why(why::WhyArgs),
    Diff(history::DiffArgs),
    Best(status::BestArgs),
    Report(report::ReportArgs),
    Verify(verify::VerifyArgs),
    Checkout(checkout::CheckoutArgs),
    Apply(apply::ApplyArgs),
    List(list::ListArgs),
    Clean(clean::CleanArgs),
    Mcp(mcp::McpArgs),
    Serve(serve::ServeArgs),
    Queue(answer::QueueArgs),
    Answer(answer::AnswerArgs),
    Schema(completions::SchemaArgs),
    Man(completions::ManArgs),
    Names(names::NamesArgs),
    Spin(spin::SpinArgs),
    Worker(worker::WorkerArgs),
    Reap(reap::CleanupArgs),
    Relay(relay::RelayArgs),
    Remote(remote::RemoteArgs),
    Devices(remote::DevicesArgs),
    Exec(exec::ExecArgs),
    Completions(completions::CompletionsArgs),
}

/// Runs the command line.
pub fn run(cli: &Cli) -> Result<()> {
    let place = &cli.place;
    if let Some(name) = elsewhere(&cli.command) {
        return remote::run_there(place, name, remote::own_args());
    }
    // Held until the command has ended.
    let _reaper = starts_others(&cli.command).then(reap::CleanupArgs::start);
    match &cli.command {
        CliCommand::Demo(command) => command.run(),
        CliCommand::New(command) => command.run(place),
        CliCommand::Init(command) => command.run(place),
        CliCommand::Contract(command) => command.run(place),
        CliCommand::Import(command) => command.run(place),
        CliCommand::LintTask(command) => command.run(place),
        CliCommand::Export(command) => command.run(place),
        CliCommand::Doctor(command) => command.run(place),
        CliCommand::Agents(command) => command.run(place),
        CliCommand::Install(command) => command.run(place),
        CliCommand::Roles(command) => command.run(place),
        CliCommand::Messages(command) => command.run(),
        CliCommand::Run(command) => command.run(place),
        CliCommand::Suite(command) => command.run(place),
        CliCommand::Next(command) => command.run(place),
        CliCommand::Propose(command) => command.run(place),
        CliCommand::Submit(command) => command.run(place),
        CliCommand::Check(command) => command.run(place),
        CliCommand::Audit(command) => command.run(place),
        CliCommand::Bench(command) => command.run(place),
        CliCommand::Noise(command) => command.run(place),
        CliCommand::Tune(command) => command.run(place),
        CliCommand::Profile(command) => command.run(place),
        CliCommand::Explain(command) => command.run(place),
        CliCommand::Knowledge(command) => command.run(place),
        CliCommand::Roofline(command) => command.run(place),
        CliCommand::Status(command) => command.run(place),
        CliCommand::Watch(command) => command.run(place),
        CliCommand::Log(command) => command.run(place),
        CliCommand::Show(command) => command.run(place),
        CliCommand::Why(command) => command.run(place),
        CliCommand::Diff(command) => command.run(place),
        CliCommand::Best(command) => command.run(place),
        CliCommand::Report(command) => command.run(place),
        CliCommand::Serve(command) => command.run(place),
        CliCommand::Verify(command) => command.run(place),
        CliCommand::Checkout(command) => command.run(place),
        CliCommand::Apply(command) => command.run(place),
        CliCommand::List(command) => command.run(place),
        CliCommand::Clean(command) => command.run(place),
        CliCommand::Mcp(command) => command.run(place),
        CliCommand::Queue(command) => command.run(place),
        CliCommand::Answer(command) => command.run(place),
        CliCommand::Schema(command) => command.run(),
        CliCommand::Man(command) => command.run(),
        CliCommand::Names(command) => command.run(place),
        CliCommand::Spin(command) => command.run(),
        CliCommand::Worker(command) => command.run(),
        CliCommand::Reap(command) => command.run(),
        CliCommand::Relay(command) => command.run(),
        CliCommand::Remote(command) => command.run(place),
        CliCommand::Devices(command) => command.run(place),
        CliCommand::Exec(command) => command.run(place),
        CliCommand::Completions(command) => command.run(),
    }
}

/// The remote that a command is to run on, if it is one that runs there as a whole.
fn elsewhere(command: &CliCommand) -> Option<&str> {
    let on = match command {
        CliCommand::Bench(command) => &command.on,
        CliCommand::Noise(command) => &command.on,
        CliCommand::Profile(command) => &command.on,
        CliCommand::Check(command) => &command.on,
        CliCommand::Doctor(command) => &command.on,
        _ => return None,
    };
    on.as_deref()
}

/// Whether a command runs the project's own commands, which may be many and slow.
fn starts_others(command: &CliCommand) -> bool {
    use CliCommand as C;
    match command {
        C::Demo(_) | C::Doctor(_) | C::Agents(_) | C::Run(_) | C::Mcp(_) | C::Next(_) => true,
        C::Propose(_) | C::Submit(_) | C::Check(_) | C::Bench(_) | C::Noise(_) => true,
        C::Tune(_) | C::Profile(_) | C::Roofline(_) | C::Contract(_) | C::Explain(_) => true,
        C::Remote(_) | C::Devices(_) | C::Exec(_) | C::LintTask(_) | C::Suite(_) => true,
        C::New(_) | C::Init(_) | C::Install(_) | C::Roles(_) | C::Messages(_) => false,
        C::Audit(_) | C::Knowledge(_) | C::Status(_) | C::Log(_) | C::Show(_) => false,
        C::Diff(_) | C::Best(_) | C::Report(_) | C::Serve(_) | C::Verify(_) | C::Apply(_) => false,
        C::List(_) | C::Queue(_) | C::Answer(_) | C::Schema(_) | C::Completions(_) => false,
        C::Checkout(_) | C::Clean(_) | C::Man(_) | C::Spin(_) | C::Worker(_) | C::Reap(_) => false,
        C::Why(_) | C::Names(_) | C::Relay(_) | C::Watch(_) | C::Import(_) | C::Export(_) => false,
    }
}
