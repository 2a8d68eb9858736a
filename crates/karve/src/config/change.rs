//! Changes one key in the text of a `karve.toml`; everything else stays as it was written. And
//! checks such a text before it is written.

use super::{CharterTime, Overrides};
use karve_os::clock;
use karve_os::error::{CommandError, ErrorKind, Result};
use std::path::Path;

/// The text with a key such as `limits.rounds` set to a value in TOML.
pub fn with_key(text: &str, path: &str, value: &str) -> String {
    let (table, key) = path.rsplit_once('.').unwrap_or(("", path));
    let header = format!("[{table}]");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let start = match table {
        "" => Some(0),
        _ => lines.iter().position(|line| line.trim() == header).map(|at| at + 1),
    };
    let new = format!("{key} = {value}");
    match start {
        None => lines.extend([String::new(), header, new]),
        Some(start) => {
            let rest = lines[start..].iter();
            let end = rest.clone().position(|line| line.trim_start().starts_with('['));
            let end = end.map_or(lines.len(), |length| start + length);
            let is_key =
                |line: &String| line.split_once('=').is_some_and(|(name, _)| name.trim() == key);
            match lines[start..end].iter().position(is_key) {
                Some(at) => lines[start + at] = new,
                None => lines.insert(start, new),
            }
        }
    }
    lines.join("\n") + "\n"
}

/// A value as TOML: numbers, booleans, lists and quoted text as they are, other text quoted.
pub fn as_toml(value: &str) -> String {
    let value = value.trim();
    match format!("x = {value}").parse::<toml::Table>() {
        Ok(_) => value.to_owned(),
        Err(_) => toml::Value::from(value).to_string(),
    }
}

/// A generated file must load; otherwise it is not written.
pub fn check(text: &str, dir: &Path, hint: &str) -> Result<()> {
    let now = CharterTime { minute: clock::minute() };
    super::parse(text, dir, &Overrides::default(), &now).map(|_| ()).map_err(|error| {
        let wrong = CommandError::new(ErrorKind::Usage, "this karve.toml would not work");
        let causes = std::iter::once(error.message).chain(error.causes);
        causes.fold(wrong, CommandError::cause).hint(hint)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_key_changes_and_the_rest_stays() {
        let text = "# mine\n[limits]\nrounds = 4 # few\nhours = 1\n\n[agent]\nname = \"a\"\n";
        let check = |path: &str, value: &str, from: &str, to: &str| {
            assert_eq!(with_key(text, path, &as_toml(value)), text.replacen(from, to, 1));
        };
        check("limits.rounds", "9", "rounds = 4 # few", "rounds = 9");
        check("agent.name", "builtin", "name = \"a\"", "name = \"builtin\"");
        check("limits.command_s", "5", "[limits]\n", "[limits]\ncommand_s = 5\n");
        let added = with_key(text, "target.goal", &as_toml(">2x"));
        assert!(added.ends_with("\n[target]\ngoal = \">2x\"\n"), "{added}");
    }
}
