//! A command with all its descendants, and how they are killed.
//!
//! Four layers determine which processes belong to a command:
//!
//! ```text
//! control group   what was started in the command's leaf; exact, if a leaf can be created
//! kinship         its process group, its session, and the descendants by parent id;
//!                 karve is the subreaper, so an orphan becomes a child of karve, not of init
//! mark            KARVE_RUN in the environment: finds the orphan whose relatives are gone
//! adoption        a new child of karve that karve did not start; only if nothing else was started
//!                 meanwhile: finds the orphan that left its group and cleared its environment
//! ```
//!
//! Several threads may run commands at once, so nothing is killed or reaped because it is a child
//! of karve, only because one of the layers assigns it to this command. The command itself is
//! reaped last: until then its id cannot be reused for another process, group or session.

use std::cell::Cell;
use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};

use super::cgroup::CommandCgroup;
use super::sys::{Pid, ResourceUsage, SpawnedChild, WaitMode};
use super::table::ProcessInfo;
use super::{CAMPAIGN_MARK, RUN_MARK, cgroup, sys, table};

/// How often the processes are scanned until none is left; a process that hangs in the kernel,
/// in a driver for example, may outlive all scans. With the pauses about four seconds.
const PASSES_MAX: u32 = 200;
const PAUSE_MIN: Duration = Duration::from_micros(250);
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// How many inconclusive passes may find nothing before the result is accepted.
const DOUBTS_MAX: u32 = 8;

/// How often the newest orphans are scanned in an inconclusive pass, and how many.
const HUNT_ROUNDS: u32 = 16;
const HUNT_WIDTH: usize = 8;

/// How long the command itself may take to die once it is killed.
const DEATH_LIMIT: Duration = Duration::from_secs(60);

/// How often to poll for its death if the kernel does not notify us.
const LOOK_PAUSE: Duration = Duration::from_millis(1);

/// How long what a command left behind may take to end by itself: helpers of interpreters do.
const GRACE: Duration = Duration::from_millis(200);

/// How many commands run.
static RUNNING: AtomicU32 = AtomicU32::new(0);

/// What there was before a command was started. The command runs as long as this exists.
#[derive(Debug)]
pub(super) struct BeforeStart {
    is_alone: bool,
    starts: u64,
    children: Vec<Pid>,
}

impl BeforeStart {
    pub(super) fn look() -> Self {
        let is_alone = RUNNING.fetch_add(1, Ordering::SeqCst) == 0;
        let starts = sys::starts();
        Self { is_alone, starts, children: table::children() }
    }

    /// Whether only this command can have left something since.
    fn is_alone(&self) -> bool {
        let is_alone = self.is_alone && RUNNING.load(Ordering::SeqCst) == 1;
        // The command itself counts once.
        is_alone && sys::starts() == self.starts + 1
    }
}

impl Drop for BeforeStart {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What the environment of a process says about its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProcessOwner {
    Ours,
    Other,
    Unknown,
}

/// A command with all its descendants.
#[derive(Debug)]
pub(super) struct ProcessTree {
    child: SpawnedChild,
    /// The mark, for the command and for commands that a nested karve starts.
    mark: String,
    leaf: Option<CommandCgroup>,
    /// Whether the command left nothing in its leaf.
    is_empty: bool,
    /// What the reaped orphans used.
    usage: ResourceUsage,
    /// The first process of its namespace sandbox, which adopts its orphans.
    namespace: Option<Pid>,
    /// What there was before, if orphans are also found by adoption.
    before: Option<BeforeStart>,
}

impl ProcessTree {
    /// The tree of a child that carries the mark, and was started in the leaf if there is one.
    pub(super) fn new(child: SpawnedChild, mark: String, leaf: Option<CommandCgroup>) -> Self {
        let leaf = leaf.filter(|_| child.in_cgroup);
        Self {
            child,
            mark,
            leaf,
            is_empty: false,
            usage: ResourceUsage::default(),
            namespace: None,
            before: None,
        }
    }

    /// The same tree, whose orphans are also found by adoption.
    pub(super) fn after(mut self, before: BeforeStart) -> Self {
        self.before = Some(before);
        self
    }

    /// The same tree in a namespace sandbox.
    pub(super) fn in_namespace(mut self, room: Option<Pid>) -> Self {
        // The leaf is more precise, also while other commands are in the same sandbox.
        self.namespace = room.filter(|_| self.leaf.is_none());
        self
    }

    /// The command itself.
    pub(super) fn child(&self) -> &SpawnedChild {
        &self.child
    }

    /// How many processes it has, and their total private memory.
    pub(super) fn in_use(&self) -> (u64, u64) {
        let pids = self.pids();
        let memory_bytes = pids.iter().map(|pid| table::memory_bytes(*pid)).sum();
        (pids.len() as u64, memory_bytes)
    }

    /// Its processes.
    pub(super) fn pids(&self) -> Vec<Pid> {
        if let Some(leaf) = &self.leaf {
            return leaf.pids().into_iter().collect();
        }
        let (processes, _) = table::all();
        let main = self.child.pid;
        let own = table::with_descendants(&processes, |p| {
            p.pid == main || p.group == main || p.session == main
        });
        own.into_iter().map(|p| p.pid).collect()
    }

    /// Kills what a finished command left behind; returns how many were alive.
    pub(super) fn end_orphans(&mut self) -> u32 {
        // The usual case, and the reason why most runs need not scan all processes.
        let is_empty = self.leaf.as_ref().is_some_and(CommandCgroup::is_empty);
        self.is_empty = is_empty && self.adopted().iter().all(|p| p.dead);
        if self.is_empty {
            return 0;
        }
        let (left, doubt) = self.alive();
        let lives = |p: &ProcessInfo| table::process(p.pid).is_some_and(|now| !now.dead);
        let since = Instant::now();
        while !doubt && left.iter().any(lives) && since.elapsed() < GRACE {
            thread::sleep(PAUSE_MAX);
        }
        self.end()
    }

    /// Children of karve that neither were there before nor were started by karve.
    fn adopted(&self) -> Vec<ProcessInfo> {
        let Some(before) = &self.before else {
            return Vec::new();
        };
        let is_new = |pid: &Pid| *pid != self.child.pid && !before.children.contains(pid);
        let new = table::children().into_iter().filter(is_new);
        let found: Vec<ProcessInfo> = new.filter_map(table::process).collect();
        // Asked afterward: what is started later is not in the list.
        if before.is_alone() { found } else { Vec::new() }
    }

    /// Kills the command and all its descendants; returns how many descendants were alive.
    pub(super) fn end(&mut self) -> u32 {
        // By the time it is looked up in the table, a process may have been replaced by a child.
        let mut ended = self.leaf.as_ref().map(CommandCgroup::pids).unwrap_or_default();
        ended.remove(&self.child.pid);
        repeat(|| {
            let (alive, doubt) = self.alive();
            let pids = alive.iter().map(|p| p.pid);
            ended.extend(pids.filter(|&pid| pid != self.child.pid));
            // The table was read first: once parents are killed it no longer shows kinship.
            if let Some(leaf) = &self.leaf {
                leaf.kill();
            }
            sys::kill_group(self.child.pid);
            alive.iter().for_each(table::kill);
            let is_empty = self.leaf.as_ref().is_none_or(CommandCgroup::is_empty);
            let hunted = if doubt { self.hunt() } else { Vec::new() };
            ended.extend(&hunted);
            scan_result(alive.is_empty() && hunted.is_empty() && is_empty, doubt)
        });
        count(&ended)
    }

    /// Kills orphans with our mark as they are found, without reading the whole table first: one
    /// that is replaced by a child every few milliseconds would always be gone by then.
    fn hunt(&self) -> Vec<Pid> {
        let mut killed = Vec::new();
        for _ in 0..HUNT_ROUNDS {
            for pid in table::children().into_iter().take(HUNT_WIDTH) {
                if pid != self.child.pid
                    && let Some(orphan) = table::process(pid).filter(|p| !p.dead)
                    && self.mark_of(pid) == ProcessOwner::Ours
                {
                    table::kill(&orphan);
                    killed.push(pid);
                }
            }
        }
        killed
    }

    /// The live members, and whether there may be more; dead ones that we adopted are reaped.
    fn alive(&mut self) -> (Vec<ProcessInfo>, bool) {
        let me = std::process::id() as Pid;
        let (members, doubt) = self.members();
        let (dead, alive): (Vec<_>, Vec<_>) = members.into_iter().partition(|p| p.dead);
        let main = self.child.pid;
        for orphan in dead.iter().filter(|p| p.parent == me && p.pid != main) {
            self.reap(orphan.pid);
        }
        (alive, doubt)
    }

    /// The members according to the table, and whether an orphan may also be one.
    fn members(&self) -> (Vec<ProcessInfo>, bool) {
        let me = std::process::id() as Pid;
        let main = self.child.pid;
        let mut in_leaf = self.leaf.as_ref().map(CommandCgroup::pids).unwrap_or_default();
        in_leaf.extend(self.adopted().iter().map(|p| p.pid));
        let (processes, vanished) = table::all();
        let born = processes.iter().find(|p| p.pid == main).map_or(0, |p| p.started);
        let holds = |pid| self.leaf.as_ref().is_some_and(|leaf| leaf.holds(pid));
        let doubt = Cell::new(vanished);
        let members = table::with_descendants(&processes, |p| {
            let is_kin = p.pid == main || p.group == main || p.session == main;
            let is_kin = is_kin || self.namespace == Some(p.parent);
            if p.pid == me || is_kin || in_leaf.contains(&p.pid) {
                return p.pid != me;
            }
            let mark = match p.dead {
                true if p.parent == me && holds(p.pid) => ProcessOwner::Ours,
                _ if p.started < born => ProcessOwner::Other,
                // It no longer has an environment, and may have left a child.
                true if p.parent == me => ProcessOwner::Unknown,
                true => ProcessOwner::Other,
                false => self.mark_of(p.pid),
            };
            // Kernel threads have no environment either, and no session.
            doubt.set(doubt.get() || (mark == ProcessOwner::Unknown && p.session != 0));
            mark == ProcessOwner::Ours
        });
        (members, doubt.get())
    }

    fn mark_of(&self, pid: Pid) -> ProcessOwner {
        // During an exec a process briefly has no environment, and one that ended since the table
        // was read may have left a child that is not in it.
        let environ = match table::environ(pid) {
            Ok(environ) if !environ.is_empty() => environ,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return ProcessOwner::Other;
            }
            Ok(_) | Err(_) => return ProcessOwner::Unknown,
        };
        let value = table::parse_env(&environ, RUN_MARK);
        match value.and_then(|value| value.strip_prefix(self.mark.as_bytes())) {
            Some(rest) if rest.is_empty() || rest.starts_with(b"/") => ProcessOwner::Ours,
            Some(_) | None => ProcessOwner::Other,
        }
    }

    fn reap(&mut self, pid: Pid) {
        if let Ok(Some((_, usage))) = sys::wait(pid, WaitMode::Look) {
            self.usage.add(usage);
        }
    }

    /// Returns the status of the command, which has ended or been killed, and what the tree used.
    pub(super) fn finish(mut self) -> io::Result<(i32, ResourceUsage)> {
        let since = Instant::now();
        let (status, usage) = loop {
            if let Some(ended) = sys::wait(self.child.pid, WaitMode::Look)? {
                break ended;
            }
            if since.elapsed() > DEATH_LIMIT {
                return Err(io::ErrorKind::TimedOut.into());
            }
            thread::sleep(LOOK_PAUSE);
        };
        self.usage.add(usage);
        self.reap_quiet_orphans();
        let usage = self.usage;
        if self.is_empty
            && let Some(leaf) = self.leaf
        {
            leaf.keep_spare();
        }
        Ok((status, usage))
    }

    /// Reaps descendants that were orphaned and ended unnoticed while the command ran.
    ///
    /// Only the leaf shows whose they were. Most runs have none, which takes one call to find out.
    fn reap_quiet_orphans(&mut self) {
        let Some(leaf) = &self.leaf else { return };
        if !sys::has_ended(None) {
            return;
        }
        let me = std::process::id() as Pid;
        let orphans: Vec<Pid> = table::all()
            .0
            .iter()
            .filter(|p| p.dead && p.parent == me && leaf.holds(p.pid))
            .map(|p| p.pid)
            .collect();
        orphans.into_iter().for_each(|pid| self.reap(pid));
    }
}

/// Kills every process that carries the tag, with its descendants; see [`super::end_tagged`].
pub(super) fn end_tagged(tag: &str) -> u32 {
    let carries = |environ: &[u8]| {
        let value = table::parse_env(environ, CAMPAIGN_MARK);
        value == Some(tag.as_bytes())
    };
    end_carriers(&cgroup::CgroupOwner::Tag(tag), &carries)
}

/// Kills what a dead karve process has started; see [`super::end_of_karve`].
pub(super) fn end_of_karve(pid: u32, mark: &str) -> u32 {
    let carries = |environ: &[u8]| {
        let value = table::parse_env(environ, RUN_MARK);
        let rest = value.and_then(|value| value.strip_prefix(mark.as_bytes()));
        rest.is_some_and(|rest| rest.starts_with(b"-"))
    };
    end_carriers(&cgroup::CgroupOwner::Karve(pid), &carries)
}

/// Kills every process in such a leaf or with such an environment, with its descendants.
fn end_carriers(whose: &cgroup::CgroupOwner<'_>, carries: &dyn Fn(&[u8]) -> bool) -> u32 {
    let mut ended = HashSet::new();
    repeat(|| {
        let alive = carriers(whose, carries);
        ended.extend(alive.iter().map(|p| p.pid));
        alive.iter().for_each(table::kill);
        // Marks are invisible during an exec, so an empty result is accepted only after a while.
        scan_result(alive.is_empty(), true)
    });
    cgroup::remove_leftover(whose);
    count(&ended)
}

fn carriers(whose: &cgroup::CgroupOwner<'_>, carries: &dyn Fn(&[u8]) -> bool) -> Vec<ProcessInfo> {
    let (processes, _) = table::all();
    let spared = table::with_ancestors(&processes, std::process::id() as Pid);
    let in_leaf = cgroup::pids_in(whose);
    let carries = |pid| carries(&table::environ(pid).unwrap_or_default());
    let mut found = table::with_descendants(&processes, |p| {
        !spared.contains(&p.pid) && (in_leaf.contains(&p.pid) || carries(p.pid))
    });
    found.retain(|p| !p.dead);
    found
}

/// The result of a pass.
enum ScanResult {
    /// Some were found, and killed.
    Somebody,
    /// None was found, but one may have been missed.
    Doubt,
    Nobody,
}

fn scan_result(is_empty: bool, doubt: bool) -> ScanResult {
    match (is_empty, doubt) {
        (false, _) => ScanResult::Somebody,
        (true, true) => ScanResult::Doubt,
        (true, false) => ScanResult::Nobody,
    }
}

/// Repeats a pass until no process is left, with a pause after each except the last.
fn repeat(mut pass: impl FnMut() -> ScanResult) {
    let mut pause = PAUSE_MIN;
    let mut doubts = 0;
    for _ in 0..PASSES_MAX {
        match pass() {
            ScanResult::Nobody => return,
            ScanResult::Doubt if doubts == DOUBTS_MAX => return,
            ScanResult::Doubt => {
                doubts += 1;
                thread::sleep(PAUSE_MIN);
            }
            ScanResult::Somebody => {
                doubts = 0;
                thread::sleep(pause);
                pause = (pause * 2).min(PAUSE_MAX);
            }
        }
    }
}

fn count(ended: &HashSet<Pid>) -> u32 {
    u32::try_from(ended.len()).unwrap_or(u32::MAX)
}
