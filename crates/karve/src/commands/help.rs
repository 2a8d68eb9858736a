//! `karve --help`: the commands in groups, in the order in which a user meets them.

use super::Cli;
use crate::library::catalog;
use crate::ui;
use clap::error::{ContextKind, ContextValue};
use clap::{Command, CommandFactory, FromArgMatches};
use karve_core::campaign::LOG_VERSION;
use karve_os::error::CommandError;
use karve_os::text;
use std::sync::LazyLock;

/// What each group is for, and its commands.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Start", &["demo", "new", "init", "contract", "import", "doctor", "install"]),
    ("Run", &["run", "suite", "next", "propose", "submit", "tune", "checkout", "apply"]),
    (
        "Look",
        &["watch", "serve", "status", "log", "show", "why", "diff", "report", "verify", "list"],
    ),
    ("Compare", &["bench", "check", "audit"]),
    ("Know", &["profile", "explain", "roofline", "knowledge"]),
    ("Serve", &["agents", "mcp", "remote"]),
];

/// Commands for scripts and editors, which the list only names.
const PLUMBING: [&str; 14] = [
    "best",
    "clean",
    "lint-task",
    "export",
    "queue",
    "answer",
    "noise",
    "devices",
    "exec",
    "roles",
    "messages",
    "schema",
    "completions",
    "man",
];

/// Columns of the name of a command.
const NAME_COLUMNS: usize = 11;

/// Parses the command line; ends the process after help, the version or a mistake.
pub fn parse() -> Cli {
    let parsed = command().try_get_matches();
    parsed.and_then(|matches| Cli::from_arg_matches(&matches)).unwrap_or_else(|error| {
        let error = with_search(error);
        if error.use_stderr() && asks_json() {
            let text = error.to_string();
            let mut paragraphs = text.trim().split("\n\n");
            let message = paragraphs.next().unwrap_or_default().trim_start_matches("error: ");
            let mistake = CommandError::usage(message);
            ui::out_json_error(&paragraphs.fold(mistake, |error, hint| error.hint(hint.trim())));
        }
        error.exit()
    })
}

/// A word after `karve knowledge` that is not a command is probably what somebody looks for.
fn with_search(mut error: clap::Error) -> clap::Error {
    let of = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    let (word, usage) = (of(ContextKind::InvalidSubcommand), of(ContextKind::Usage));
    if !word.is_empty() && usage.contains("karve knowledge ") {
        let tip =
            format!("to find entries, use 'karve knowledge search {}'", text::safe(&word, 60));
        let mut tips = match error.remove(ContextKind::Suggested) {
            Some(ContextValue::StyledStrs(tips)) => tips,
            _ => Vec::new(),
        };
        tips.push(tip.into());
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
}

/// Whether the command line asks for JSON, whatever the command is.
pub fn asks_json() -> bool {
    let own = std::env::args_os().skip(1).take_while(|arg| arg != "--");
    own.into_iter().any(|arg| arg == "--json")
}

/// The command line with its grouped help.
pub fn command() -> Command {
    let command = Cli::command();
    let groups = grouped(&command);
    command.long_version(BUILT_IN.as_str()).help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}\n\
         Options:\n{{options}}{{after-help}}"
    ))
}

/// What `--version` says: what was built, from what, and what it holds.
static BUILT_IN: LazyLock<String> = LazyLock::new(|| {
    let commit = option_env!("KARVE_COMMIT").unwrap_or("not recorded; release.sh records it");
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    let (arch, os) = (std::env::consts::ARCH, std::env::consts::OS);
    format!(
        "{}\ncommit     {commit}\nbuild      {profile}, {arch} {os}\nlog        version \
         {LOG_VERSION}; older ones since 0.2 are read\nlibrary    {} entries\naudit      C, C++, \
         CUDA, HIP, Python, Rust",
        env!("CARGO_PKG_VERSION"),
        catalog::FILES.len()
    )
});

fn grouped(command: &Command) -> String {
    let mut text = String::new();
    for (title, names) in GROUPS {
        text.push_str(&format!("{title}:\n"));
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            text.push_str(&format!("  {name:<NAME_COLUMNS$}{about}\n"));
        }
        text.push('\n');
    }
    let also = PLUMBING.join(", ");
    text.push_str(&format!("Also: {also}. \"karve help COMMAND\" has examples of each.\n"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use karve_os::error::ErrorKind;
    use std::collections::BTreeSet;

    #[test]
    fn every_command_that_is_not_hidden_is_in_one_group() {
        let listed: Vec<&str> =
            GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).chain(PLUMBING).collect();
        let set: BTreeSet<&str> = listed.iter().copied().collect();
        assert_eq!(set.len(), listed.len(), "a command is listed twice");
        let command = Cli::command();
        let shown = command.get_subcommands().filter(|one| !one.is_hide_set());
        let shown: BTreeSet<&str> = shown.map(Command::get_name).collect();
        assert_eq!(shown, set);
    }

    /// Commands without `--json`: they write files, start something, or have a format of their
    /// own.
    const WITHOUT_JSON: [&str; 17] = [
        "demo",
        "serve",
        "new",
        "init",
        "contract",
        "import",
        "install",
        "answer",
        "watch",
        "mcp",
        "schema",
        "completions",
        "man",
        "tune",
        "knowledge",
        "remote",
        "exec",
    ];

    #[test]
    fn every_command_that_reports_prints_json_too_and_has_an_example() {
        let command = Cli::command();
        for one in command.get_subcommands().filter(|one| !one.is_hide_set()) {
            let name = one.get_name();
            let has = one.get_arguments().any(|arg| arg.get_long() == Some("json"));
            assert_eq!(has, !WITHOUT_JSON.contains(&name), "{name}");
            let example = one.get_after_help().map(ToString::to_string).unwrap_or_default();
            let is_shown = example.contains(&format!("karve {name}"));
            assert!(is_shown || one.has_subcommands(), "{name}: {example}");
        }
        let codes = super::command().render_help().to_string();
        let codes = codes.split_once("Exit codes:").map(|(_, codes)| codes.to_owned());
        let codes = codes.expect("the help lists them");
        use ErrorKind as Kind;
        let (check, usage, host) = (Kind::Negative, Kind::Usage, Kind::Environment);
        for kind in [check, usage, host, Kind::Busy, Kind::Bug, Kind::Interrupted] {
            let code = kind.exit_code().to_string();
            assert!(codes.contains(&format!("{code} ")), "{code} in {codes}");
        }
    }

    #[test]
    fn the_help_has_the_groups_and_fits_a_screen() {
        let help = super::command().render_help().to_string();
        for (title, _) in GROUPS {
            assert!(help.contains(&format!("\n{title}:\n")), "{help}");
        }
        assert!(help.contains("demo       Run a whole campaign"), "{help}");
        assert!(help.lines().count() < 70, "{help}");
    }
}
