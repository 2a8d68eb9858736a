//! Profiles the incumbent: what the project's own profile command prints, read as far as karve
//! knows its tool, and how near each call is to the roofline.

use super::World;
use crate::error::Result;
use crate::profilers::take;
use crate::roofline::cases;
use crate::store;
use karve_core::campaign::{Campaign, Event};
use karve_core::charter::CaseSet;
use karve_core::policy::Preset;
use karve_core::profile::roofline::ceilings;
use karve_core::profile::{
    Bottleneck, KERNELS_MAX, KernelProfile, Profile, ProfileDepth, RuleSet, Source, diagnose,
};

/// Characters of a profile that the campaign remembers, from its end.
const DIGEST_CHARS: usize = 4_000;
/// Kernels that a campaign remembers.
const KERNELS_KEPT: usize = 4;

impl World {
    pub(super) fn profile(
        &mut self,
        round: u32,
        (commit, depth): (&str, ProfileDepth),
        campaign: &Campaign,
    ) -> Result<Event> {
        let mut profile = Profile {
            commit: commit.to_owned(),
            depth,
            bottleneck: Bottleneck::Unknown,
            share: None,
            digest: String::new(),
            artifact: None,
            skipped: None,
            kernels: Vec::new(),
            diagnosis: None,
        };
        let harness = self.harness();
        let built = match self.trees.built(&self.repo, &harness, commit)? {
            Ok(built) => built,
            Err(gate) => {
                profile.skipped = Some(gate.describe());
                return Ok(Event::Profiled { round, profile });
            }
        };
        let first = campaign.cases_of(CaseSet::Full).into_iter().next();
        let case = first.and_then(|index| campaign.case(index));
        let Some(run) = harness.profile(&built.path, case.as_ref(), depth.name())? else {
            profile.skipped = Some("there is no profile command".into());
            return Ok(Event::Profiled { round, profile });
        };
        let text = format!("{}{}", run.stdout.text(), run.stderr.text());
        profile.artifact = Some(store::put_artifact(&self.dir, text.as_bytes())?);
        if !run.exit.success() {
            profile.skipped = Some(crate::harness::excerpt(&run));
            return Ok(Event::Profiled { round, profile });
        }
        let skip = text.chars().count().saturating_sub(DIGEST_CHARS);
        profile.digest = text.chars().skip(skip).collect();
        self.explain(&mut profile, &run.stdout.bytes, campaign);
        Ok(Event::Profiled { round, profile })
    }

    /// What follows from the output: counters where its tool is known, else what its words say.
    fn explain(&self, profile: &mut Profile, bytes: &[u8], campaign: &Campaign) {
        profile.bottleneck = bottleneck_in(&profile.digest);
        profile.share = share_in(&profile.digest);
        if let Ok(Ok((_, mut parsed))) = take::read_any(bytes) {
            parsed.kernels.truncate(KERNELS_KEPT.min(KERNELS_MAX));
            profile.kernels = parsed.kernels;
            profile.kernels.extend(parsed.timeline);
        }
        add_ceiling(&mut profile.kernels, campaign);
        if let Some(kernel) = profile.kernels.first() {
            let rules = rules_of(self.charter.policy.preset);
            let diagnosis = diagnose(kernel, rules);
            if profile.bottleneck == Bottleneck::Unknown {
                profile.bottleneck = diagnosis.bottleneck;
            }
            profile.diagnosis = Some(Box::new(diagnosis));
        }
    }
}

/// Whose lines a policy draws.
fn rules_of(preset: Preset) -> RuleSet {
    match preset {
        Preset::Strict => RuleSet::Karve,
        Preset::Primus => RuleSet::Primus,
        Preset::Tilegym => RuleSet::Tilegym,
        Preset::Coordinator => RuleSet::Coordinator,
        Preset::HyperMla => RuleSet::HyperMla,
    }
}

/// How near the first case is to its ceiling, as counters of the first kernel.
fn add_ceiling(kernels: &mut [KernelProfile], campaign: &Campaign) {
    let baseline = campaign
        .baseline()
        .and_then(|baseline| baseline.roof.as_ref());
    let (Some(charter), Some(roof)) = (campaign.charter(), baseline) else {
        return;
    };
    let times = cases::of_incumbent(campaign);
    let found = ceilings(charter, &cases::visible(campaign), roof, &times);
    let ceiling = found.first().map(|(_, ceiling)| *ceiling);
    let (Some(kernel), Some(ceiling)) = (kernels.first_mut(), ceiling) else {
        return;
    };
    let from = |quote: &str| Source::at("roofline", 0, quote);
    kernel.set(
        "intensity",
        ceiling.intensity,
        from("metric.work over metric.bytes"),
    );
    kernel.set(
        "ridge",
        ceiling.ridge,
        from("peak over bandwidth of the baseline"),
    );
    if let Some(share) = ceiling.share {
        kernel.set(
            "ceiling_pct",
            share * 100.0,
            from("least time over measured time"),
        );
    }
}

/// The class that a profile names in a line like `Bottleneck: Memory-bound`.
fn bottleneck_in(digest: &str) -> Bottleneck {
    let after = |line: &str| {
        let lower = line.to_lowercase();
        let (_, rest) = lower.split_once("bottleneck")?;
        Some(Bottleneck::by_name(
            rest.trim_start_matches([':', ' ', '*', '=']),
        ))
    };
    digest
        .lines()
        .filter_map(after)
        .find(|b| *b != Bottleneck::Unknown)
        .unwrap_or(Bottleneck::Unknown)
}

/// The share of the time that a profile names in a line like `Kernel share: 40%`, 0 to 1.
fn share_in(digest: &str) -> Option<f64> {
    let of_line = |line: &str| {
        let lower = line.to_lowercase();
        let (_, rest) = lower.split_once("kernel share")?;
        let (number, _) = rest.split_once('%')?;
        let number = number.trim_start_matches([':', ' ', '*', '=']).trim();
        number.parse::<f64>().ok().map(|percent| percent / 100.0)
    };
    let mut shares = digest.lines().filter_map(of_line);
    shares.rfind(|share| (0.0..=1.0).contains(share))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_may_name_the_share_of_the_kernel() {
        assert_eq!(share_in("x\n**Kernel share**: 40 %\n"), Some(0.4));
        assert_eq!(share_in("kernel share=12.5%"), Some(0.125));
        for none in [
            "",
            "Kernel share: most of it",
            "kernel share: 140%",
            "share: 4%",
        ] {
            assert_eq!(share_in(none), None, "{none}");
        }
    }
}
