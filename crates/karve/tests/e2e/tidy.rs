//! What must hold after any campaign, however often it was killed on the way.

use crate::e2e::lab::Lab;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// All that a campaign leaves behind, without what a clock, a coin or a seed made.
#[derive(Debug, PartialEq)]
pub(crate) struct Remains {
    /// The log.
    pub(crate) log: Vec<Value>,
    /// The tree that each ref points to.
    refs: BTreeMap<String, String>,
    /// The names of the artifacts, which are hashes.
    artifacts: BTreeSet<String>,
}

impl Remains {
    /// What a campaign left behind; fails if it left something that it should not.
    #[track_caller]
    pub(crate) fn of(lab: &Lab) -> Self {
        is_tidy(lab);
        Self { log: decided(lab.log()), refs: refs(lab), artifacts: lasting(lab) }
    }

    /// The types of its events, in order.
    pub(crate) fn kinds(&self) -> Vec<String> {
        let kind = |record: &Value| record["event"]["type"].as_str().unwrap().to_owned();
        self.log.iter().map(kind).collect()
    }

    /// The first event that differs, in words.
    pub(crate) fn difference(&self, other: &Self) -> Option<String> {
        let (ours, theirs) = (Value::from(self.log.clone()), Value::from(other.log.clone()));
        first_difference("", &ours, &theirs).or_else(|| {
            let rest = |r: &Self| format!("{:#?} {:#?}", r.refs, r.artifacts);
            (self != other).then(|| format!("{}\n{}", rest(self), rest(other)))
        })
    }
}

fn first_difference(at: &str, a: &Value, b: &Value) -> Option<String> {
    match (a, b) {
        (Value::Object(x), Value::Object(y)) if x.keys().eq(y.keys()) => {
            x.iter().find_map(|(key, a)| first_difference(&format!("{at}.{key}"), a, &y[key]))
        }
        (Value::Array(x), Value::Array(y)) if x.len() == y.len() => (0..x.len())
            .find_map(|index| first_difference(&format!("{at}[{index}]"), &x[index], &y[index])),
        _ => (a != b).then(|| format!("{at}: {a} became {b}")),
    }
}

/// The records without those that say which device was used, which decides nothing.
fn decided(log: Vec<Value>) -> Vec<Value> {
    let is_device = |record: &Value| {
        let kind = record["event"]["type"].as_str().unwrap_or_default();
        kind.starts_with("device_")
    };
    let kept = log.into_iter().filter(|record| !is_device(record)).enumerate();
    kept.map(|(seq, mut record)| {
        record["seq"] = json!(seq);
        if let Some(charter) = record["event"]["charter"].as_object_mut() {
            charter.remove("remote");
        }
        steady(record)
    })
    .collect()
}

/// A record without what differs from run to run.
pub(crate) fn steady(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                *field = match name.as_str() {
                    // A commit, but also one side of a pair.
                    "parent" if field.is_string() => json!("*"),
                    "at_ms" | "created" | "spent_ms" | "seed" | "pad" | "first" | "wall_us"
                    | "cpu_us" | "commit" | "base" | "environment" | "conditions"
                    | "session_log" => {
                        json!("*")
                    }
                    _ => steady(field.take()),
                };
            }
        }
        Value::Array(items) => {
            for item in items {
                *item = steady(item.take());
            }
        }
        _ => {}
    }
    value
}

fn refs(lab: &Lab) -> BTreeMap<String, String> {
    let listed = lab.git(&["for-each-ref", "--format=%(refname) %(tree)"]);
    let pair = |line: &str| {
        let (name, tree) = line.split_once(' ').unwrap();
        (name.to_owned(), tree.to_owned())
    };
    listed.lines().map(pair).collect()
}

/// The artifacts, but for what was said to agents: a brief tells times.
fn lasting(lab: &Lab) -> BTreeSet<String> {
    let dir = lab.campaign("artifacts");
    let mut all = names(&dir);
    let is_session_log = |name: &String| {
        let bytes = fs::read(dir.join(name)).unwrap();
        bytes.starts_with(b"{\"agent\":")
    };
    all.retain(|name| !is_session_log(name));
    all
}

fn names(dir: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(dir).into_iter().flatten();
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    entries.map(|entry| name(entry.unwrap())).collect()
}

/// No worktree, no temporary file, no holder of the lock, no process; the checkout is untouched.
#[track_caller]
pub(crate) fn is_tidy(lab: &Lab) {
    let worktrees = lab.git(&["worktree", "list", "--porcelain"]);
    assert_eq!(worktrees.matches("worktree ").count(), 1, "{worktrees}");
    assert_eq!(names(&lab.path(".git/worktrees")), BTreeSet::new());
    assert!(!lab.campaign("worktrees").exists(), "worktrees are left");
    assert!(!lab.campaign("tmp").exists(), "temporary files are left");
    assert_eq!(temporary_files(&lab.campaign("")), Vec::<String>::new());
    assert_eq!(names(&lab.beside("tmp")), BTreeSet::new());
    assert_eq!(lab.git(&["status", "--porcelain"]), "");
    let lock = fs::File::open(lab.campaign("lock")).unwrap();
    lock.try_lock().expect("nobody holds the lock");
    assert_eq!(fs::read_to_string(lab.campaign("lock")).unwrap(), "");
    assert_eq!(processes_of(lab), Vec::<String>::new());
}

fn temporary_files(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(temporary_files(&path));
        } else if path.extension().is_some_and(|end| end == "tmp") {
            found.push(path.display().to_string());
        }
    }
    found
}

/// The processes that carry the mark of the lab's campaign.
pub(crate) fn processes_of(lab: &Lab) -> Vec<String> {
    let dir = fs::canonicalize(lab.campaign("")).unwrap();
    let mark = format!("KARVE_CAMPAIGN={}", dir.display());
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let environ = fs::read(entry.path().join("environ")).unwrap_or_default();
        let marked = environ.split(|byte| *byte == 0).any(|v| v == mark.as_bytes());
        if marked {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            found.push(String::from_utf8_lossy(&line).replace('\0', " "));
        }
    }
    found
}
