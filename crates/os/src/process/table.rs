//! The processes of this machine as `/proc` shows them.

use std::collections::{HashMap, HashSet};
use std::{fs, io};

use super::sys::{self, Pid};

/// The page size in the kernel's files, on the supported machines.
const PAGE_BYTES: u64 = 4_096;

/// One process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProcessInfo {
    pub(super) pid: Pid,
    pub(super) parent: Pid,
    pub(super) group: Pid,
    pub(super) session: Pid,
    /// In clock ticks since boot; together with the id it identifies a process permanently.
    pub(super) started: u64,
    /// Ended, but not reaped yet.
    pub(super) dead: bool,
}

/// All visible processes, and whether one ended meanwhile: it may have left a child that was
/// started too late to be seen.
pub(super) fn all() -> (Vec<ProcessInfo>, bool) {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut pids: Vec<Pid> = pids.collect();
    // Newest first, because they are the most likely to end.
    pids.sort_unstable_by(|a, b| b.cmp(a));
    let mut vanished = false;
    let mut processes = Vec::new();
    for pid in pids {
        match process(pid) {
            Some(process) => processes.push(process),
            None => vanished = true,
        }
    }
    (processes, vanished)
}

/// The children of this process, including adopted orphans, newest first; none if the kernel
/// does not keep a list.
pub(super) fn children() -> Vec<Pid> {
    let me = std::process::id();
    // Orphans go to the first thread.
    let list = fs::read_to_string(format!("/proc/{me}/task/{me}/children")).unwrap_or_default();
    let pids = list.split_ascii_whitespace().rev();
    pids.filter_map(|pid| pid.parse().ok()).collect()
}

/// One process by its id.
pub(super) fn process(pid: Pid) -> Option<ProcessInfo> {
    // The name of the program may contain any byte, so this is not read as UTF-8.
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse_stat(pid, &String::from_utf8_lossy(&stat))
}

/// Parses `pid (name) state ppid pgrp session …`; the name may contain blanks and parentheses.
fn parse_stat(pid: Pid, stat: &str) -> Option<ProcessInfo> {
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().take(20).collect();
    let number = |i: usize| fields.get(i)?.parse().ok();
    Some(ProcessInfo {
        pid,
        parent: number(1)?,
        group: number(2)?,
        session: number(3)?,
        started: fields.get(19)?.parse().ok()?,
        dead: matches!(*fields.first()?, "Z" | "X" | "x"),
    })
}

/// The environment a process was started with.
pub(super) fn environ(pid: Pid) -> io::Result<Vec<u8>> {
    fs::read(format!("/proc/{pid}/environ"))
}

/// The private memory of a process; none if it has just ended.
pub(super) fn memory_bytes(pid: Pid) -> u64 {
    let pages = || -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
        let mut fields = text.split_ascii_whitespace().skip(1);
        let resident: u64 = fields.next()?.parse().ok()?;
        let shared: u64 = fields.next()?.parse().ok()?;
        Some(resident.saturating_sub(shared))
    };
    pages().unwrap_or(0) * PAGE_BYTES
}

/// The threads of a process; none if it has just ended.
pub(super) fn threads(pid: Pid) -> u64 {
    let count = || -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name before it may hold anything.
        let (_, fields) = text.rsplit_once(')')?;
        fields.split_ascii_whitespace().nth(17)?.parse().ok()
    };
    count().unwrap_or(0)
}

/// The value of a variable in an environment.
pub(super) fn parse_env<'a>(environ: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut variables = environ.split(|&b| b == 0);
    variables.find_map(|v| v.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
}

/// The processes that `is_root` selects, with all their descendants.
pub(super) fn with_descendants(
    processes: &[ProcessInfo],
    is_root: impl Fn(&ProcessInfo) -> bool,
) -> Vec<ProcessInfo> {
    let mut children: HashMap<Pid, Vec<&ProcessInfo>> = HashMap::new();
    for process in processes {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found: Vec<ProcessInfo> = processes.iter().filter(|p| is_root(p)).copied().collect();
    let mut known: HashSet<Pid> = found.iter().map(|p| p.pid).collect();
    let mut next = 0;
    while let Some(parent) = found.get(next).map(|p| p.pid) {
        next += 1;
        for child in children.get(&parent).into_iter().flatten() {
            if known.insert(child.pid) {
                found.push(**child);
            }
        }
    }
    found
}

/// A process and all its ancestors.
pub(super) fn with_ancestors(processes: &[ProcessInfo], pid: Pid) -> HashSet<Pid> {
    let parents: HashMap<Pid, Pid> = processes.iter().map(|p| (p.pid, p.parent)).collect();
    let mut line = HashSet::new();
    let mut at = Some(pid);
    while let Some(pid) = at.filter(|&pid| line.insert(pid)) {
        at = parents.get(&pid).copied();
    }
    line
}

/// Sends SIGKILL to this process, and never to another that got its id meanwhile.
pub(super) fn kill(target: &ProcessInfo) {
    let pidfd = sys::pidfd_open(target.pid);
    if process(target.pid).is_none_or(|now| now.started != target.started) {
        return;
    }
    match pidfd {
        Ok(pidfd) => sys::kill_pidfd(&pidfd),
        Err(_) => sys::kill(target.pid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn child_of(parent: Pid, pid: Pid) -> ProcessInfo {
        ProcessInfo { pid, parent, group: 0, session: 0, started: 0, dead: false }
    }

    #[test]
    fn the_threads_of_a_process_are_counted() {
        let (sender, receiver) = std::sync::mpsc::sync_channel::<()>(0);
        let receiver = std::sync::Arc::new(std::sync::Mutex::new(receiver));
        let waiting: Vec<_> = (0..9)
            .map(|_| {
                let receiver = receiver.clone();
                std::thread::spawn(move || {
                    let _ = receiver.lock().unwrap().recv();
                })
            })
            .collect();
        let own = Pid::try_from(std::process::id()).unwrap();
        assert!(threads(own) >= 10, "{}", threads(own));
        assert_eq!(threads(Pid::MAX), 0);
        drop(sender);
        waiting.into_iter().for_each(|thread| thread.join().unwrap());
    }

    #[test]
    fn a_name_with_parentheses_and_blanks_is_no_trouble() {
        let stat = "7 (a) b) (c) S 3 4 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 991 0 0";
        let got = parse_stat(7, stat);
        let want =
            ProcessInfo { pid: 7, parent: 3, group: 4, session: 5, started: 991, dead: false };
        assert_eq!(got, Some(want));
    }

    #[test]
    fn a_zombie_is_dead() {
        let stat = "7 (a) Z 3 4 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 991 0 0";
        assert!(parse_stat(7, stat).unwrap().dead);
    }

    #[test]
    fn a_torn_line_is_no_process() {
        assert_eq!(parse_stat(7, "7 (a) S 3 4"), None);
        assert_eq!(parse_stat(7, ""), None);
    }

    #[test]
    fn this_process_is_in_the_table() {
        let me = std::process::id() as Pid;
        assert!(all().0.iter().any(|p| p.pid == me && !p.dead));
    }

    #[test]
    fn a_variable_is_found_by_its_whole_name() {
        let environ = b"AB=1\0B=2\0EMPTY=\0C=x=y\0";
        assert_eq!(parse_env(environ, "B"), Some(&b"2"[..]));
        assert_eq!(parse_env(environ, "A"), None);
        assert_eq!(parse_env(environ, "EMPTY"), Some(&b""[..]));
        assert_eq!(parse_env(environ, "C"), Some(&b"x=y"[..]));
    }

    #[test]
    fn descendants_are_found_at_any_depth_and_loops_end() {
        let table =
            [child_of(1, 2), child_of(2, 3), child_of(3, 4), child_of(1, 5), child_of(6, 6)];
        let pids = |root| -> Vec<Pid> {
            with_descendants(&table, |p| p.pid == root).iter().map(|p| p.pid).collect()
        };
        assert_eq!(pids(2), [2, 3, 4]);
        assert_eq!(pids(5), [5]);
        assert_eq!(pids(6), [6]);
        assert!(pids(9).is_empty());
    }

    #[test]
    fn ancestors_are_found_up_to_the_top_and_loops_end() {
        let table = [child_of(0, 1), child_of(1, 2), child_of(2, 3), child_of(6, 6)];
        assert_eq!(with_ancestors(&table, 3), HashSet::from([3, 2, 1, 0]));
        assert_eq!(with_ancestors(&table, 6), HashSet::from([6]));
    }
}
