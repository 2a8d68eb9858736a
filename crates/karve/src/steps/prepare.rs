//! Finds the base, pins the harness, inspects the host, starts the branch.

use super::context::Context;
use super::{bug, far};
use crate::checks::{check_branch, check_editable, harness_hash};
use crate::refs::refs_of;
use crate::remote::wire::{Outcome, Work};
use crate::tasks::{self, TASK_PATH, TaskCheck};
use crate::workspace;
use karve_core::campaign::{Event, Preparation};
use karve_core::charter::Branch;
use karve_core::measurement::Environment;
use karve_harness::git::{ExpectedRef, Oid};
use karve_numerics::contract::{Arg, Contract};
use karve_os::error::Result;
use karve_os::{host, sandbox};
use std::path::Path;

pub(crate) fn perform(context: &mut Context) -> Result<Event> {
    let head = context.repos.upstream.head()?.oid().clone();
    let upstream = &context.repos.upstream;
    let extracted = workspace::extract(upstream, &context.dir, &context.charter, &head)?;
    let (base, provenance) = match extracted {
        Some((repo, base, provenance)) => {
            context.repos.work = repo;
            (base, Some(provenance))
        }
        None => (head, None),
    };
    check_editable(&context.repos.work, &base, &context.charter)?;
    check_branch(&context.repos.work, &context.charter)?;
    if let Branch::Named { name } = &context.charter.branch {
        context.repos.work.update_ref(&format!("refs/heads/{name}"), &base, ExpectedRef::Absent)?;
    }
    let start = format!("{}/base", refs_of(&context.charter.name));
    context.repos.work.update_ref(&start, &base, ExpectedRef::Any)?;
    let work = Work::Inspect { base: base.to_string() };
    let (environment, args) = match far::ask(context, None, &work, std::slice::from_ref(&base))? {
        None => inspect(context, &base)?,
        Some(Outcome::Inspected { environment, args }) => {
            set_inputs(context, &args);
            (environment, args)
        }
        Some(_) => return Err(bug("the worker inspected nothing")),
    };
    Ok(Event::Prepared(Preparation {
        base_tree: context.repos.work.tree_of(&base)?.to_string(),
        harness_hash: harness_hash(&context.repos.work, &base, &context.charter.editable)?,
        environment,
        base: base.to_string(),
        provenance,
        args,
        task_findings: examine_task(context, &base)?,
    }))
}

/// What the check of an imported task lets through, from its unchanged files.
fn examine_task(context: &mut Context, base: &Oid) -> Result<Vec<String>> {
    let charter = &context.charter;
    let path = Path::new(&charter.workdir).join(TASK_PATH);
    if context.repos.work.read_file(base, &path.to_string_lossy())?.is_none() {
        return Ok(Vec::new());
    }
    let tree = context.repos.fresh("task", base.as_str())?;
    let state = tasks::examine_quickly(&tree.join(&charter.workdir), charter, &context.stop);
    context.repos.remove(&tree)?;
    Ok(match state {
        TaskCheck::None | TaskCheck::Sound(_) => Vec::new(),
        TaskCheck::Faulty(lines) => lines,
        TaskCheck::NotExamined(why) => vec![why],
    })
}

/// Inspects the host that measures, and the arguments of the kernel.
pub(crate) fn inspect(context: &mut Context, base: &Oid) -> Result<(Environment, Vec<Arg>)> {
    sandbox::can_hold(&context.charter.sandbox)?;
    let args = ask_inputs(context, base)?;
    let mut environment = host::environment(&context.stop);
    let layers = sandbox::active(&context.charter.sandbox);
    environment.facts.insert("sandbox".into(), layers);
    context.device.session.knows(&environment);
    Ok((environment, args))
}

/// The arguments that the reference of the unchanged project declares, if the contract leaves
/// them to it. The campaign uses them from now on.
fn ask_inputs(context: &mut Context, base: &Oid) -> Result<Vec<Arg>> {
    let asks = |contract: &&mut Box<Contract>| contract.modules.asks;
    if context.charter.contract.as_mut().filter(asks).is_none() {
        return Ok(Vec::new());
    }
    let tree = context.repos.fresh("inputs", base.as_str())?;
    let args = context.harness().ask_inputs(&tree);
    context.repos.remove(&tree)?;
    let args = args?;
    set_inputs(context, &args);
    Ok(args)
}

fn set_inputs(context: &mut Context, args: &[Arg]) {
    if let (Some(contract), false) = (&mut context.charter.contract, args.is_empty()) {
        contract.args = args.to_vec();
    }
}
