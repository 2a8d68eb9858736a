//! While an agent works for a campaign that is measured elsewhere, its commands go to the device
//! that the campaign holds.

use super::context::{Context, Repositories};
use super::far;
use crate::remote::engine::quoted_line;
use crate::remote::exec::{self, ExecRequest, ExecRun, ExecTask};
use crate::remote::host::RemoteHost;
use crate::remote::wire::{Outcome, Work};
use karve_agents::{ExecAccess, Secrets};
use karve_core::charter::Charter;
use karve_harness::git::{CandidateFilter, CommitNote, Oid};
use karve_harness::project_file;
use karve_harness::store::CampaignDir;
use karve_os::error::{CommandError, ErrorKind, Result};
use karve_os::process::StopFlag;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread;

/// Where an agent's commands arrive.
pub(super) struct ExecDoor {
    listener: UnixListener,
    pub(super) access: ExecAccess,
}

/// The files that a command sees.
pub(super) struct ExecFiles<'a> {
    pub(super) tree: &'a Path,
    /// The commit that they are compared with.
    pub(super) base: &'a str,
    pub(super) repos: &'a Repositories,
    /// What does not leave this machine.
    pub(super) secrets: &'a Secrets,
}

/// What a command needs.
pub(super) struct ExecParts<'a> {
    pub(super) files: ExecFiles<'a>,
    pub(super) dir: &'a CampaignDir,
    pub(super) charter: &'a Charter,
}

/// Raises a flag whatever happens.
struct RaisedAtEnd<'a>(&'a StopFlag);

impl Drop for RaisedAtEnd<'_> {
    fn drop(&mut self) {
        self.0.request();
        self.0.request();
    }
}

impl ExecDoor {
    /// A door for an agent that is a program, if the device is elsewhere.
    pub(super) fn open(context: &Context) -> Result<Option<Self>> {
        let karve = std::env::current_exe().ok();
        let is_wanted = context.remote.is_some() && context.acting.agent.reads_worktree();
        let Some(karve) = karve.filter(|_| is_wanted) else {
            return Ok(None);
        };
        let socket = context.dir.join("tmp").join("exec");
        let listener = exec::open(&socket)?;
        Ok(Some(Self { listener, access: ExecAccess { socket, karve } }))
    }

    /// Answers requests while a turn lasts. A command that still runs at its end is ended.
    pub(super) fn during<T>(
        &self,
        parts: &ExecParts<'_>,
        host: &mut RemoteHost,
        turn: impl FnOnce() -> T,
    ) -> T {
        let over = StopFlag::new();
        host.cancelled_by(&over);
        let ended = thread::scope(|scope| {
            let (over, host) = (&over, &mut *host);
            scope.spawn(move || {
                exec::serve(&self.listener, over, |request| parts.run(host, request));
            });
            let _end = RaisedAtEnd(over);
            turn()
        });
        host.cancelled_by(&StopFlag::new());
        // An agent may think for long before its next turn.
        host.rest();
        ended
    }
}

impl ExecParts<'_> {
    fn run(&self, host: &mut RemoteHost, request: &ExecRequest) -> Result<ExecRun> {
        let commit = self.files.commit()?;
        let place = Path::new(&request.dir);
        let place = place.strip_prefix(self.files.tree).unwrap_or(Path::new(""));
        let task = ExecTask {
            commit: commit.to_string(),
            dir: place.to_string_lossy().into_owned(),
            line: quoted_line(&request.command),
            limit_s: request.limit_s,
        };
        let repos = (&self.files.repos.upstream, &self.files.repos.work);
        let near = far::near_side(self.dir, self.charter, repos, &[commit]);
        match host.ask(&near, &Work::Exec { task })?.outcome {
            Outcome::Ran { ran } => Ok(ran),
            _ => Err(CommandError::new(ErrorKind::Bug, "the worker did something else")),
        }
    }
}

impl ExecFiles<'_> {
    /// All files of the worktree that git would add, without keys.
    fn commit(&self) -> Result<Oid> {
        let all = project_file::glob_set(&["**".to_owned()])?;
        let forbids = |bytes: &[u8]| self.secrets.are_in(bytes);
        let filter = CandidateFilter { editable: &all, forbids: &forbids };
        let note = CommitNote { message: "The files of an agent\n", date: 0 };
        let base = Oid::named(self.base)?;
        Ok(self.repos.work.commit_within(self.tree, &base, filter, &note)?.oid)
    }
}
