//! Tests and measures a candidate that is about to be kept while the allocator overwrites memory.
//! Its duel was measured without that, which would change the figures.

use super::context::Context;
use super::correctness::cases_at;
use super::repeats::settings_per_case;
use karve_core::campaign::{Campaign, KeepEvidence, ProcessAge};
use karve_core::hypothesis::Candidate;
use karve_core::verdict::StaleMemoryRuling;
use karve_harness::commands::CommandVariant;
use karve_harness::outcome::{BlockFailure, GateResult, IndexedCase, split};
use karve_harness::pair_runner::{BuiltArm, PairRunner};

/// Adds the blocks that show whether the gain depends on what memory held. A candidate that fails
/// where the incumbent does not fails its gate.
pub(super) fn measure(
    context: &mut Context,
    candidate: &Candidate,
    evidence: &mut KeepEvidence,
    campaign: &Campaign,
) -> GateResult<()> {
    let harness = context.harness().with_cases(settings_per_case(campaign)).overwriting_memory()?;
    let Ok(old) = split(context.repos.built(&harness, campaign.incumbent()))? else {
        return Ok(());
    };
    let new = context.repos.built(&harness, &candidate.commit)?.path;
    let shown = campaign.current_round().and_then(|round| round.shown());
    let timed: Vec<usize> = shown.iter().flat_map(|of| &of.cases).map(|of| of.case).collect();
    let cases = cases_at(campaign, &timed);
    let variant = CommandVariant::Usual;
    // Tests that fail on the incumbent as well read such memory themselves.
    if let Err(gate) = split(harness.test(&new, &cases, variant))?
        && split(harness.test(&old.path, &cases, variant))?.is_ok()
    {
        return Err(gate.with_overwritten_memory().into());
    }
    let arm = |tree| BuiltArm { harness: harness.clone(), tree };
    let runner = PairRunner::new(arm(old.path), arm(new), variant);
    let indexed: Vec<IndexedCase> = timed.into_iter().zip(cases).collect();
    while campaign.stale_memory_ruling(evidence) == StaleMemoryRuling::Continue {
        let (device, stop) = (&mut context.device, &context.stop);
        let conditions = device.session.before_block(stop, &device.notices)?;
        let block = runner.block(&indexed, ProcessAge::Usual);
        device.session.after_block();
        match split(block)? {
            Ok(mut block) => {
                block.conditions = Some(Box::new(conditions));
                evidence.stale_memory.push(block);
            }
            Err(BlockFailure::Candidate(gate)) => {
                return Err(gate.with_overwritten_memory().into());
            }
            // The benchmark reads such memory itself, and shows nothing this way.
            Err(BlockFailure::Parent(_)) => {
                evidence.stale_memory.clear();
                break;
            }
        }
    }
    Ok(())
}
