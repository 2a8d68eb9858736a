//! The hidden refs that protect a campaign's commits from garbage collection, and the branch.

use karve_core::campaign::Campaign;
use karve_core::charter::{Branch, Charter};
use karve_harness::git::{ExpectedRef, Oid, Repo};
use karve_os::error::Result;

/// The prefix of a campaign's hidden refs.
pub(crate) fn refs_of(name: &str) -> String {
    format!("refs/karve/{name}")
}

/// The hidden ref of a variant.
pub(crate) fn variant_ref(campaign: &str, round: u32, variant: u32) -> String {
    format!("{}/round-{round}-variant-{}", refs_of(campaign), variant + 1)
}

/// The hidden ref that holds the commit a workspace was extracted from.
pub(crate) fn upstream_ref(charter: &Charter) -> String {
    format!("{}/upstream", refs_of(&charter.name))
}

/// Recreates deleted refs, as far as their commits still exist.
pub(crate) fn restore_refs(repo: &Repo, campaign: &Campaign) -> Result<()> {
    for (name, commit) in missing(repo, campaign)? {
        if repo.tree_of(&commit).is_ok() {
            repo.update_ref(&name, &commit, ExpectedRef::Any)?;
        }
    }
    Ok(())
}

/// Hidden refs that a campaign created and that are gone. The user may delete the branch.
pub fn lost_refs(repo: &Repo, campaign: &Campaign) -> Result<Vec<String>> {
    let names = missing(repo, campaign)?.into_iter().map(|(name, _)| name);
    Ok(names.filter(|name| name.starts_with("refs/karve/")).collect())
}

/// Each missing ref, with the commit it should point to.
fn missing(repo: &Repo, campaign: &Campaign) -> Result<Vec<(String, Oid)>> {
    let (Some(charter), Some(_)) = (campaign.charter(), campaign.preparation()) else {
        return Ok(Vec::new());
    };
    let prefix = refs_of(&charter.name);
    let mut wanted = vec![(format!("{prefix}/base"), campaign.base_commit())];
    for round in campaign.rounds() {
        for made in &round.variants {
            if let Some(candidate) = &made.candidate {
                let name = variant_ref(&charter.name, round.number, made.variant);
                wanted.push((name, &candidate.commit));
            }
        }
        if let Some(candidate) = &round.candidate {
            wanted.push((format!("{prefix}/round-{}", round.number), &candidate.commit));
        }
    }
    if let Some(best) = campaign.lineage().best() {
        wanted.push((format!("{prefix}/best"), &best.commit));
    }
    let mut there = repo.list_refs(&prefix)?;
    if let Branch::Named { name } = &charter.branch {
        let name = format!("refs/heads/{name}");
        there.extend(repo.read_ref(&name)?.map(|oid| (name.clone(), oid)));
        wanted.push((name, campaign.incumbent()));
    }
    let is_there = |name: &str| there.iter().any(|(found, _)| found == name);
    wanted
        .into_iter()
        .filter(|(name, _)| !is_there(name))
        .map(|(name, commit)| Ok((name, Oid::named(commit)?)))
        .collect()
}
