//! The placeholders of a command line: `{case}`, `{seed}`, `{out}`, `{round}`, `{depth}`,
//! `{layout}`, `{repeats}`, the parameters of the case and the knobs that are given as arguments.
//!
//! `{{` and its `}}` are literal braces. A brace that does not enclose a name is left alone, so
//! `awk '{print $1}'` just works; so is `${NAME}`, which is for the shell.
//!
//! The line is run by `sh`, so a value is put in single quotes unless all its characters are
//! harmless. A value that needs quotes is rejected inside quotes of the command, or where that is
//! unclear, because there it could end them and become a command.

use karve_numerics::case::Case;
use karve_numerics::space::KnobSetting;
use karve_os::error::{CommandError, Result};
use karve_os::text::{shown, suggestion};

/// The names that are not parameters.
pub const NAMES: [&str; 7] = ["case", "seed", "out", "round", "depth", "layout", "repeats"];

/// The longest name allowed between braces, in characters.
const NAME_MAX: usize = 64;

/// The values of the placeholders of a command line; `None` has no value in that command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placeholders {
    /// The seed of the inputs.
    pub seed: Option<u64>,
    /// The file that the results are written to.
    pub out: Option<String>,
    /// The number of the round.
    pub round: Option<u32>,
    /// How deep a profile looks: `light`, `full` or `code`.
    pub depth: Option<String>,
    /// Which layout of the code is built; 0 is the usual one.
    pub layout: Option<u32>,
    /// How often the kernel is called in one run.
    pub repeats: Option<u32>,
    /// The knobs that are given as arguments.
    pub knobs: KnobSetting,
}

/// The command line with every placeholder replaced.
pub fn expand(command: &str, case: Option<&Case>, values: &Placeholders) -> Result<String> {
    let opaque = ["$(", "${", "`", "<<"].iter().any(|sign| command.contains(sign));
    let mut line = String::with_capacity(command.len());
    let mut quotes = QuoteTracker::default();
    for piece in pieces(command) {
        match piece {
            CommandPiece::Text(text) => {
                quotes.read(text);
                line.push_str(text);
            }
            CommandPiece::ShellVariable(name) => {
                if known(case).any(|known| known == name) {
                    return Err(shell_variable(name));
                }
                line.push_str("${");
                line.push_str(name);
                line.push('}');
            }
            CommandPiece::Name(name) => {
                let value = value_of(name, case, values)?;
                if is_harmless(&value) {
                    line.push_str(&value);
                } else if opaque || !quotes.are_closed() || value.contains('\0') {
                    return Err(unquotable(name, &value));
                } else {
                    line.push_str(&quote(&value));
                }
                quotes.after_value();
            }
        }
    }
    Ok(line)
}

/// The names that a command line uses, in order.
pub fn names(command: &str) -> Vec<&str> {
    pieces(command)
        .into_iter()
        .filter_map(|piece| match piece {
            CommandPiece::Name(name) => Some(name),
            CommandPiece::Text(_) | CommandPiece::ShellVariable(_) => None,
        })
        .collect()
}

/// Whether a command line uses `{out}`.
pub fn uses_out(command: &str) -> bool {
    names(command).contains(&"out")
}

fn known(case: Option<&Case>) -> impl Iterator<Item = &str> {
    let params = case.into_iter().flat_map(|case| case.params.keys().map(String::as_str));
    let fixed = NAMES.into_iter().filter(move |name| case.is_some() || *name != "case");
    fixed.chain(params)
}

fn value_of(name: &str, case: Option<&Case>, values: &Placeholders) -> Result<String> {
    let value = match name {
        "case" => case.map(|case| case.name.clone()),
        "seed" => values.seed.map(|seed| seed.to_string()),
        "out" => values.out.clone(),
        "round" => values.round.map(|round| round.to_string()),
        "depth" => values.depth.clone(),
        "layout" => values.layout.map(|layout| layout.to_string()),
        "repeats" => values.repeats.map(|repeats| repeats.to_string()),
        _ => {
            let of_case = case.and_then(|case| case.params.get(name));
            of_case.or_else(|| values.knobs.get(name)).cloned()
        }
    };
    value.ok_or_else(|| {
        let known = suggestion(name, known(case), "known here");
        let error = if NAMES.contains(&name) {
            CommandError::usage(format!("`{{{name}}}` has no value in this command"))
        } else {
            CommandError::usage(format!("unknown placeholder `{{{}}}` in a command", shown(name)))
        };
        error.hint(format!("{known}; in karve.toml write {{{{ for a literal brace"))
    })
}

fn shell_variable(name: &str) -> CommandError {
    CommandError::usage(format!("`${{{name}}}` in a command is a shell variable"))
        .hint(format!("write {{{name}}} without the dollar sign in karve.toml"))
}

fn unquotable(name: &str, value: &str) -> CommandError {
    CommandError::usage(format!(
        "the value `{}` of {{{name}}} cannot be used inside shell quotes or a substitution",
        shown(value)
    ))
    .hint(format!("write {{{name}}} outside quotes in karve.toml; karve quotes it"))
}

/// Whether a value is literal to the shell, inside and outside quotes.
fn is_harmless(value: &str) -> bool {
    let harmless = |c: char| c.is_ascii_alphanumeric() || "_-./=,:+@%".contains(c);
    !value.is_empty() && value.chars().all(harmless)
}

/// A word that is literal to a shell.
pub fn quote(value: &str) -> String {
    format!("'{}'", value.replace('\'', r"'\''"))
}

/// A piece of a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommandPiece<'a> {
    /// Literal text.
    Text(&'a str),
    /// `{name}`.
    Name(&'a str),
    /// `${name}`.
    ShellVariable(&'a str),
}

/// Splits a command line; doubled braces become single ones.
fn pieces(command: &str) -> Vec<CommandPiece<'_>> {
    let mut pieces = Vec::new();
    let (mut rest, mut text_end, mut doubled) = (command, 0, 0_usize);
    while let Some(character) = rest[text_end..].chars().next() {
        let here = &rest[text_end..];
        let dollar = rest[..text_end].ends_with('$');
        let length = if here.starts_with("{{") && !dollar {
            // One of the two braces is the last character of the preceding text.
            doubled += 1;
            pieces.push(CommandPiece::Text(&rest[..=text_end]));
            text_end + 2
        } else if here.starts_with("}}") && doubled > 0 {
            doubled -= 1;
            pieces.push(CommandPiece::Text(&rest[..=text_end]));
            text_end + 2
        } else if let Some(name) = name_in_braces(here) {
            let before = if dollar { text_end - 1 } else { text_end };
            pieces.push(CommandPiece::Text(&rest[..before]));
            let piece =
                if dollar { CommandPiece::ShellVariable(name) } else { CommandPiece::Name(name) };
            pieces.push(piece);
            text_end + name.len() + 2
        } else {
            text_end += character.len_utf8();
            continue;
        };
        rest = &rest[length..];
        text_end = 0;
    }
    pieces.push(CommandPiece::Text(rest));
    pieces.retain(|piece| *piece != CommandPiece::Text(""));
    pieces
}

/// The name, if the text starts with a name in braces.
fn name_in_braces(text: &str) -> Option<&str> {
    let name = text.strip_prefix('{')?;
    let end = name.char_indices().take(NAME_MAX).find(|(_, c)| *c == '}')?.0;
    let name = &name[..end];
    let starts = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let inner = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
    (starts && name.chars().all(inner)).then_some(name)
}

/// The state of a shell lexer: outside quotes, inside them, or in a comment.
#[derive(Debug, Default)]
struct QuoteTracker {
    state: QuoteState,
    escaped: bool,
    previous: Option<char>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum QuoteState {
    #[default]
    Outside,
    Single,
    Double,
    Comment,
}

impl QuoteTracker {
    fn read(&mut self, text: &str) {
        for character in text.chars() {
            let begins_word =
                self.previous.is_none_or(|c| c.is_whitespace() || ";&|()".contains(c));
            self.previous = Some(character);
            if std::mem::take(&mut self.escaped) {
                continue;
            }
            self.state = match (self.state, character) {
                (QuoteState::Outside | QuoteState::Double, '\\') => {
                    self.escaped = true;
                    self.state
                }
                (QuoteState::Outside, '\'') => QuoteState::Single,
                (QuoteState::Outside, '"') => QuoteState::Double,
                (QuoteState::Outside, '#') if begins_word => QuoteState::Comment,
                (QuoteState::Single, '\'')
                | (QuoteState::Double, '"')
                | (QuoteState::Comment, '\n') => QuoteState::Outside,
                (state, _) => state,
            };
        }
    }

    /// Records that a value is here.
    fn after_value(&mut self) {
        self.escaped = false;
        self.previous = Some('x');
    }

    /// Whether a quoted value is allowed here.
    fn are_closed(&self) -> bool {
        self.state == QuoteState::Outside && !self.escaped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn case(name: &str, params: &[(&str, &str)]) -> Case {
        let params = params.iter().map(|(key, value)| ((*key).into(), (*value).into()));
        let set = karve_numerics::case::CaseSet::Full;
        Case { name: name.into(), params: params.collect(), set, minor: false, halve: None }
    }

    fn values() -> Placeholders {
        Placeholders {
            seed: Some(7),
            out: Some("/tmp/a b/out.csv".into()),
            round: Some(3),
            depth: Some("full".into()),
            layout: Some(0),
            repeats: Some(1),
            knobs: KnobSetting::new(),
        }
    }

    fn check(command: &str, name: &str, want: &str) {
        let case = case(name, &[("M", "128"), ("dtype", "bf16 e4m3")]);
        assert_eq!(expand(command, Some(&case), &values()).as_deref(), Ok(want), "{command}");
    }

    fn refuse(command: &str, name: &str, part: &str) {
        let case = case(name, &[("M", "128")]);
        let error = expand(command, Some(&case), &values()).unwrap_err().to_string();
        assert!(error.contains(part), "{command}: {error}");
    }

    /// What `sh` reads, if the text is one word of harmless characters and single quotes.
    fn one_word(line: &str) -> Option<String> {
        let (mut word, mut rest) = (String::new(), line);
        while let Some(character) = rest.chars().next() {
            rest = &rest[character.len_utf8()..];
            match character {
                '\'' => {
                    let (inner, after) = rest.split_once('\'')?;
                    word.push_str(inner);
                    rest = after;
                }
                '\\' => {
                    rest = rest.strip_prefix('\'')?;
                    word.push('\'');
                }
                c if c.is_ascii_alphanumeric() || "_-./=,:+@%".contains(c) => word.push(c),
                _ => return None,
            }
        }
        Some(word)
    }

    #[test]
    fn names_are_replaced_and_quoted_when_they_need_it() {
        check("./b {case} {seed}", "M=1,N=2", "./b M=1,N=2 7");
        check("./b {case}", "a b", "./b 'a b'");
        check("./b {M} {dtype} {round} {depth}", "x", "./b 128 'bf16 e4m3' 3 full");
        check("./b --out={out}", "x", "./b --out='/tmp/a b/out.csv'");
        check("./b {case}", "it's", r"./b 'it'\''s'");
        check("./b {case}", "$(touch x)", "./b '$(touch x)'");
        check("./b '{case}'", "M=1", "./b 'M=1'");
    }

    #[test]
    fn other_braces_are_left_alone() {
        check("awk '{print $1}' x", "x", "awk '{print $1}' x");
        check("find . -exec ls {} +", "x", "find . -exec ls {} +");
        check("echo ${HOME} {case}", "x", "echo ${HOME} x");
        check("echo {{case}} {case}", "x", "echo {case} x");
        check("{{ true; }}", "x", "{ true; }");
        check("awk 'END{print $1;if(1){a++}}'", "x", "awk 'END{print $1;if(1){a++}}'");
    }

    #[test]
    fn unknown_names_are_refused_with_the_known_ones() {
        refuse("./b {sede}", "x", "did you mean `seed`?");
        refuse("./b {sede}", "x", "`M`");
        refuse("./b ${case}", "x", "without the dollar sign");
        let error = expand("./b {case}", None, &values()).unwrap_err();
        assert!(error.message.contains("no value"), "{error}");
        let error = expand("./b {seed}", None, &Placeholders::default()).unwrap_err();
        assert!(error.message.contains("no value"), "{error}");
    }

    #[test]
    fn a_value_that_needs_quotes_is_refused_where_it_could_end_them() {
        let evil = "$(touch x)";
        for command in [
            "./b '{case}'",
            "./b \"{case}\"",
            "./b \"$(run \"{case}\")\"",
            "./b `run {case}`",
            "cat <<E\n{case}\nE",
            "./b \\{case}",
            "# it's\n./b '{case}'",
        ] {
            refuse(command, evil, "outside quotes");
        }
        refuse("./b {case}", "a\0b", "cannot be used");
    }

    proptest! {
        #[test]
        fn a_case_name_is_always_one_word_to_the_shell(name in "[^\0]{1,24}") {
            let case = case(&name, &[]);
            let line = expand("{case}", Some(&case), &values()).unwrap();
            prop_assert_eq!(one_word(&line), Some(name));
        }

        #[test]
        fn any_command_is_expanded_or_refused(command in ".{0,60}", name in ".{0,12}") {
            let _ = expand(&command, Some(&case(&name, &[])), &values());
        }
    }
}
