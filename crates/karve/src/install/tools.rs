//! What is installed for each tool: `crates/karve/guides/tools.toml`, filled in for one place.

use super::edit::{PlannedContent, PlannedWrite};
use super::{InstallScope, InstallSite};
use karve_agents::template_env::strict_environment;
use karve_os::error::{CommandError, ErrorKind, Result};
use minijinja::value::Serde;
use minijinja::{Environment, Value, context};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

macro_rules! guides {
    ($($path:literal),+ $(,)?) => {
        [$(($path, include_str!(concat!("../../guides/", $path)))),+]
    };
}

/// The texts that agents read, once for all tools.
const GUIDES: [(&str, &str); 22] = guides![
    "skill.md",
    "snippet.md",
    "skills/profile-kernel.md",
    "skills/design-kernel.md",
    "skills/cutile.md",
    "skills/cute.md",
    "skills/triton.md",
    "skills/hip.md",
    "skills/flydsl.md",
    "agents/profiler.md",
    "agents/kernel-designer.md",
    "agents/reviewer.md",
    "agents/cuda-graph.md",
    "agents/triton.md",
    "agents/tileir.md",
    "agents/cute-dsl.md",
    "agents/distributed.md",
    "commands/optimize.md",
    "commands/round.md",
    "commands/status.md",
    "commands/profile.md",
    "commands/report.md",
];

/// The file of all tools.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InstallManifest {
    /// What the server offers, by its own names.
    pub(super) tools: Vec<String>,
    /// Those that only read.
    pub(super) reading: Vec<String>,
    guides: Vec<Guide>,
    target: BTreeMap<String, InstallTool>,
}

/// A skill, a sub-agent or a slash command.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Guide {
    kind: GuideKind,
    name: String,
    description: String,
    file: String,
    /// Whether a sub-agent may change files.
    #[serde(default)]
    edits: bool,
    /// The skills that a sub-agent has read when it starts.
    #[serde(default)]
    skills: Vec<String>,
}

/// Where a tool looks, and how it names things.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InstallTool {
    /// Its display name.
    pub(super) title: String,
    /// How to check that it worked.
    pub(super) check: String,
    /// The variable that points to its directory.
    #[serde(default)]
    pub(super) variable: String,
    /// Its own directory, by scope.
    pub(super) dir: BTreeMap<InstallScope, String>,
    /// The prefix of the server's tool names.
    pub(super) prefix: String,
    /// The placeholder for a command's arguments.
    arguments: String,
    files: Vec<InstallFile>,
}

/// A file, or one for every sub-agent or command.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct InstallFile {
    path: String,
    /// Used instead of the path if it exists.
    or_if_there: Option<String>,
    /// The scopes in which it is installed; all of them if none is named.
    #[serde(default)]
    reach: Vec<InstallScope>,
    prefix: Option<String>,
    arguments: Option<String>,
    content: InstallContent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum GuideKind {
    Skill,
    Agent,
    Command,
}

/// What a file holds: karve's entry among those of others, or the text around a guide.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum InstallContent {
    Json { within: String, value: serde_json::Value },
    Toml { within: String, lines: String },
    Section(String),
    Skill(String),
    Agent(String),
    Command(String),
}

static MANIFEST: LazyLock<std::result::Result<InstallManifest, String>> = LazyLock::new(|| {
    toml::from_str(include_str!("../../guides/tools.toml")).map_err(|error| error.to_string())
});

fn bug(why: impl ToString) -> CommandError {
    CommandError::new(ErrorKind::Bug, "guides/tools.toml is broken").cause(why.to_string())
}

/// What is known of all tools.
pub(super) fn manifest() -> Result<&'static InstallManifest> {
    MANIFEST.as_ref().map_err(bug)
}

impl InstallManifest {
    /// What is known of a tool.
    pub(super) fn spec(&self, tool: &str) -> Result<&InstallTool> {
        self.target.get(tool).ok_or_else(|| bug(format!("there is no target {tool}")))
    }

    /// Everything that is installed for a tool in a place.
    pub(super) fn pieces(
        &self,
        spec: &InstallTool,
        site: &InstallSite,
    ) -> Result<Vec<PlannedWrite>> {
        let texts = guide_texts().map_err(bug)?;
        let here = |file: &&InstallFile| file.reach.is_empty() || file.reach.contains(&site.reach);
        let mut pieces = Vec::new();
        for file in spec.files.iter().filter(here) {
            let view = self.view(spec, file, site);
            pieces.extend(self.file_pieces(file, &site.root, &view, &texts).map_err(bug)?);
        }
        Ok(pieces)
    }

    /// A file, or one for every guide of a kind.
    fn file_pieces(
        &self,
        file: &InstallFile,
        root: &Path,
        view: &Value,
        texts: &Environment<'_>,
    ) -> std::result::Result<Vec<PlannedWrite>, minijinja::Error> {
        let shared = |how: PlannedContent| {
            let mut path = texts.render_str(&file.path, view.clone())?;
            if let Some(other) = &file.or_if_there {
                let other = texts.render_str(other, view.clone())?;
                path = if root.join(&other).exists() { other } else { path };
            }
            Ok(vec![PlannedWrite { path, how }])
        };
        let filled = |guide: &str, around: &str, view: Value| {
            let text = texts.get_template(guide)?.render(view.clone())?;
            texts.render_str(around, context! { text, ..view })
        };
        let (kind, around) = match &file.content {
            InstallContent::Json { within, value } => {
                let (within, value) = (within.clone(), value.clone());
                return shared(PlannedContent::Json { within, value });
            }
            InstallContent::Toml { within, lines } => {
                let (within, lines) = (within.clone(), lines.clone());
                return shared(PlannedContent::Toml { within, lines });
            }
            InstallContent::Section(around) => {
                let text = filled("snippet.md", around, view.clone())?;
                return shared(PlannedContent::Section(text));
            }
            InstallContent::Skill(around) => (GuideKind::Skill, around),
            InstallContent::Agent(around) => (GuideKind::Agent, around),
            InstallContent::Command(around) => (GuideKind::Command, around),
        };
        let write = |guide: &Guide| {
            let view = context! {
                name => guide.name.as_str(),
                description => guide.description.as_str(),
                edits => guide.edits,
                skills => Serde(&guide.skills),
                ..view.clone()
            };
            let path = texts.render_str(&file.path, view.clone())?;
            let text = filled(&guide.file, around, view)?;
            Ok(PlannedWrite { path, how: PlannedContent::Whole(text) })
        };
        self.guides.iter().filter(|guide| guide.kind == kind).map(write).collect()
    }

    /// What the templates of a file show, except for the guide.
    fn view(&self, spec: &InstallTool, file: &InstallFile, site: &InstallSite) -> Value {
        let prefix = file.prefix.as_ref().unwrap_or(&spec.prefix);
        let names = self.tools.iter().map(|tool| (tool.as_str(), format!("{prefix}{tool}")));
        context! {
            own => site.own(""),
            reach => Serde(&site.reach),
            args => file.arguments.as_ref().unwrap_or(&spec.arguments).as_str(),
            tool => Serde(&names.collect::<BTreeMap<_, _>>()),
            tools => Serde(&self.tools),
            reading => Serde(&self.reading),
        }
    }
}

/// The guides as templates.
fn guide_texts() -> std::result::Result<Environment<'static>, minijinja::Error> {
    let mut texts = strict_environment();
    // A JSON string is a YAML string too.
    texts.add_filter("quoted", |text: String| serde_json::Value::from(text).to_string());
    for (path, text) in GUIDES {
        texts.add_template(path, text)?;
    }
    Ok(texts)
}
