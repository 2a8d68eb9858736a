//! Finds the base, pins the harness, inspects the host, starts the branch.

use super::{World, refs_of, workspace};
use karve_core::campaign::{Event, Preparation};
use karve_core::charter::{Branch, Charter, WorkMode};
use karve_harness::git::{ExpectedRef, Oid, Repo};
use karve_harness::project_file;
use karve_numerics::contract::{Arg, Contract};
use karve_os::error::{CommandError, Result};
use karve_os::files;
use karve_os::{host, sandbox};

impl World {
    pub(super) fn prepare(&mut self) -> Result<Event> {
        let head = self.upstream.head()?.oid().clone();
        let (base, provenance) = match workspace::extract(self, &head)? {
            Some((repo, base, provenance)) => {
                self.repo = repo;
                (base, Some(provenance))
            }
            None => (head, None),
        };
        check_editable(&self.repo, &base, &self.charter)?;
        check_branch(&self.repo, &self.charter)?;
        if let Branch::Named { name } = &self.charter.branch {
            self.repo
                .update_ref(&format!("refs/heads/{name}"), &base, ExpectedRef::Absent)?;
        }
        let start = format!("{}/base", refs_of(&self.charter.name));
        self.repo.update_ref(&start, &base, ExpectedRef::Any)?;
        let args = self.ask_inputs(&base)?;
        let mut environment = host::environment(&self.stop);
        let layers = sandbox::active(&self.charter.sandbox);
        environment.facts.insert("sandbox".into(), layers);
        self.device.knows(&environment);
        Ok(Event::Prepared(Preparation {
            base_tree: self.repo.tree_of(&base)?.to_string(),
            harness_hash: harness_hash(&self.repo, &base, &self.charter.editable)?,
            environment,
            base: base.to_string(),
            provenance,
            args,
        }))
    }
}

impl World {
    /// The arguments that the reference of the unchanged project declares, if the contract leaves
    /// them to it. The campaign uses them from now on.
    fn ask_inputs(&mut self, base: &Oid) -> Result<Vec<Arg>> {
        let asks = |contract: &&mut Box<Contract>| contract.modules.asks;
        if self.charter.contract.as_mut().filter(asks).is_none() {
            return Ok(Vec::new());
        }
        let tree = self.trees.fresh(&self.repo, "inputs", base.as_str())?;
        let args = self.harness().ask_inputs(&tree);
        self.trees.remove(&self.repo, &tree)?;
        let args = args?;
        if let Some(contract) = &mut self.charter.contract {
            contract.args.clone_from(&args);
        }
        Ok(args)
    }
}

/// Refuses a charter that no campaign can start with, before anything is written: a charter in the
/// log can no longer be fixed.
pub fn can_start(upstream: &Repo, charter: &Charter) -> Result<()> {
    check_editable(upstream, upstream.head()?.oid(), charter)?;
    match charter.mode {
        WorkMode::Repo => check_branch(upstream, charter),
        WorkMode::Workspace { .. } => Ok(()),
    }
}

/// Refuses a checked-out branch, which would change under the user.
fn check_branch(repo: &Repo, charter: &Charter) -> Result<()> {
    let Branch::Named { name } = &charter.branch else {
        return Ok(());
    };
    let Some(path) = repo.checked_out(name)? else {
        return Ok(());
    };
    Err(CommandError::usage(format!(
        "the branch {name} is checked out in {}",
        path.display()
    ))
    .hint("switch that checkout to another branch, or set git.branch in karve.toml"))
}

/// At least one file must be editable, or no candidate can exist.
pub fn check_editable(repo: &Repo, base: &Oid, charter: &Charter) -> Result<()> {
    let globs = project_file::glob_set(&charter.editable)?;
    if repo
        .list_files(base)?
        .iter()
        .any(|file| globs.is_match(file))
    {
        return Ok(());
    }
    Err(CommandError::usage(format!(
        "no committed file matches sources.editable ({})",
        charter.editable.join(", ")
    ))
    .hint("commit the kernel, or fix sources.editable in karve.toml"))
}

/// One digest of all read-only files of a commit.
pub fn harness_hash(repo: &Repo, commit: &Oid, editable: &[String]) -> Result<String> {
    let globs = project_file::glob_set(editable)?;
    let mut list = String::new();
    for entry in repo.entries_outside(commit, &globs)? {
        list.push_str(&format!(
            "{} {} {}\n",
            entry.mode.as_str(),
            entry.oid,
            entry.path
        ));
    }
    Ok(files::sha256_hex(list.as_bytes()))
}
