//! `karve clean --on`: copies on another machine.

use super::{CampaignTrace, CleanArgs, TraceState, size};
use crate::commands::remote::{host_for, named, nothing};
use crate::project::ProjectArgs;
use crate::remote::copies::{CopyName, FarCopy};
use crate::remote::host::RemoteHost;
use crate::remote::wire::{Outcome, Work};
use crate::{remote, session, ui};
use karve_harness::git::Repo;
use karve_harness::store;
use karve_os::error::{CommandError, ErrorKind, Result};
use karve_os::process::StopFlag;
use karve_os::text::counted;
use serde::Serialize;
use std::collections::BTreeMap;

/// Digits of a program's digest that are shown.
const DIGEST_CHARS: usize = 12;
/// Seconds of a day.
const DAY_S: u64 = 86_400;

/// What a line of the list is about; lines are in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum RowKind {
    Campaign,
    Project,
    OtherProject,
    Program,
}

/// One line of the list: a copy on each host of the remote.
#[derive(Debug, Serialize)]
struct CopyRow {
    name: String,
    state: String,
    bytes: u64,
    #[serde(skip)]
    is_finished: bool,
    #[serde(skip)]
    is_used: bool,
    /// The host, by its place in the list of hosts, and the name there.
    #[serde(skip)]
    copies: Vec<(usize, CopyName)>,
}

/// Lists copies, or removes those that are named.
pub(super) fn run(
    args: &CleanArgs,
    place: &ProjectArgs,
    remote: &str,
    repo: &Repo,
    here: &[CampaignTrace],
) -> Result<()> {
    let config = named(place, remote)?;
    let stop = StopFlag::new();
    session::watch_signals_at_once(&stop, "stopping")?;
    let mut hosts = vec![host_for(None, config, &stop)];
    for helper in hosts[0].helpers() {
        if hosts.iter().all(|host| host.place() != helper.place()) {
            hosts.push(helper);
        }
    }
    let rows = rows(&mut hosts, &remote::project_id(repo), here)?;
    let chosen = chosen(args, &rows)?;
    if chosen.is_empty() {
        show(args, remote, &rows);
        return Ok(());
    }
    args.agree(chosen.iter().map(|row| row.name.as_str()))?;
    // None of them may start meanwhile.
    let of_project = |row: &&CopyRow| matches!(row.copies[0].1, CopyName::Project { .. });
    let has_project = chosen.iter().any(of_project);
    let mut locks = Vec::new();
    for trace in here {
        let is_chosen = has_project || chosen.iter().any(|row| row.name == trace.campaign);
        if let (true, Some(dir)) = (is_chosen, &trace.dir) {
            locks.push(store::lock(dir, &session::holder())?);
        }
    }
    for (number, host) in hosts.iter_mut().enumerate() {
        let copies = chosen.iter().flat_map(|row| &row.copies);
        let names: Vec<CopyName> =
            copies.filter(|(of, _)| *of == number).map(|(_, name)| name.clone()).collect();
        if !names.is_empty() {
            copies_of(host, &Work::RemoveCopies { names })?;
        }
        host.release();
    }
    drop(locks);
    if args.json {
        ui::out_json(&chosen);
    } else {
        for row in chosen {
            ui::outln(&format!("removed {} from {remote}, {}", row.name, size(row.bytes)));
        }
    }
    Ok(())
}

fn copies_of(host: &mut RemoteHost, work: &Work) -> Result<Vec<FarCopy>> {
    match host.ask(&nothing(), work)?.outcome {
        Outcome::Copies { copies } => Ok(copies),
        _ => Err(CommandError::new(ErrorKind::Bug, "the worker did something else")),
    }
}

/// What is on the hosts: campaigns of this project, projects, and versions of karve.
fn rows(hosts: &mut [RemoteHost], own: &str, here: &[CampaignTrace]) -> Result<Vec<CopyRow>> {
    let mut rows: BTreeMap<(RowKind, String), CopyRow> = BTreeMap::new();
    for (number, host) in hosts.iter_mut().enumerate() {
        for copy in copies_of(host, &Work::Copies)? {
            // Each device that helps has a copy of its own.
            let is_own = |project: &str| project.split('-').next() == Some(own);
            let (kind, name) = match &copy.name {
                CopyName::Campaign { project, .. } if !is_own(project) => continue,
                CopyName::Campaign { campaign, .. } => (RowKind::Campaign, campaign.clone()),
                CopyName::Project { project } => {
                    let id = project.split('-').next().unwrap_or(project);
                    let is_own = is_own(project);
                    (if is_own { RowKind::Project } else { RowKind::OtherProject }, id.to_owned())
                }
                CopyName::Program { digest } => {
                    let digest = digest.get(..DIGEST_CHARS).unwrap_or(digest);
                    (RowKind::Program, format!("karve-{digest}"))
                }
            };
            let trace = trace_of(&copy, here);
            let row = rows.entry((kind, name.clone())).or_insert_with(|| CopyRow {
                state: trace
                    .map_or_else(|| described(&copy, kind), |trace| trace.name().to_owned()),
                is_finished: matches!(trace, Some(TraceState::Finished | TraceState::Removed)),
                is_used: false,
                bytes: 0,
                copies: Vec::new(),
                name,
            });
            if copy.is_used {
                (row.is_used, row.is_finished) = (true, false);
                row.state = "in use".to_owned();
            }
            row.bytes += copy.bytes;
            row.copies.push((number, copy.name));
        }
    }
    Ok(rows.into_values().collect())
}

/// What is known here of the campaign that a copy belongs to.
fn trace_of(copy: &FarCopy, here: &[CampaignTrace]) -> Option<TraceState> {
    let CopyName::Campaign { campaign, .. } = &copy.name else {
        return None;
    };
    let trace = here.iter().find(|trace| trace.campaign == *campaign);
    Some(trace.map_or(TraceState::Removed, |trace| trace.state))
}

fn described(copy: &FarCopy, kind: RowKind) -> String {
    match kind {
        RowKind::Program => format!("a version of karve, {}", idle(copy.idle_s)),
        RowKind::OtherProject => format!("another project, {}", idle(copy.idle_s)),
        RowKind::Project | RowKind::Campaign => "this project, with its campaigns".to_owned(),
    }
}

fn idle(seconds: u64) -> String {
    let days = usize::try_from(seconds / DAY_S).unwrap_or(usize::MAX);
    format!("changed {} ago", counted(days, "day"))
}

fn chosen<'a>(args: &CleanArgs, rows: &'a [CopyRow]) -> Result<Vec<&'a CopyRow>> {
    if args.finished {
        return Ok(rows.iter().filter(|row| row.is_finished).collect());
    }
    let one = |name: &String| {
        let row = rows.iter().find(|row| row.name == *name).ok_or_else(|| {
            CommandError::usage(format!("there is no copy of {name:?} there"))
                .hint("\"karve clean --on REMOTE\" lists them")
        })?;
        match row.is_used {
            true => Err(CommandError::new(ErrorKind::Busy, format!("{name} is in use there"))
                .hint("\"karve clean --on REMOTE\" shows what is in use; try it again later")),
            false => Ok(row),
        }
    };
    args.names.iter().map(one).collect()
}

fn show(args: &CleanArgs, remote: &str, rows: &[CopyRow]) {
    if args.json {
        return ui::out_json(&rows);
    }
    if rows.is_empty() {
        return ui::outln("there is nothing to remove");
    }
    for row in rows {
        ui::outln(&format!("{:<44} {:>9}  {}", row.name, size(row.bytes), row.state));
    }
    ui::outln(&format!("\"karve clean --on {remote} NAME\" removes one"));
}
