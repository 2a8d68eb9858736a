//! Which artifacts an event names. Each one records the state at the time of its event, so all
//! of them are checked.

use super::Event;
use crate::spending::UnreadableAnswer;

impl Event {
    /// The artifact with the session log of the agent, if there is one.
    pub fn session_log(&self) -> Option<&str> {
        match self {
            Self::Proposed { session_log: log_file, .. }
            | Self::ProposalRefused { session_log: log_file, .. }
            | Self::Implemented { session_log: log_file, .. }
            | Self::NotImplemented { session_log: log_file, .. }
            | Self::Reviewed { session_log: log_file, .. }
            | Self::Learned { session_log: log_file, .. } => log_file.as_deref(),
            Self::Profiled { profile, .. } => profile.report.as_ref()?.session_log.as_deref(),
            Self::TargetDefined { .. }
            | Self::Prepared(_)
            | Self::MutationChecked { .. }
            | Self::TipsRead { .. }
            | Self::KnowledgeRead { .. }
            | Self::CasesAdded { .. }
            | Self::BaselineMeasured(_)
            | Self::FinalProfiled { .. }
            | Self::Chosen { .. }
            | Self::Gated { .. }
            | Self::Tuned { .. }
            | Self::BlockMeasured { .. }
            | Self::BlockFailed { .. }
            | Self::Settled { .. }
            | Self::DeviceAcquired { .. }
            | Self::DeviceReleased { .. }
            | Self::DeviceHelped { .. }
            | Self::Extended { .. }
            | Self::Answered { .. }
            | Self::Finished { .. }
            | Self::Unknown => None,
        }
    }

    /// Turns of an agent whose answers could not be read, so that it was asked again.
    pub fn unread(&self) -> &[UnreadableAnswer] {
        match self {
            Self::Reviewed { earlier, .. } => earlier,
            Self::Profiled { profile, .. } => {
                profile.report.as_ref().map_or(&[], |report| &report.earlier)
            }
            _ => &[],
        }
    }

    /// The artifacts with the session logs of agents, in order.
    pub fn session_logs(&self) -> Vec<&str> {
        let earlier = self.unread().iter().filter_map(|turn| turn.session_log.as_deref());
        earlier.chain(self.session_log()).collect()
    }

    /// Every artifact that it names.
    pub fn artifacts(&self) -> Vec<&str> {
        let mut all = self.session_logs();
        let more = match self {
            Self::BaselineMeasured(baseline) => {
                [baseline.raw.as_deref(), baseline.reference.as_deref()]
            }
            Self::Profiled { profile, .. } | Self::FinalProfiled { profile } => {
                [profile.artifact.as_deref(), profile.assembly.as_deref()]
            }
            Self::Implemented { candidate, .. } => {
                [Some(candidate.patch.as_str()), candidate.whole.as_deref()]
            }
            Self::Tuned { tuned, .. } => {
                let candidate = tuned.candidate.as_ref();
                [candidate.map(|candidate| candidate.patch.as_str()), None]
            }
            Self::BlockMeasured { raw, .. } | Self::BlockFailed { raw, .. } => {
                [raw.as_deref(), None]
            }
            Self::TargetDefined { .. }
            | Self::Prepared(_)
            | Self::MutationChecked { .. }
            | Self::TipsRead { .. }
            | Self::KnowledgeRead { .. }
            | Self::CasesAdded { .. }
            | Self::Proposed { .. }
            | Self::ProposalRefused { .. }
            | Self::NotImplemented { .. }
            | Self::Chosen { .. }
            | Self::Reviewed { .. }
            | Self::Gated { .. }
            | Self::Settled { .. }
            | Self::Learned { .. }
            | Self::DeviceAcquired { .. }
            | Self::DeviceReleased { .. }
            | Self::DeviceHelped { .. }
            | Self::Extended { .. }
            | Self::Answered { .. }
            | Self::Finished { .. }
            | Self::Unknown => [None, None],
        };
        all.extend(more.into_iter().flatten());
        all
    }
}
