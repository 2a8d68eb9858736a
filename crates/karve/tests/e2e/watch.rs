//! `karve watch` in a real terminal: it draws, follows the log, and gives the terminal back.

use crate::e2e::lab::{Lab, Said, wait_until};
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Leaves the screen of its own and shows the cursor, as terminals understand it.
const RESTORED: [&str; 2] = ["\u{1b}[?1049l", "\u{1b}[?25h"];

const GREEN: &str = "\u{1b}[38;5;2";
const COLUMNS: usize = 100;
const ROWS: usize = 30;

/// A karve in a terminal of 100 columns and 30 rows, made by script(1).
struct InTerminal {
    child: Child,
    shown: PathBuf,
    pid: PathBuf,
}

impl InTerminal {
    /// None where there is no script(1).
    fn start(lab: &Lab, args: &str, env: &[(&str, &str)]) -> Option<Self> {
        let known = Command::new("script").arg("--version").stdout(Stdio::null()).status();
        if !known.is_ok_and(|status| status.success()) {
            println!("skipped: script(1) is not installed");
            return None;
        }
        let (shown, pid) = (lab.beside("shown"), lab.beside("pid"));
        let karve = env!("CARGO_BIN_EXE_karve");
        let line = format!(
            "stty cols {COLUMNS} rows {ROWS}; echo $$ > {}; exec {karve} {args}",
            pid.display()
        );
        let mut command = lab.command_of("script");
        command.args(["--quiet", "--return", "--flush", "--command", &line]).arg("/dev/null");
        command.env("TERM", "xterm-256color").env("SHELL", "/bin/sh").env_remove("NO_COLOR");
        command.envs(env.iter().copied());
        let file = fs::File::create(&shown).unwrap();
        command.stdin(Stdio::piped()).stdout(file).stderr(Stdio::null());
        Some(Self { child: command.spawn().unwrap(), shown, pid })
    }

    /// Everything that was written to the terminal.
    fn written(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.shown).unwrap()).into_owned()
    }

    /// What a person sees by now.
    fn screen(&self) -> String {
        let mut cells = vec![vec![' '; COLUMNS]; ROWS];
        let (mut row, mut column) = (0, 0);
        let written = self.written();
        let mut parts = written.split("\u{1b}[");
        let draw = |cells: &mut Vec<Vec<char>>, text: &str, row: usize, column: &mut usize| {
            for c in text.chars().filter(|c| !c.is_control()) {
                if let Some(cell) = cells.get_mut(row).and_then(|row| row.get_mut(*column)) {
                    *cell = c;
                }
                *column += 1;
            }
        };
        draw(&mut cells, parts.next().unwrap_or_default(), row, &mut column);
        for part in parts {
            let end = part.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(0);
            let (code, text) = part.split_at(end);
            if text.starts_with('J') {
                cells.iter_mut().for_each(|row| row.fill(' '));
            }
            if let (Some('H'), Some((y, x))) = (text.chars().next(), code.split_once(';')) {
                (row, column) = (y.parse::<usize>().unwrap() - 1, x.parse::<usize>().unwrap() - 1);
            }
            draw(&mut cells, text.get(1..).unwrap_or_default(), row, &mut column);
        }
        cells.iter().map(|row| row.iter().collect::<String>() + "\n").collect()
    }

    #[track_caller]
    fn shows(&self, part: &str) {
        wait_until(part, || self.screen().contains(part));
    }

    fn types(&mut self, keys: &str) {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(keys.as_bytes()).and_then(|()| stdin.flush()).unwrap();
    }

    /// Changes the size of the terminal, as its window would.
    fn resizes(&self, columns: usize, rows: usize) {
        let pid = fs::read_to_string(&self.pid).unwrap();
        let terminal = fs::read_link(format!("/proc/{}/fd/0", pid.trim())).unwrap();
        let size = ["cols".to_owned(), columns.to_string(), "rows".to_owned(), rows.to_string()];
        let mut stty = Command::new("stty");
        assert!(stty.arg("-F").arg(terminal).args(size).status().unwrap().success());
    }

    fn signals(&self, name: &str) {
        let pid = fs::read_to_string(&self.pid).unwrap();
        let mut kill = Command::new("kill");
        assert!(kill.args(["-s", name, pid.trim()]).status().unwrap().success());
    }

    /// Waits for its end, and returns all that it showed.
    #[track_caller]
    fn ends(mut self, code: i32) -> String {
        let status = self.child.wait().unwrap();
        let text = self.written();
        assert_eq!(status.code(), Some(code), "{text}");
        text
    }
}

impl Drop for InTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn it_draws_in_a_terminal_quits_on_q_and_gives_it_back() {
    let lab = Lab::new("gains");
    lab.karve(&["run", "--yes"]).ends(0);
    let Some(mut watch) = InTerminal::start(&lab, "watch", &[]) else {
        return;
    };
    watch.shows("q quit");
    watch.types("gj3");
    watch.shows("+TIME=50");
    watch.types("4");
    watch.shows("karve   ");
    watch.types("q");
    let text = watch.ends(0);
    for part in ["halve the work", "2.500x", GREEN, RESTORED[0], RESTORED[1]] {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
    // Ctrl-C quits too; a signal and a panic give the terminal back as well.
    let Some(mut watch) = InTerminal::start(&lab, "watch", &[("NO_COLOR", "1")]) else {
        return;
    };
    watch.shows("q quit");
    watch.types("\u{3}");
    let text = watch.ends(0);
    assert!(!text.contains(GREEN), "no color:\n{text}");
    for signal in ["TERM", "HUP", "INT"] {
        let Some(watch) = InTerminal::start(&lab, "watch", &[]) else {
            return;
        };
        watch.shows("q quit");
        watch.signals(signal);
        let text = watch.ends(130);
        assert!(RESTORED.iter().all(|part| text.contains(part)), "{signal}:\n{text}");
    }
    let panics = [("KARVE_TEST_PANIC", "watch")];
    let Some(watch) = InTerminal::start(&lab, "watch", &panics) else {
        return;
    };
    wait_until("the panic", || watch.written().contains("panicked at"));
    let text = watch.written();
    let (before, after) = text.split_once("panicked at").unwrap();
    assert!(before.contains(RESTORED[0]), "{before}\n{after}");
}

#[test]
fn it_follows_the_size_of_its_terminal_and_a_log_that_goes_and_comes() {
    let lab = Lab::new("gains");
    lab.karve(&["run", "--yes"]).ends(0);
    let Some(mut watch) = InTerminal::start(&lab, "watch", &[]) else {
        return;
    };
    watch.shows("q quit");
    // Smaller than it can draw on, and as large as before.
    watch.resizes(50, 10);
    watch.shows("terminal too small: 50x10");
    watch.resizes(COLUMNS, ROWS);
    watch.shows("1 log  2 evidence");
    watch.resizes(80, 24);
    watch.shows("halve the work");
    // It may have been smaller in between, and lost what was on it.
    let cleared = || watch.written().matches("\u{1b}[2J").count();
    let before = cleared();
    watch.signals("WINCH");
    wait_until("a screen that is drawn anew", || cleared() > before);
    let (log, gone) = (lab.campaign("events.jsonl"), lab.beside("gone"));
    fs::rename(&log, &gone).unwrap();
    watch.shows("cannot read");
    fs::write(&log, "").unwrap();
    watch.shows("the log was emptied");
    fs::rename(&gone, &log).unwrap();
    watch.shows("q quit");
    watch.types("g3");
    watch.shows("round 1: halve the work");
    watch.types("q");
    watch.ends(0);
}

#[test]
fn it_ends_with_its_terminal() {
    let lab = Lab::new("gains");
    lab.karve(&["run", "--yes"]).ends(0);
    let Some(watch) = InTerminal::start(&lab, "watch", &[]) else {
        return;
    };
    watch.shows("q quit");
    let pid = fs::read_to_string(&watch.pid).unwrap();
    let process = PathBuf::from(format!("/proc/{}", pid.trim()));
    assert!(process.exists());
    drop(watch);
    wait_until("its end", || !process.exists());
}

/// As in `karve watch | true`: nobody reads, and it ends with a code and without a panic.
#[track_caller]
fn closed_pipe(lab: &Lab, args: &[&str], code: i32) {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let ran = lab.command(args).stdout(writer).stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(code), "{said}");
    assert!(!said.contains("panicked") && !said.contains('\u{1b}'), "{said}");
    assert_eq!(said.contains("karve watch --once"), code == 2, "{said}");
}

#[test]
fn without_a_terminal_it_says_what_to_use() {
    let lab = Lab::new("gains");
    lab.karve(&["watch"]).ends(2).complains(&["there is no campaign", "karve run"]);
    lab.dies("after:30");
    lab.karve(&["watch"]).ends(2).complains(&["is not a terminal", "karve watch --once"]);
    closed_pipe(&lab, &["watch"], 2);
    closed_pipe(&lab, &["watch", "--once"], 0);
    if let Some(watch) = InTerminal::start(&lab, "watch </dev/null", &[]) {
        let text = watch.ends(2);
        assert!(text.contains("standard input is not a terminal") && !text.contains('\u{1b}'));
    }
    let said = lab.karve(&["watch", "--once"]).ends(0);
    said.shows(&["rounds", "+  2.000x halve the work", "1 log  2 evidence"]);
    let log = lab.campaign("events.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    fs::write(&log, text.replacen("\"seq\":4", "\"seq\":9", 1)).unwrap();
    lab.karve(&["watch"]).ends(3).complains(&["the log is damaged", "karve verify"]);
}

#[test]
fn a_run_in_a_terminal_shows_what_is_under_way_below_its_lines() {
    let lab = Lab::new("gains");
    let Some(run) = InTerminal::start(&lab, "run --yes", &[]) else {
        return;
    };
    let text = run.ends(0);
    for part in
        ["before round 1, 5 of 5: build, test", "  best    2.000x", "  last    1 keep 2.000x"]
    {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
    for part in ["round 1: measure, block ", "█", "round 1   halve the work"] {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
    // The area is gone at the end, and the summary stands where it was.
    let (_, end) = text.rsplit_once("\u{1b}[J").unwrap();
    assert!(end.contains("finished  ") && end.contains("next      "), "{end}");
    // Without a terminal there are lines only.
    let other = Lab::new("gains");
    let said = other.karve(&["run", "--yes"]).ends(0);
    assert!(!said.stdout.contains('\u{1b}') && !said.stderr.contains('\u{1b}'), "{said:?}");
    assert!(!said.stderr.contains("  best    "), "{said:?}");
}

#[test]
fn it_follows_a_campaign_that_is_running() {
    let lab = Lab::new("gains");
    lab.dies("after:3");
    let Some(mut watch) = InTerminal::start(&lab, "watch", &[]) else {
        return;
    };
    watch.shows("none kept yet");
    lab.karve(&["run", "--yes"]).ends(0);
    watch.shows("original against final");
    watch.types("q");
    watch.ends(0);
    let said: Said = lab.karve(&["verify"]);
    said.ends(0);
}
