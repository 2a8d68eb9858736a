//! What a confined command can and cannot do, with real processes.
//!
//! Where the host offers no namespaces, tests that need them pass without looking.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    unreachable_pub,
    reason = "a test says so when it breaks"
)]

use karve_core::charter::{Caches, SandboxMode, SandboxRule};
use karve_os::process::{Command, CommandOutcome, Exit, StopFlag, run};
use karve_os::sandbox::{
    AgentPaths, AllowedHost, CommandPurpose, HostSupport, Sandbox, SandboxPaths,
};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// A project with a campaign and a worktree, and its sandbox.
struct Lab {
    dir: TempDir,
    sandbox: Arc<Sandbox>,
}

fn auto() -> SandboxRule {
    SandboxRule { mode: SandboxMode::Auto, ..SandboxRule::default() }
}

impl Lab {
    fn new(rule: &SandboxRule) -> Self {
        let dir = TempDir::new().unwrap();
        let path = dir.path().canonicalize().unwrap();
        let site = SandboxPaths {
            checkout: path.join("project"),
            campaigns: path.join("project/.karve"),
            worktrees: path.join("project/.karve/toy/worktrees"),
            scratch: path.join("project/.karve/toy/tmp"),
            workdir: String::new(),
            history: None,
        };
        fs::create_dir_all(&site.worktrees).unwrap();
        fs::write(path.join("project/secret"), "of the user").unwrap();
        fs::write(path.join("project/.karve/toy/events.jsonl"), "the log").unwrap();
        fs::create_dir(path.join("other")).unwrap();
        fs::write(path.join("other/file"), "of somebody else").unwrap();
        let sandbox = Sandbox::open(rule, site).unwrap().unwrap();
        let lab = Self { dir, sandbox };
        fs::create_dir(lab.tree()).unwrap();
        fs::write(lab.tree().join("kernel.c"), "int x;").unwrap();
        lab
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(relative)
    }

    fn tree(&self) -> PathBuf {
        self.path("project/.karve/toy/worktrees/tree")
    }

    fn command(&self, purpose: CommandPurpose, line: &str) -> Command {
        let confinement = self.sandbox.confine(purpose, &self.tree()).unwrap();
        Command::shell(line, &self.tree()).confined(&confinement).limit(Duration::from_secs(60))
    }

    fn sh(&self, purpose: CommandPurpose, line: &str) -> CommandOutcome {
        run(&self.command(purpose, line), &StopFlag::new()).unwrap()
    }

    /// The line succeeds.
    #[track_caller]
    fn can(&self, purpose: CommandPurpose, line: &str) -> String {
        let run = self.sh(purpose, line);
        assert_eq!(run.exit, Exit::Code(0), "{line}: {}", run.stderr.text());
        run.stdout.text().into_owned()
    }

    /// The line fails, but not because it could not be run at all.
    #[track_caller]
    fn cannot(&self, purpose: CommandPurpose, line: &str) {
        let run = self.sh(purpose, line);
        let code = match run.exit {
            Exit::Code(code) => code,
            other => panic!("{line}: {other:?}"),
        };
        assert!(code != 0 && code != 127, "{line}: {code}");
    }
}

fn has_room() -> bool {
    HostSupport::of_host().no_namespace.is_none()
}

fn has_landlock() -> bool {
    HostSupport::of_host().kernel.landlock > 0
}

#[test]
fn a_build_writes_in_its_worktree_and_a_benchmark_does_not() {
    let lab = Lab::new(&auto());
    lab.can(CommandPurpose::Build, "echo 1 > built && mkdir -p a/b && mv built a/b/");
    lab.can(CommandPurpose::Measure, "cat a/b/built kernel.c");
    if has_landlock() || has_room() {
        lab.cannot(CommandPurpose::Measure, "echo 2 > state");
        lab.cannot(CommandPurpose::Measure, "echo 2 >> kernel.c");
        lab.cannot(CommandPurpose::Measure, "rm kernel.c");
        lab.cannot(CommandPurpose::Measure, "mv kernel.c other.c");
    }
    for purpose in [CommandPurpose::Build, CommandPurpose::Test, CommandPurpose::Measure] {
        lab.cannot(purpose, "touch /etc/karve-was-here");
        lab.cannot(purpose, "touch /usr/karve-was-here");
    }
}

#[test]
fn what_a_test_writes_in_its_worktree_does_not_stay() {
    let lab = Lab::new(&auto());
    if !has_room() {
        return;
    }
    let trial = lab.sandbox.confine_trial(CommandPurpose::Test, &lab.tree()).unwrap();
    let sh = |line: &str| {
        let command = Command::shell(line, &lab.tree()).confined(&trial);
        run(&command, &StopFlag::new()).unwrap().exit
    };
    assert_eq!(sh("echo 1 > answer && echo 2 >> kernel.c && mkdir d"), Exit::Code(0));
    // Tests of the same worktree share what they build.
    assert_eq!(sh("test -e answer && rm kernel.c"), Exit::Code(0));
    let names: Vec<_> = fs::read_dir(lab.tree()).unwrap().flatten().collect();
    assert_eq!(names.len(), 1);
    let kernel = fs::read_to_string(lab.tree().join("kernel.c")).unwrap();
    assert_eq!(kernel, "int x;");
}

#[test]
fn what_the_charter_names_can_be_written() {
    let rule = SandboxRule { write: vec!["target".into()], ..auto() };
    let lab = Lab::new(&rule);
    lab.can(CommandPurpose::Measure, "echo 1 > target/x");
    // Where the project lies in a private place, Landlock cannot tell the two apart.
    if has_landlock() && !lab.path("").starts_with(std::env::temp_dir()) {
        lab.cannot(CommandPurpose::Measure, "echo 1 > x");
    }
}

#[test]
fn the_user_the_campaign_and_others_cannot_be_seen() {
    let lab = Lab::new(&auto());
    let files = ["project/secret", "project/.karve/toy/events.jsonl", "other/file"];
    for file in files {
        let path = lab.path(file);
        lab.cannot(CommandPurpose::Build, &format!("cat {}", path.display()));
        assert!(path.exists());
    }
    // A link in the worktree leads nowhere either.
    lab.cannot(CommandPurpose::Build, "ln -s ../../../../secret link && cat link");
}

/// Ways to a file: the program that each needs, and the line.
const WAYS: [(&str, &str); 9] = [
    ("cat --version", "cat FILE"),
    ("cat --version", "cat /proc/self/rootFILE"),
    ("cat --version", "cat /proc/1/rootFILE"),
    ("cat --version", "ln -s FILE $TMPDIR/link && cat $TMPDIR/link"),
    ("python3 --version", "python3 -c 'print(open(\"FILE\").read())'"),
    ("cc --version", "echo '#include \"FILE\"' | cc -fsyntax-only -x c -"),
    (
        "cc --version",
        "echo '.incbin \"FILE\"' | cc -c -x assembler -o $TMPDIR/o - && cat $TMPDIR/o",
    ),
    (
        "rustc --version",
        "echo 'fn main() { print!(\"{}\", include_str!(\"FILE\")) }' >$TMPDIR/k.rs && \
         rustc -o $TMPDIR/k $TMPDIR/k.rs && $TMPDIR/k",
    ),
    ("make --version", "echo 'include FILE' | make -f -"),
];

/// Private files of this host, and a line of each; none for an ordinary user.
fn private_files() -> Vec<(String, String)> {
    let dir = |dir: &str| {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let mut paths = [dir("/etc/ssh"), dir("/var/log"), dir("/etc/sudoers.d")].concat();
    let system = ["shadow", "shadow-", "gshadow", "sudoers", "pip.conf", "npmrc"];
    paths.extend(system.map(|name| Path::new("/etc").join(name)));
    paths.push("/var/lib/dpkg/status".into());
    let line = |path: PathBuf| {
        // A link may lead to what everybody may read.
        let path = path.canonicalize().ok().filter(|path| !path.starts_with("/usr"))?;
        let text = fs::read_to_string(&path).ok()?;
        let line = text.lines().find(|line| line.len() > 12)?.to_owned();
        Some((path.display().to_string(), line))
    };
    paths.into_iter().filter_map(line).collect()
}

#[test]
fn what_is_private_to_the_system_is_read_in_no_way() {
    let lab = Lab::new(&auto());
    let told = |purpose: CommandPurpose, line: &str| {
        let run = lab.sh(purpose, line);
        format!("{}{}", run.stdout.text(), run.stderr.text())
    };
    let ways: Vec<&str> =
        WAYS.iter().filter(|(needs, _)| has_program(needs)).map(|(_, way)| *way).collect();
    // They lead to what may be read, except the one through another process.
    for way in ways.iter().filter(|way| !way.contains("/proc/1/")) {
        let shown = told(CommandPurpose::Build, &way.replace("FILE", "/etc/passwd"));
        assert!(shown.contains("root:x:0:0") || way.contains("make"), "{way}: {shown}");
    }
    let files = private_files();
    println!("{} private files, namespaces: {}", files.len(), has_room());
    for (file, line) in &files {
        for purpose in [CommandPurpose::Build, CommandPurpose::Test, CommandPurpose::Measure] {
            let text = told(purpose, &format!("cat {file} || ln {file} $TMPDIR/x; cat $TMPDIR/x"));
            assert!(!text.contains(line), "{file}: {text}");
        }
    }
    for (file, line) in files.iter().filter(|(file, _)| file == "/etc/shadow") {
        for way in &ways {
            let text = told(CommandPurpose::Build, &way.replace("FILE", file));
            assert!(!text.contains(line), "{way}: {text}");
        }
    }
    for dir in ["/var/lib", "/var/log", "/var/spool", "/boot", "/srv", "/mnt", "/run/secrets"] {
        let list = format!("ls -A {dir} 2>/dev/null");
        assert_eq!(lab.sh(CommandPurpose::Build, &list).stdout.text(), "", "{dir}");
    }
    let notes = lab.path("project/.karve/toy/tmp/agent");
    fs::create_dir_all(&notes).unwrap();
    let tree = lab.tree();
    let (agent, _) = lab.sandbox.confine_agent(&AgentPaths::of(&tree, &notes)).unwrap();
    for (file, line) in &files {
        let command = Command::shell(format!("cat {file}"), &tree).confined(&agent);
        let seen = run(&command, &StopFlag::new()).unwrap();
        assert!(!seen.stdout.text().contains(line), "{file}");
    }
}

#[test]
fn what_is_private_to_the_system_is_read_in_no_way_without_namespaces() {
    let name = "sandbox::what_is_private_to_the_system_is_read_in_no_way";
    let own = std::env::current_exe().unwrap();
    let mut command = std::process::Command::new("setpriv");
    command.args(["--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]);
    let Ok(output) = command.arg(own).args(["--exact", name, "--nocapture"]).output() else {
        println!("skipped: there is no setpriv");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    if !text.contains("running 1 test") {
        println!("skipped: setpriv cannot take a right away here");
        return;
    }
    assert!(text.contains("namespaces: false") || text.contains("skipped"), "{text}");
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn what_the_charter_names_can_be_read() {
    let rule = SandboxRule { read: vec!["/var/lib/dpkg".into()], ..auto() };
    let lab = Lab::new(&rule);
    if Path::new("/var/lib/dpkg/status").exists() {
        lab.can(CommandPurpose::Build, "head -1 /var/lib/dpkg/status");
        lab.cannot(CommandPurpose::Build, "ls /var/lib/apt/*");
    }
}

#[test]
fn nothing_is_left_for_the_next_command() {
    let lab = Lab::new(&auto());
    let places = ["$HOME", "$TMPDIR", "$XDG_CACHE_HOME", "$TRITON_CACHE_DIR", "$CCACHE_DIR"];
    let mut places: Vec<&str> = places.to_vec();
    if has_room() {
        places.extend(["/tmp", "/var/tmp", "/dev/shm"]);
    }
    for place in places {
        let write = format!("mkdir -p {place} && echo answer > {place}/answer");
        let read = format!("test -e {place}/answer");
        lab.can(CommandPurpose::Measure, &format!("{write} && {read}"));
        lab.cannot(CommandPurpose::Measure, &read);
    }
    // Not even in a directory that is there because the project lies below it.
    let above = lab.path("").display().to_string();
    lab.sh(CommandPurpose::Measure, &format!("echo answer > {above}/answer"));
    lab.cannot(CommandPurpose::Measure, &format!("test -e {above}/answer"));
    // Nor where rights were taken away.
    lab.can(CommandPurpose::Measure, "mkdir -p $HOME/a/b && chmod 0 $HOME/a/b $HOME/a");
    lab.cannot(CommandPurpose::Measure, "test -e $HOME/a");
}

#[test]
fn caches_of_a_worktree_last_if_the_charter_says_so() {
    let rule = SandboxRule { caches: Caches::Tree, ..auto() };
    let lab = Lab::new(&rule);
    lab.can(CommandPurpose::Measure, "echo 1 > $HOME/cache; echo 1 > $TMPDIR/x");
    lab.can(CommandPurpose::Measure, "test -e $HOME/cache && ! test -e $TMPDIR/x");
}

#[test]
fn a_server_of_the_host_cannot_be_reached() {
    let lab = Lab::new(&auto());
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    let connect =
        format!("python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 5)'");
    lab.cannot(CommandPurpose::Build, &connect);
    let socket = lab.path("other/socket");
    let _unix = UnixListener::bind(&socket).unwrap();
    if has_room() {
        let connect = format!(
            "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"{}\")'",
            socket.display()
        );
        lab.cannot(CommandPurpose::Build, &connect);
    }
    lab.cannot(CommandPurpose::Build, "python3 -c 'import socket; socket.socket(socket.AF_VSOCK)'");
    let open = Lab::new(&SandboxRule { network: true, ..auto() });
    open.can(CommandPurpose::Build, &connect);
}

#[test]
fn other_processes_are_out_of_reach() {
    let lab = Lab::new(&auto());
    let own = std::process::id();
    lab.cannot(CommandPurpose::Build, &format!("kill -0 {own}"));
    lab.cannot(CommandPurpose::Build, &format!("cat /proc/{own}/environ"));
    lab.cannot(CommandPurpose::Build, "cat /proc/1/environ");
    let call = |line: &str| {
        let script = "import ctypes; libc = ctypes.CDLL(None, use_errno=True); \
                      import sys; sys.exit(0 if LINE != -1 else 3)";
        format!("python3 -c '{}'", script.replace("LINE", line))
    };
    // ptrace(PTRACE_ATTACH), unshare(CLONE_NEWUSER), mount, reboot.
    let traced = format!("libc.ptrace(16, {own}, 0, 0)");
    for line in [
        traced.as_str(),
        "libc.ptrace(0, 0, 0, 0)",
        "libc.unshare(0x10000000)",
        "libc.mount(b\"none\", b\"/tmp\", b\"tmpfs\", 0, 0)",
        "libc.chroot(b\"/tmp\")",
    ] {
        lab.cannot(CommandPurpose::Build, &call(line));
    }
    if has_room() {
        let seen = lab.can(CommandPurpose::Build, "ls /proc | grep -c '^[0-9]'");
        assert!(seen.trim().parse::<u32>().unwrap() < 8, "{seen}");
    }
}

#[test]
fn root_keeps_no_right_but_those_on_files() {
    use std::os::unix::fs::MetadataExt;
    let lab = Lab::new(&auto());
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        println!("skipped: this is not root");
        return;
    }
    // The shell executes another program, which could get rights anew.
    let status = lab.can(CommandPurpose::Build, "cat /proc/self/status");
    let value = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        u64::from_str_radix(line.unwrap().trim(), 16).unwrap()
    };
    let on_files = 0b1_1011;
    for name in ["CapEff:", "CapPrm:", "CapInh:"] {
        assert_eq!(value(name) & !on_files, 0, "{status}");
    }
    lab.cannot(CommandPurpose::Build, "chroot / true");
    lab.cannot(CommandPurpose::Build, "unshare --mount true");
}

#[test]
fn the_environment_is_clean() {
    let rule = SandboxRule { env: vec!["KARVE_TEST_GRANTED*".into()], ..auto() };
    let lab = Lab::new(&rule);
    // The test's own variables are those of whoever runs it; these are set by cargo.
    let seen = lab.can(CommandPurpose::Build, "env");
    for name in ["CARGO_MANIFEST_DIR=", "CARGO_PKG_NAME=", "LD_PRELOAD=", "SSH_AUTH_SOCK="] {
        assert!(!seen.lines().any(|line| line.starts_with(name)), "{seen}");
    }
    assert!(seen.lines().any(|line| line.starts_with("PATH=")), "{seen}");
    let own = lab.command(CommandPurpose::Build, "test $OWN = 1").env("OWN", "1");
    assert_eq!(run(&own, &StopFlag::new()).unwrap().exit, Exit::Code(0));
}

#[test]
fn too_many_processes_end_the_command() {
    let rule = SandboxRule { processes: Some(40), ..auto() };
    let lab = Lab::new(&rule);
    let bomb = "for i in $(seq 400); do sleep 100 & done 2>/dev/null; wait";
    let ended = lab.sh(CommandPurpose::Build, bomb);
    // Either the kernel refused to make more, or karve noticed.
    assert!(!ended.exit.success(), "{:?}", ended.exit);
    assert!(ended.wall < Duration::from_secs(50), "{:?}", ended.wall);
}

#[test]
fn too_much_memory_ends_the_command() {
    let rule = SandboxRule { memory_gib: Some(0.25), ..auto() };
    let lab = Lab::new(&rule);
    let one = "python3 -c 'x = bytearray(600 << 20)'";
    lab.cannot(CommandPurpose::Build, one);
    let grow = "import time; x = bytearray(180 << 20); time.sleep(30)";
    let many = format!("for i in 1 2 3; do python3 -c '{grow}' & done; wait");
    let ended = lab.sh(CommandPurpose::Build, &many);
    let excess = Exit::TooMuch(karve_os::process::ExceededLimit::Memory);
    assert_eq!(ended.exit, excess);
}

#[test]
fn files_in_memory_are_bounded_by_the_memory_of_a_command() {
    let rule = SandboxRule { memory_gib: Some(0.125), agent_network: true, ..auto() };
    let lab = Lab::new(&rule);
    if !has_room() {
        return;
    }
    let (fits, too_much) =
        ("head -c 16M /dev/zero >/dev/shm/x", "head -c 160M /dev/zero >/dev/shm/x");
    for purpose in [CommandPurpose::Build, CommandPurpose::Test, CommandPurpose::Measure] {
        lab.can(purpose, fits);
        lab.cannot(purpose, too_much);
    }
    let (tree, notes) = (lab.tree(), lab.path("project/.karve/toy/tmp/agent"));
    fs::create_dir_all(&notes).unwrap();
    let places = AgentPaths::of(&tree, &notes);
    let (agent, _) = lab.sandbox.confine_agent(&places).unwrap();
    let sh = |line: &str| {
        let command = Command::shell(line, &tree).confined(&agent);
        run(&command, &StopFlag::new()).unwrap().exit
    };
    assert_eq!(sh(fits), Exit::Code(0));
    assert_eq!(sh(too_much), Exit::Code(1));
    // Where there is no home to hide, it is nowhere.
    let home = "[ -w ~ ] || exit 1; head -c 160M /dev/zero >~/x";
    assert_eq!(sh(home), Exit::Code(1));
    let many = "cd /dev/shm && i=0 && while [ $i -lt 60000 ]; do : >f$i || exit 9; \
                i=$((i+1)); done 2>/dev/null";
    assert_ne!(sh(many), Exit::Code(0));
}

#[test]
fn what_a_command_leaves_running_is_ended() {
    let lab = Lab::new(&auto());
    let ended = lab.sh(CommandPurpose::Build, "setsid -f env -i sleep 1000; sleep 0.2; exit 3");
    assert_eq!(ended.exit, Exit::Code(3));
    assert_eq!(ended.orphans, 1);
}

#[test]
fn exit_codes_signals_and_limits_are_told_as_without_a_sandbox() {
    let lab = Lab::new(&auto());
    assert_eq!(lab.sh(CommandPurpose::Build, "exit 7").exit, Exit::Code(7));
    assert_eq!(lab.sh(CommandPurpose::Build, "kill -SEGV $$").exit, Exit::Signal(11));
    let slow = lab.command(CommandPurpose::Build, "sleep 100").limit(Duration::from_millis(300));
    assert_eq!(run(&slow, &StopFlag::new()).unwrap().exit, Exit::TimedOut);
    let burn = "python3 -c 'import time\nwhile time.process_time() < 0.3: pass'";
    let burnt = lab.sh(CommandPurpose::Build, burn);
    assert!(burnt.cpu >= Duration::from_millis(290), "{:?}", burnt.cpu);
    let missing = Command::argv(["/nowhere/at-all"], Path::new("/"))
        .confined(&lab.sandbox.confine(CommandPurpose::Build, &lab.tree()).unwrap());
    assert!(run(&missing, &StopFlag::new()).is_err());
}

#[test]
fn an_agent_changes_its_worktree_and_sees_no_other() {
    let rule = SandboxRule { agent_network: true, ..auto() };
    let lab = Lab::new(&rule);
    let tree = lab.path("project/.karve/toy/worktrees/agent");
    let notes = lab.path("project/.karve/toy/tmp/agent");
    fs::create_dir_all(&tree).unwrap();
    fs::create_dir_all(&notes).unwrap();
    let (confinement, _) = lab.sandbox.confine_agent(&AgentPaths::of(&tree, &notes)).unwrap();
    let sh = |line: &str| {
        let command = Command::shell(line, &tree).confined(&confinement);
        run(&command, &StopFlag::new()).unwrap().exit
    };
    let notes = notes.display();
    assert_eq!(sh(&format!("echo 1 > kernel && echo 1 > {notes}/answer")), Exit::Code(0));
    let other = lab.tree();
    assert_ne!(sh(&format!("cat {}/kernel.c", other.display())), Exit::Code(0));
    assert_ne!(sh(&format!("cat {}", lab.path("project/secret").display())), Exit::Code(0));
    let log = lab.path("project/.karve/toy/events.jsonl");
    sh(&format!("echo x >> {}", log.display()));
    assert_eq!(fs::read_to_string(log).unwrap(), "the log");
}

/// Answers every connection with one word, for as long as the test runs.
fn one_word_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut asked = [0; 1_000];
            let _ = stream.read(&mut asked);
            let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\n";
            let _ = write!(stream, "{head}model");
        }
    });
    port
}

/// Asks a server by HTTP, straight or by a proxy, and prints what came back.
const ASK: &str = r"
import os, socket, sys
way, port = sys.argv[1], int(sys.argv[2])
END = b' HTTP/1.1\r\n\r\n'
proxy = int(os.environ['HTTPS_PROXY'].rsplit(':', 1)[1])
s = socket.create_connection(('127.0.0.1', port if way == 'straight' else proxy), 5)
if way == 'tunnel':
    s.sendall(b'CONNECT localhost:%d' % port + END)
    s.recv(100)
asked = {'page': b'GET http://localhost:%d/' % port, 'elsewhere': b'CONNECT example.com:443'}
s.sendall(asked.get(way, b'GET /') + END)
said = b''
while part := s.recv(1000):
    said += part
print(said.decode())
";

#[test]
fn an_agent_reaches_its_model_and_nothing_else() {
    if HostSupport::of_host().no_namespace.is_some() || !has_program("python3 --version") {
        return;
    }
    let rule = SandboxRule { agent_network: true, ..auto() };
    let lab = Lab::new(&rule);
    let tree = lab.path("project/.karve/toy/worktrees/agent");
    let notes = lab.path("project/.karve/toy/tmp/agent");
    fs::create_dir_all(&tree).unwrap();
    fs::create_dir_all(&notes).unwrap();
    fs::write(tree.join("ask.py"), ASK).unwrap();
    let (model, other) = (one_word_server(), one_word_server());
    let hosts = [AllowedHost::parse(&format!("http://127.0.0.1:{model}/v1")).unwrap()];
    let places = AgentPaths { hosts: Some(&hosts), ..AgentPaths::of(&tree, &notes) };
    let (confinement, gateway) = lab.sandbox.confine_agent(&places).unwrap();
    let gateway = gateway.unwrap();
    let ask = |way: &str, port: u16| {
        let line = format!("python3 ask.py {way} {port}");
        let mut command = Command::shell(&line, &tree).confined(&confinement);
        for (name, value) in gateway.variables() {
            command = command.env(name, value);
        }
        let run = run(&command, &StopFlag::new()).unwrap();
        run.stdout.text().into_owned() + &run.stderr.text()
    };
    for way in ["straight", "tunnel", "page"] {
        let said = ask(way, model);
        assert!(said.contains("200 OK") && said.contains("model"), "{way}: {said}");
        let said = ask(way, other);
        assert!(!said.contains("200 OK"), "{way}: {said}");
    }
    let said = ask("elsewhere", 0);
    assert!(said.contains("403") && said.contains("add it to hosts"), "{said}");
    let local = format!("localhost:{other}");
    assert_eq!(gateway.refused(), ["example.com:443".to_owned(), local]);
    drop(gateway);
}

/// Whether a program is there and answers; a test without it says so.
fn has_program(line: &str) -> bool {
    let output = std::process::Command::new("sh").args(["-c", line]).output();
    let there = output.is_ok_and(|output| output.status.success());
    if !there {
        println!("skipped: {line} does not work here");
    }
    there
}

#[test]
fn make_and_git_work_in_a_worktree() {
    let lab = Lab::new(&auto());
    if !has_program("make --version && cc --version && git --version") {
        return;
    }
    let makefile = "all: build/k.so\nbuild/k.so: kernel.c\n\tmkdir -p build \
                    $$HOME/.cache/x\n\tcc -shared -fPIC -o $@ kernel.c\n\
                    check: all\n\ttest -e build/k.so && touch build/checked\n";
    fs::write(lab.tree().join("Makefile"), makefile).unwrap();
    lab.can(CommandPurpose::Build, "git init -q . && git status --short");
    lab.can(CommandPurpose::Build, "make -s && make -s check");
    lab.can(CommandPurpose::Measure, "make -s && git status --short");
}

#[test]
fn cargo_builds_tests_and_measures() {
    let rule = SandboxRule { write: vec!["target".into()], ..auto() };
    let lab = Lab::new(&rule);
    if !has_program("cargo --version") {
        return;
    }
    let tree = lab.tree();
    let files = [
        (
            "Cargo.toml",
            "[package]\nname = \"k\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n\
             [dependencies]\ndep = \"1\"\n\n[[bench]]\nname = \"b\"\nharness = false\n",
        ),
        (
            ".cargo/config.toml",
            "[source.crates-io]\nreplace-with = \"here\"\n\n\
             [source.here]\ndirectory = \"vendor\"\n",
        ),
        (
            "src/lib.rs",
            "pub fn k() -> u32 { dep::d() }\n\n#[test]\nfn right() {\n    \
             std::fs::write(std::env::temp_dir().join(\"x\"), \"y\").unwrap();\n    \
             assert_eq!(k(), 7);\n}\n",
        ),
        ("benches/b.rs", "fn main() { println!(\"{}\", k::k()); }\n"),
        ("vendor/dep/Cargo.toml", "[package]\nname = \"dep\"\nversion = \"1.0.0\"\n"),
        ("vendor/dep/src/lib.rs", "pub fn d() -> u32 { 7 }\n"),
        ("vendor/dep/.cargo-checksum.json", "{\"files\":{}}"),
    ];
    for (name, text) in files {
        let path = tree.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    lab.can(CommandPurpose::Build, "cargo build -q && cargo bench -q --no-run");
    if has_room() {
        let trial = lab.sandbox.confine_trial(CommandPurpose::Test, &tree).unwrap();
        let command = Command::shell("cargo test -q", &tree).confined(&trial);
        let tested = run(&command, &StopFlag::new()).unwrap();
        assert_eq!(tested.exit, Exit::Code(0), "{}", tested.stderr.text());
    }
    let printed = lab.can(CommandPurpose::Measure, "cargo bench -q");
    assert!(printed.trim().ends_with('7'), "{printed}");
}

#[test]
fn pytest_and_its_processes_work() {
    let lab = Lab::new(&auto());
    if !has_program("python3 -m pytest --version") {
        return;
    }
    let test = "import multiprocessing, socket\n\n\
                def test_file(tmp_path):\n    (tmp_path / 'x').write_text('y')\n\n\
                def test_pool():\n    with multiprocessing.Pool(2) as pool:\n        \
                assert pool.map(abs, [-1]) == [1]\n\n\
                def test_loopback():\n    s = socket.socket()\n    \
                s.bind(('127.0.0.1', 0))\n    s.listen()\n    \
                socket.create_connection(s.getsockname()).close()\n";
    fs::write(lab.tree().join("test_k.py"), test).unwrap();
    let run_it = "python3 -m pytest -q";
    if has_room() {
        lab.can(CommandPurpose::Build, run_it);
        lab.can(CommandPurpose::Measure, run_it);
    } else {
        // Without a room there is no network at all, and no shared memory.
        lab.can(CommandPurpose::Build, "python3 -m pytest -q -k test_file");
    }
}

/// Run by hand: what a confined start costs.
#[test]
#[ignore = "a measurement"]
fn what_a_start_costs() {
    let lab = Lab::new(&auto());
    let mut times = [const { Vec::new() }; 5];
    for _ in 0..2_000 {
        let plain = Command::argv(["/bin/true"], &lab.tree());
        let start = std::time::Instant::now();
        let ended = run(&plain, &StopFlag::new()).unwrap();
        times[0].push(start.elapsed());
        times[1].push(ended.wall);
        let start = std::time::Instant::now();
        let confinement = lab.sandbox.confine(CommandPurpose::Measure, &lab.tree()).unwrap();
        times[2].push(start.elapsed());
        let confined = plain.clone().confined(&confinement);
        let ended = run(&confined, &StopFlag::new()).unwrap();
        times[3].push(start.elapsed());
        times[4].push(ended.wall);
    }
    let names = [
        "plain",
        "plain, its wall time",
        "what is done before a confined start",
        "confined, with that",
        "confined, its wall time",
    ];
    for (name, times) in names.iter().zip(&mut times) {
        times.sort();
        println!("{name}: median {:?}, lowest {:?}", times[1_000], times[0]);
    }
}
