//! A project in a temporary directory, and the real binary at work in it.

use serde_json::Value;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// No wait of a test takes longer; what does is a failure.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often a test looks whether what it waits for has happened.
const GLANCE: Duration = Duration::from_millis(1);
/// Tools beyond these are not needed, and some of them are slow to say their version.
pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// A death by SIGKILL as a shell shows it.
pub(crate) const KILLED: i32 = 137;
/// The CPU pressure of an idle host: a test does not wait for other tests to end.
pub(crate) const CALM: &str = "testing/calm";
/// The date of every commit that a test makes.
const DATE: &str = "1700000000 +0000";

/// What a command said, and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    /// The exit code, or 128 and the signal.
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Said {
    pub(crate) fn of(output: &Output) -> Self {
        let status = output.status;
        let signal = status.signal().map(|signal| 128 + signal);
        Self {
            code: status.code().or(signal).unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Ended with this code.
    #[track_caller]
    pub(crate) fn ends(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    /// Said all of this on standard error.
    #[track_caller]
    pub(crate) fn complains(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(self.stderr.contains(part), "no {part:?} in {self:#?}");
        }
        self
    }

    /// Said all of this on standard output.
    #[track_caller]
    pub(crate) fn shows(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(self.stdout.contains(part), "no {part:?} in {self:#?}");
        }
        self
    }

    /// Its standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}

/// A project in a temporary directory, under git.
#[derive(Debug)]
pub(crate) struct Lab {
    dir: TempDir,
}

impl Lab {
    /// The toy with one tree of `testdata` on top, committed.
    pub(crate) fn new(tree: &str) -> Self {
        let lab = Self::unversioned(tree);
        lab.git(&["init", "-q", "-b", "main"]);
        lab.commit();
        lab
    }

    /// The same without git.
    pub(crate) fn unversioned(tree: &str) -> Self {
        let lab = Self { dir: scratch() };
        fs::create_dir(lab.path("")).unwrap();
        fs::create_dir(lab.beside("tmp")).unwrap();
        copy(&source("testing/toy"), &lab.path(""));
        copy(&source("testdata").join(tree), &lab.path(""));
        lab
    }

    /// A project of `testdata/projects` as somebody else wrote it, committed.
    pub(crate) fn of_project(name: &str) -> Self {
        let lab = Self::empty();
        copy(&source("testdata/projects").join(name), &lab.path(""));
        lab.git(&["init", "-q", "-b", "main"]);
        lab.commit();
        lab
    }

    /// An empty directory.
    pub(crate) fn empty() -> Self {
        let lab = Self { dir: scratch() };
        fs::create_dir(lab.path("")).unwrap();
        fs::create_dir(lab.beside("tmp")).unwrap();
        lab
    }

    /// A path in the project.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.dir.path().join("project").join(relative)
    }

    /// A path beside the project.
    pub(crate) fn beside(&self, relative: &str) -> PathBuf {
        self.dir.path().join(relative)
    }

    /// A path in the directory of the campaign "toy".
    pub(crate) fn campaign(&self, relative: &str) -> PathBuf {
        self.path(".karve/toy").join(relative)
    }

    pub(crate) fn read(&self, relative: &str) -> String {
        fs::read_to_string(self.path(relative)).unwrap()
    }

    pub(crate) fn write(&self, relative: &str, text: &str) {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Replaces text that must be there.
    #[track_caller]
    pub(crate) fn replace(&self, relative: &str, from: &str, to: &str) -> &Self {
        let text = self.read(relative);
        assert!(text.contains(from), "{relative} has no {from:?}");
        self.write(relative, &text.replace(from, to));
        self
    }

    /// Adds to the end of `karve.toml`.
    pub(crate) fn configure(&self, lines: &str) -> &Self {
        let text = self.read("karve.toml");
        self.write("karve.toml", &format!("{text}\n{lines}\n"));
        self
    }

    /// Takes the profilers out of a template: they take longer than most of a campaign, and
    /// `e2e::profile` runs them.
    pub(crate) fn unprofiled(&self) -> &Self {
        self.replace("karve.toml", "profile = \"auto\"", "#")
    }

    /// Lets commands and agents leave notes beside their worktree, for the test to read.
    pub(crate) fn unconfined(&self) -> &Self {
        self.configure("[sandbox]\nmode = \"off\"")
    }

    /// What the scripted agent does in a round, or in "every" one without a script of its own.
    pub(crate) fn script(&self, round: &str, task: &str, text: &str) -> &Self {
        let home = match round {
            "every" => "every".to_owned(),
            number => format!("round-{number}"),
        };
        self.write(&format!("script/{home}/{task}.sh"), &format!("{text}\n"));
        self
    }

    /// Commits everything.
    pub(crate) fn commit(&self) -> &Self {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "the project"]);
        self
    }

    #[track_caller]
    pub(crate) fn git(&self, args: &[&str]) -> String {
        git_in(&self.path(""), args)
    }

    /// The binary, in the project.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.command_of(env!("CARGO_BIN_EXE_karve"));
        command.args(args);
        command
    }

    /// Another program, in the project.
    pub(crate) fn command_of(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.path(""));
        steady(&mut command)
            .env("TMPDIR", self.beside("tmp"))
            .env("KARVE_LEASE_DIR", self.beside("leases"))
            .env("KARVE_TEST_PRESSURE_FILE", source(CALM));
        let config = self.beside("config");
        if config.is_dir() {
            command.env("XDG_CONFIG_HOME", config);
        }
        command
    }

    /// Runs the binary to its end.
    pub(crate) fn karve(&self, args: &[&str]) -> Said {
        Said::of(&self.command(args).output().unwrap())
    }

    /// Runs the campaign until it dies at a point like `torn:17`, as if it were killed there.
    #[track_caller]
    pub(crate) fn dies(&self, point: &str) {
        let mut command = self.command(&["run", "--yes"]);
        let output = command.env("KARVE_TEST_DIE", point).output();
        Said::of(&output.unwrap()).ends(KILLED);
    }

    /// Starts the binary; what it says goes to files, so that a test can read along.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        let said = ["stdout", "stderr"].map(|name| self.beside(name));
        let [stdout, stderr] = said.each_ref().map(|path| fs::File::create(path).unwrap());
        let mut command = self.command(args);
        command.stdout(stdout).stderr(stderr);
        Running { child: command.spawn().unwrap(), said }
    }

    /// The whole lines of the log.
    pub(crate) fn log(&self) -> Vec<Value> {
        let text = fs::read(self.campaign("events.jsonl")).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let whole = text.split_inclusive('\n').filter(|l| l.ends_with('\n'));
        whole.filter_map(|l| serde_json::from_str(l).ok()).collect()
    }

    /// The events of one type.
    pub(crate) fn events(&self, kind: &str) -> Vec<Value> {
        let events = self.log().into_iter().map(|mut r| r["event"].take());
        events.filter(|event| event["type"] == kind).collect()
    }

    /// What became of each round: the verdict, or the reason of a drop.
    pub(crate) fn verdicts(&self) -> Vec<String> {
        let name = |event: &Value| {
            let verdict = &event["verdict"];
            let gate = &verdict["reason"]["gate"]["gate"];
            let reason = &verdict["reason"]["reason"];
            let named = [gate, reason, &verdict["verdict"]];
            let found = named.into_iter().find_map(Value::as_str);
            found.unwrap_or_default().to_owned()
        };
        self.events("settled").iter().map(name).collect()
    }
}

/// A running karve; ended with the test at the latest.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    said: [PathBuf; 2],
}

impl Running {
    /// A program that says what it says to these files.
    pub(crate) fn of(child: Child, said: [PathBuf; 2]) -> Self {
        Self { child, said }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.pid().to_string();
        let mut kill = Command::new("kill");
        kill.args(["-s", name, &pid]).stderr(Stdio::null());
        kill.status().unwrap();
    }

    /// Presses Ctrl-C, and waits until it was noticed: two at once would count as one.
    pub(crate) fn interrupt(&self, notice: &str) {
        self.signal("INT");
        wait_until(notice, || self.says(notice));
    }

    /// Whether it has shown this on standard output by now.
    pub(crate) fn shows(&self, part: &str) -> bool {
        fs::read_to_string(&self.said[0]).is_ok_and(|text| text.contains(part))
    }

    /// Whether it has said this on standard error by now.
    pub(crate) fn says(&self, part: &str) -> bool {
        fs::read_to_string(&self.said[1]).is_ok_and(|text| text.contains(part))
    }

    /// kill -9, and what it had said until then.
    pub(crate) fn kill(mut self) -> Said {
        self.child.kill().unwrap();
        self.wait()
    }

    /// Waits for its end.
    pub(crate) fn wait(mut self) -> Said {
        let status = self.child.wait().unwrap();
        let [stdout, stderr] = self.said.each_ref().map(|path| fs::read(path).unwrap());
        Said::of(&Output { status, stdout, stderr })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How much of something is tried: a part of it by default, all of it in `./test.sh --full`, which
/// sets `KARVE_TEST_ALL`. CONTRIBUTING.md has the table of what only the full run proves.
pub(crate) fn by_default<T>(part: T, all: T) -> T {
    match std::env::var_os("KARVE_TEST_ALL") {
        None => part,
        Some(_) => all,
    }
}

/// Waits until something holds.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "waited too long until {what}");
        std::thread::sleep(GLANCE);
    }
}

/// Runs git, which must succeed, and gives what it said.
#[track_caller]
pub(crate) fn git_in(dir: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command.arg("-C").arg(dir).args(args);
    let said = Said::of(&steady(&mut command).output().unwrap());
    assert_eq!(said.code, 0, "git {args:?}: {said:?}");
    said.stdout.trim_end().to_owned()
}

/// The same environment for every command, whoever runs the tests.
fn steady(command: &mut Command) -> &mut Command {
    command
        .env_clear()
        .env("PATH", PATH)
        .env("HOME", "/nonexistent")
        .env("TZ", "UTC")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_NAME", "Tester")
        .env("GIT_AUTHOR_EMAIL", "tester@example.com")
        .env("GIT_AUTHOR_DATE", DATE)
        .env("GIT_COMMITTER_NAME", "Tester")
        .env("GIT_COMMITTER_EMAIL", "tester@example.com")
        .env("GIT_COMMITTER_DATE", DATE)
}

/// A temporary directory: in memory where that is possible, since a campaign syncs a lot.
pub(crate) fn scratch() -> TempDir {
    let builder = || {
        let mut builder = tempfile::Builder::new();
        builder.prefix("karve-e2e-");
        builder
    };
    let in_memory = builder().tempdir_in("/dev/shm");
    in_memory.or_else(|_| builder().tempdir()).unwrap()
}

/// A directory of the workspace.
pub(crate) fn source(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(relative)
}

/// Copies a directory into another one.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
