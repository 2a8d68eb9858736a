//! A command line that needs no shell: one program, its arguments, and nothing that a shell would
//! do besides splitting it.
//!
//! A shell takes about a millisecond to start, which is half of a short benchmark. Only lines that
//! every shell splits in the same way are split here; everything else is left to the shell.

use karve_core::word_lists::WordLists;
use std::sync::LazyLock;

/// The program and the arguments of a line, if no shell is needed to find them.
pub(super) fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    // The word being read; quotes alone make one too.
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        end if end == c => break,
                        inner if is_literal_in(inner, c) => word.push(inner),
                        _ => return None,
                    }
                }
            }
            c if is_plain(c) => word.get_or_insert_default().push(c),
            _ => return None,
        }
    }
    words.extend(word);
    let program = words.first()?;
    let is_shells = shell_words().contains(&program.as_str())
        || program.is_empty()
        // An assignment.
        || program.contains('=');
    (!is_shells).then_some(words)
}

/// Built-in names of one shell or another; such a name is not looked up on the `PATH`, or not only
/// there.
fn shell_words() -> &'static [&'static str] {
    static LISTS: LazyLock<WordLists> =
        LazyLock::new(|| WordLists::parse(include_str!("shell_words.txt")));
    LISTS.list("shell")
}

/// Whether a character stands for itself in a word without quotes.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-./:,+@%=".contains(c)
}

/// Whether a character stands for itself between such quotes.
fn is_literal_in(c: char, quote: char) -> bool {
    (c == ' ' || c.is_ascii_graphic()) && (quote == '\'' || !"$`\\!".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{Command, CommandOutcome, Exit, StopFlag, run};
    use proptest::prelude::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    fn check(line: &str, want: Option<&[&str]>) {
        let got = words(line);
        let got: Option<Vec<&str>> =
            got.as_ref().map(|words| words.iter().map(String::as_str).collect());
        assert_eq!(got.as_deref(), want, "{line}");
    }

    #[test]
    fn a_plain_line_is_taken_apart() {
        check("make", Some(&["make"]));
        check(" ./bench  a-b\t--n=3 ", Some(&["./bench", "a-b", "--n=3"]));
        check("./b 'a  b' \"c d\" ''", Some(&["./b", "a  b", "c d", ""]));
        check("./b x'y z'\"'\"w", Some(&["./b", "xy z'w"]));
        check("'./my bench' '$x *'", Some(&["./my bench", "$x *"]));
    }

    #[test]
    fn what_a_shell_would_do_more_is_left_to_it() {
        for line in [
            "",
            "  ",
            "''",
            "A=1 ./b",
            "A=1",
            ":",
            "cd /",
            "exit 3",
            "exec ./b",
            "echo x",
            "time ./b",
            "if true",
            "! ./b",
            "./b; ./c",
            "./b && ./c",
            "./b | ./c",
            "./b > f",
            "./b 2>&1",
            "./b $X",
            "./b \"$X\"",
            "./b `x`",
            "./b *",
            "./b ?",
            "./b [a]",
            "./b {a,b}",
            "./b ~",
            "~/b",
            "./b a:~",
            "./b # c",
            "./b \\x",
            "./b \"\\x\"",
            "./b 'x",
            "./b \"x",
            "./b\n./c",
            "(./b)",
            "./b &",
            "./b é",
            "./b '\u{1}'",
            "./b !x",
            "./b \"!x\"",
            "./b ^x",
            "[ a ]",
            "test a",
            ". ./b",
            "true",
        ] {
            check(line, None);
        }
    }

    proptest! {
        #[test]
        fn a_shell_takes_a_line_apart_alike(
            line in "[ab./:,+@%=_ \t'\"*$~#;&|<>(){}!^\\\\-]{0,12}",
        ) {
            if let Some(words) = words(&format!("x {line}")) {
                let split = format!("printf '%s\\n' x {line}");
                let ran = run(&Command::shell(split, Path::new("/")), &StopFlag::new()).unwrap();
                let text: String = words.iter().map(|word| format!("{word}\n")).collect();
                prop_assert_eq!(ran.stdout.text(), text);
            }
        }
    }

    /// Runs a line with and without a shell.
    fn both(line: &str, dir: &Path) -> (CommandOutcome, CommandOutcome) {
        let run = |command: Command| run(&command, &StopFlag::new()).unwrap();
        (run(Command::line(line, dir)), run(Command::shell(line, dir)))
    }

    #[test]
    fn a_line_does_the_same_with_and_without_a_shell() {
        let dir = tempfile::tempdir().unwrap();
        let script = |name: &str, text: &str, mode: u32| {
            let path = dir.path().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        };
        let say = "#!/bin/sh\nprintf '[%s]' \"$@\"; pwd; pwd -P; echo \"$PWD\"; exit 7\n";
        script("say", say, 0o755);
        script("bare", "echo no first line\n", 0o755);
        script("plain", "#!/bin/sh\n", 0o644);
        script("lost", "#!/no/such/interpreter\n", 0o755);
        for line in [
            "./say a 'b  c' --d=e \"\"",
            "./bare",
            "./plain",
            "./lost",
            "./missing",
            "karve-no-such-program x",
            "sh say x",
            "exit 5",
            "./say $PWD *",
            "cd / && pwd",
            ":",
            "",
            "env -u A sh -c 'exit 9'",
        ] {
            let (direct, by_shell) = both(line, dir.path());
            assert_eq!(direct.exit, by_shell.exit, "{line}");
            assert_eq!(direct.stdout.text(), by_shell.stdout.text(), "{line}");
            assert_eq!(direct.stderr.text(), by_shell.stderr.text(), "{line}");
        }
        assert_eq!(both("./missing", dir.path()).0.exit, Exit::Code(127));
        // Some shells wait for the program, and convert its signal to a code.
        let (direct, by_shell) = both("sh -c 'kill -9 $$'", dir.path());
        assert_eq!(direct.exit, Exit::Signal(9));
        assert_eq!(direct.exit.describe(), "ended by signal 9 (killed)");
        assert!(matches!(by_shell.exit, Exit::Signal(9) | Exit::Code(137)));
    }

    #[test]
    fn the_environment_is_that_which_a_shell_would_give() {
        let dir = tempfile::tempdir().unwrap();
        let variables = |run: &CommandOutcome| {
            let text = run.stdout.text().into_owned();
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            // The mark of the run, and what only some shells set.
            let differs = ["KARVE_RUN=", "_=", "SHLVL=", "OLDPWD="];
            lines.retain(|line| !differs.iter().any(|name| line.starts_with(name)));
            lines.sort();
            lines
        };
        for dir in [dir.path(), Path::new("/"), Path::new(".")] {
            let (direct, by_shell) = both("env", dir);
            assert_eq!(variables(&direct), variables(&by_shell));
        }
    }
}
