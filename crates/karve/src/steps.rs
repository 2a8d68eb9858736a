//! Performs one step of a campaign; makes no decisions. Each step has its own file, named after it.

mod accept;
mod check_mutations;
mod checksums;
mod choose;
mod define_target;
mod devlog;
mod exec;
mod gate;
mod implement;
mod learn;
mod measure;
mod measure_baseline;
mod prepare;
mod profile;
mod profile_final;
mod propose;
mod read_tips;
mod review;
mod settle;
mod tune;

// What several steps share.
mod ablation;
mod agent_sandbox;
mod agent_turn;
mod agent_workspace;
mod candidate;
mod context;
mod correctness;
mod exec_door;
mod far;
mod knowledge;
mod missing_candidate;
mod news;
mod profiling;
mod proof;
mod raw_output;
mod repeats;
mod stale_memory;
mod tips;
mod tuning;

pub(crate) use accept::{AcceptanceTest, accept};
pub use agent_turn::asked_agent;
pub use agent_workspace::{WORKSPACE_DIR, waits_for_answer};
pub(crate) use choose::try_variant;
pub use context::{Context, ContextParts};
pub(crate) use exec::exec;
pub(crate) use learn::study;
pub use news::news;
pub(crate) use prepare::inspect;
pub(crate) use profile::profile_commit;
pub(crate) use tips::{AgentTip, add as add_tip, hand_over as hand_over_tips};
pub(crate) use tune::open_tuner;

use crate::remote::host::RemoteHost;
use karve_core::campaign::{Campaign, Event, Step};
use karve_os::error::{CommandError, ErrorKind, Result};

/// Performs a step and returns what happened.
pub fn perform(context: &mut Context, step: &Step, campaign: &Campaign) -> Result<Event> {
    if !matches!(step, Step::Measure(_)) {
        context.carried.pair_runner = None;
    }
    let hash = campaign.baseline().and_then(|b| b.reference.as_ref());
    context.carried.reference = hash.map(|hash| context.dir.join("artifacts").join(hash));
    if let Some(mut host) = context.remote.take_if(|host| far::is_for_device(step, host)) {
        let event = far::perform(context, &mut host, step, campaign);
        context.remote = Some(host);
        return event;
    }
    if let (Some(host), true) = (&mut context.remote, far::is_for_agent(step)) {
        host.rest();
        context.helpers.iter_mut().for_each(RemoteHost::rest);
    }
    match step {
        Step::DefineTarget => define_target::perform(context),
        Step::Prepare => prepare::perform(context),
        Step::CheckMutations => check_mutations::perform(context, campaign),
        Step::ReadTips => read_tips::perform(context, campaign),
        Step::MeasureBaseline => measure_baseline::perform(context, campaign),
        Step::Profile { round, commit, depth } => {
            profile::perform(context, *round, commit, *depth, campaign)
        }
        Step::ProfileFinal { commit, depth } => {
            profile_final::perform(context, commit, *depth, campaign)
        }
        Step::Propose { round, try_no, brief } => {
            propose::perform(context, *round, *try_no, brief, campaign)
        }
        Step::Implement(step) => implement::perform(context, step, campaign),
        Step::Choose(step) => choose::perform(context, step, campaign),
        Step::Review(step) => review::perform(context, step, campaign),
        Step::Gate { .. } => gate::perform(context, step, campaign),
        Step::Tune(step) => tune::perform(context, step, campaign),
        Step::Measure(step) => measure::perform(context, step, campaign),
        Step::Settle { round, verdict, candidate } => {
            settle::perform(context, *round, verdict, candidate.as_ref(), campaign)
        }
        Step::Learn { round } => learn::perform(context, *round, campaign),
        Step::Finish { reason, stated } => Ok(stated.finished(reason)),
    }
}

/// The error for a step that was called in the wrong state.
fn bug(message: &str) -> CommandError {
    CommandError::new(ErrorKind::Bug, message)
}
