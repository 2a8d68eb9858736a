//! The tools that a model gets: read and search, and if it may change something, also edit, write,
//! build and test. Their output is bounded, and shows visible cases only.

use super::conversation::{ToolCall, ToolOutput};
use super::files::{FileResult, WorkspaceFiles};
use crate::Workspace;
use crate::turn::TurnTask;
use karve_harness::commands::{CommandVariant, Harness};
use karve_harness::outcome::{Failure, ReasonResult};
use karve_numerics::case::Case;
use karve_os::error::Result;
use serde_json::{Map, Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

/// At most this many refused tools are named.
const DENIED_MAX: usize = 10;
/// The least time that a command gets, so that it can report a timeout.
const COMMAND_MIN: Duration = Duration::from_millis(100);

/// A tool as offered to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ToolSpec {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    /// Each parameter: its name, its type, whether it is required, and what it means.
    parameters: &'static [(&'static str, &'static str, ParamRequired, &'static str)],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ParamRequired {
    Yes,
    No,
}

impl ToolSpec {
    /// Its parameters as a JSON schema that every API accepts.
    pub(super) fn schema(&self) -> Value {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for (name, kind, needed, description) in self.parameters {
            let property = json!({"type": kind, "description": description});
            properties.insert((*name).to_owned(), property);
            if *needed == ParamRequired::Yes {
                required.push(*name);
            }
        }
        json!({"type": "object", "properties": properties, "required": required})
    }
}

const PATH: (&str, &str, ParamRequired, &str) =
    ("path", "string", ParamRequired::Yes, "a path in the current directory, such as src/kernel.c");

/// Tools that change nothing.
const READING: [ToolSpec; 2] = [
    ToolSpec {
        name: "read",
        description: "Returns the lines of a file, or the names in a directory.",
        parameters: &[
            PATH,
            ("from", "integer", ParamRequired::No, "the first line, from 1"),
            ("lines", "integer", ParamRequired::No, "how many lines at most"),
        ],
    },
    ToolSpec {
        name: "search",
        description: "Returns the lines in all files that match a regular expression.",
        parameters: &[
            ("pattern", "string", ParamRequired::Yes, "a regular expression"),
            ("path", "string", ParamRequired::No, "a file or directory; default: everything"),
        ],
    },
];

/// Tools that change, build and test.
const WORKING: [ToolSpec; 4] = [
    ToolSpec {
        name: "edit",
        description: "Replaces a text that occurs exactly once in an editable file.",
        parameters: &[
            PATH,
            ("old", "string", ParamRequired::Yes, "the exact text to replace"),
            ("new", "string", ParamRequired::Yes, "the replacement"),
        ],
    },
    ToolSpec {
        name: "write",
        description: "Writes a complete editable file, which may be new.",
        parameters: &[
            PATH,
            ("text", "string", ParamRequired::Yes, "the complete content of the file"),
        ],
    },
    ToolSpec {
        name: "build",
        description: "Builds the project the same way karve does.",
        parameters: &[],
    },
    ToolSpec {
        name: "test",
        description: "Builds the project and tests it on the visible cases.",
        parameters: &[],
    },
];

/// What a turn may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToolRights {
    /// Answer, and nothing else.
    Answer,
    /// Read.
    Read,
    /// Read, change editable files, build and test.
    Work,
}

impl ToolRights {
    /// The rights for a task.
    pub(super) fn of(task: TurnTask) -> Self {
        match task {
            TurnTask::Propose | TurnTask::Review => Self::Read,
            TurnTask::Implement | TurnTask::Repair => Self::Work,
            TurnTask::Learn | TurnTask::Trial => Self::Answer,
        }
    }

    /// The tools that are offered.
    pub(super) fn tools(self) -> Vec<ToolSpec> {
        match self {
            Self::Answer => Vec::new(),
            Self::Read => READING.to_vec(),
            Self::Work => READING.into_iter().chain(WORKING).collect(),
        }
    }
}

/// Where the tools of a turn work.
#[derive(Debug)]
pub(super) struct ToolWorkspace<'a> {
    rights: ToolRights,
    tree: &'a Path,
    files: WorkspaceFiles<'a>,
    harness: &'a Harness,
    cases: &'a [Case],
    until: Instant,
    /// Whether a file was changed.
    pub(super) has_changed: bool,
    /// What was refused because it is not allowed.
    pub(super) denied: Vec<String>,
}

impl<'a> ToolWorkspace<'a> {
    /// The bench for a turn.
    pub(super) fn new(
        workspace: &Workspace<'a>,
        rights: ToolRights,
        files: WorkspaceFiles<'a>,
        until: Instant,
    ) -> Self {
        Self {
            rights,
            tree: workspace.tree,
            files,
            harness: workspace.harness,
            cases: workspace.cases,
            until,
            has_changed: false,
            denied: Vec::new(),
        }
    }

    /// Executes a tool call, or says why not.
    pub(super) fn perform(&mut self, call: &ToolCall) -> Result<ToolOutput> {
        let (text, failed) = match self.run(call) {
            Ok(text) => (text, false),
            Err(Failure::Outcome(why)) => (why, true),
            Err(Failure::Error(error)) => return Err(error),
        };
        Ok(ToolOutput { id: call.id.clone(), name: call.name.clone(), text, failed })
    }

    fn run(&mut self, call: &ToolCall) -> ReasonResult<String> {
        let offered = self.rights.tools();
        let Some(tool) = offered.iter().find(|tool| tool.name == call.name) else {
            self.deny(&call.name);
            let names: Vec<&str> = offered.iter().map(|tool| tool.name).collect();
            let names = names.join(", ");
            return Err(format!("this tool is not available now; available tools: {names}").into());
        };
        let input = ToolInput::of(tool, &call.input)?;
        let path = input.text("path");
        Ok(match tool.name {
            "read" => {
                self.files.read(path, input.count("from", 1), input.count("lines", usize::MAX))?
            }
            "search" => self.files.search(input.text("pattern"), path)?,
            "edit" => {
                self.change(path, |files| files.edit(path, input.text("old"), input.text("new")))?
            }
            "write" => self.change(path, |files| files.write(path, input.text("text")))?,
            "build" => {
                self.build()?;
                "the build passed".to_owned()
            }
            _ => {
                self.build()?;
                self.test()?
            }
        })
    }

    /// Changes a file, if it is editable.
    fn change(
        &mut self,
        path: &str,
        how: impl FnOnce(&WorkspaceFiles<'_>) -> FileResult<String>,
    ) -> FileResult<String> {
        if let Err(why) = self.files.may_write(path) {
            self.deny(&format!("edit of {path}"));
            return Err(why);
        }
        let done = how(&self.files);
        self.has_changed |= done.is_ok();
        done
    }

    fn deny(&mut self, what: &str) {
        let what = crate::cli::turn_output::message(what);
        if self.denied.len() < DENIED_MAX && !self.denied.contains(&what) {
            self.denied.push(what);
        }
    }

    /// The campaign's commands, limited to the time left in the turn.
    fn harness(&self) -> Harness {
        let left = self.until.saturating_duration_since(Instant::now());
        self.harness.clone().within_limit(left.max(COMMAND_MIN))
    }

    fn build(&self) -> ReasonResult<()> {
        let built = self.harness().build(self.tree);
        built.map_err(|failure| failure.map(|gate| gate.describe()))
    }

    fn test(&self) -> ReasonResult<String> {
        let tested = self.harness().test(self.tree, self.cases, CommandVariant::Usual);
        tested.map_err(|failure| failure.map(|gate| gate.describe()))?;
        Ok(format!("the test passed on {} visible cases", self.cases.len()))
    }
}

/// A tool's input, checked against its parameters.
struct ToolInput<'a>(&'a Value);

impl<'a> ToolInput<'a> {
    fn of(tool: &ToolSpec, given: &'a Value) -> FileResult<Self> {
        let Some(fields) = given.as_object() else {
            return Err("the arguments are not a JSON object".into());
        };
        for (name, kind, needed, _) in tool.parameters {
            let fits = |value: &Value| match *kind {
                "integer" => value.as_u64().is_some() || is_whole(value),
                _ => value.is_string(),
            };
            match (fields.get(*name).filter(|value| !value.is_null()), needed) {
                (Some(value), _) if !fits(value) => return Err(format!("{name} must be a {kind}")),
                (None, ParamRequired::Yes) => return Err(format!("{name} is missing")),
                (Some(_), _) | (None, ParamRequired::No) => {}
            }
        }
        let known = |name: &String| tool.parameters.iter().any(|(known, ..)| known == name);
        match fields.keys().find(|name| !known(name)) {
            Some(_) => {
                let names: Vec<&str> = tool.parameters.iter().map(|(name, ..)| *name).collect();
                Err(format!("{} takes only: {}", tool.name, names.join(", ")))
            }
            None => Ok(Self(given)),
        }
    }

    fn text(&self, name: &str) -> &'a str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    fn count(&self, name: &str, without: usize) -> usize {
        let value = self.0.get(name);
        let whole = value.and_then(Value::as_u64);
        let whole = whole.or_else(|| value.and_then(Value::as_f64).map(|n| n.max(0.0) as u64));
        whole.map_or(without, |n| usize::try_from(n).unwrap_or(without))
    }
}

/// Some models write 1.0 for 1.
fn is_whole(value: &Value) -> bool {
    value.as_f64().is_some_and(|n| n >= 0.0 && n.fract() == 0.0)
}
