//! Machines that are reached in other ways than by starting a process.

use crate::e2e::lab::{CALM, Lab, PATH, Said, scratch, source};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// karve's directory on another machine, which is this one.
#[derive(Debug)]
pub(crate) struct Far {
    pub(crate) dir: PathBuf,
    table: PathBuf,
}

impl Far {
    /// A remote of the user; copies of karve are shared by all tests.
    pub(crate) fn of(lab: &Lab, lines: &str) -> Self {
        let dir = lab.beside("far");
        if !dir.exists() {
            fs::create_dir(&dir).unwrap();
            let copies = Path::new(env!("CARGO_TARGET_TMPDIR")).join("far");
            fs::create_dir_all(&copies).unwrap();
            symlink(copies, dir.join("bin")).unwrap();
        }
        let far = Self { table: lab.beside("config/karve/remotes.toml"), dir };
        fs::create_dir_all(far.table.parent().unwrap()).unwrap();
        let place = far.dir.display();
        fs::write(&far.table, format!("[far]\ndir = \"{place}\"\n{lines}")).unwrap();
        far
    }

    /// Reached by a command that is simply run.
    pub(crate) fn by_command(lab: &Lab) -> Self {
        Self::of(lab, "engine = \"command\"\nrun = \"{command}\"\ngrace = \"5s\"\n")
    }

    /// Reached by ssh.
    pub(crate) fn by_ssh(lab: &Lab, sshd: &Sshd) -> Self {
        let config = sshd.path("ssh_config").display().to_string();
        let ssh = format!("engine = \"ssh\"\nhost = \"far1\"\noptions = [\"-F\", \"{config}\"]\n");
        Self::of(lab, &format!("{ssh}grace = \"5s\"\n{}", far_env(lab, None)))
    }

    /// In allocations of SLURM, from a node that can submit.
    pub(crate) fn by_slurm(lab: &Lab, slurm: &Slurm, lines: &str) -> Self {
        Self::of(lab, &format!("engine = \"slurm\"\n{lines}{}", far_env(lab, Some(slurm))))
    }

    /// In actors of Ray.
    pub(crate) fn by_ray(lab: &Lab, ray: &Ray, devices: u32) -> Self {
        let address = format!("address = \"127.0.0.1:{}\"\n", ray.port);
        let python = format!("python = \"{}\"\n", ray.python.display());
        let lines = format!("engine = \"ray\"\n{address}{python}devices = {devices}\n");
        Self::of(lab, &format!("{lines}{}", far_env(lab, None)))
    }

    /// In allocations of SLURM, through a login node.
    pub(crate) fn by_login(lab: &Lab, sshd: &Sshd, slurm: &Slurm) -> Self {
        let config = sshd.path("ssh_config").display().to_string();
        let ssh = format!("host = \"far1\"\noptions = [\"-F\", \"{config}\"]\ngrace = \"5s\"\n");
        Self::by_slurm(lab, slurm, &ssh)
    }

    /// Changes one key; a value that starts with `__` is not quoted.
    pub(crate) fn set(&self, key: &str, value: &str) {
        let table = fs::read_to_string(&self.table).unwrap();
        let is_key = |line: &&str| line.split(' ').next() == Some(key);
        let kept: Vec<&str> = table.lines().skip(1).filter(|line| !is_key(line)).collect();
        let value = match value.strip_prefix("__") {
            Some(plain) => plain.to_owned(),
            None => format!("{value:?}"),
        };
        fs::write(&self.table, format!("[far]\n{key} = {value}\n{}\n", kept.join("\n"))).unwrap();
    }

    /// What runs there: processes that name its directory.
    pub(crate) fn running(&self) -> Vec<String> {
        let name = self.dir.display().to_string();
        processes_with(&name).into_iter().map(|(_, line)| line).collect()
    }

    /// The process ids of the workers there, without what they started.
    pub(crate) fn workers(&self) -> Vec<String> {
        let name = self.dir.display().to_string();
        let is_worker = |line: &str| line.starts_with(&name) && line.contains(" worker --remote");
        let all = processes_with(&name).into_iter();
        let all: Vec<String> = all
            .filter(|(_, line)| is_worker(line) && !line.contains(" relay "))
            .map(|(pid, _)| pid)
            .collect();
        let is_first = |pid: &&String| parent_of(pid).is_none_or(|parent| !all.contains(&parent));
        all.iter().filter(is_first).cloned().collect()
    }
}

fn parent_of(pid: &str) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1).map(str::to_owned)
}

/// Processes whose command line names something.
pub(crate) fn processes_with(name: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let pid = entry.file_name().to_string_lossy().into_owned();
        if line.contains(name) && pid != std::process::id().to_string() {
            found.push((pid, line));
        }
    }
    found
}

/// Ends a process at once.
pub(crate) fn kill(pid: &str) {
    Command::new("kill").args(["-9", pid]).stderr(Stdio::null()).status().unwrap();
}

/// The variables that a test needs there too.
fn far_env(lab: &Lab, slurm: Option<&Slurm>) -> String {
    let mut env = vec![
        ("PATH", PATH.to_owned()),
        ("HOME", "/nonexistent".to_owned()),
        ("TMPDIR", lab.beside("tmp").display().to_string()),
        ("KARVE_LEASE_DIR", lab.beside("leases").display().to_string()),
        ("KARVE_TEST_PRESSURE_FILE", source(CALM).display().to_string()),
    ];
    if let Some(slurm) = slurm {
        env.push(("SLURM_CONF", slurm.path("slurm.conf").display().to_string()));
    }
    let env: Vec<String> = env.iter().map(|(name, value)| format!("{name} = {value:?}")).collect();
    format!("env = {{ {} }}\n", env.join(", "))
}

/// A port that nobody uses now.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn is_installed(program: &str) -> bool {
    std::env::split_paths(PATH).any(|dir| dir.join(program).is_file())
}

fn is_root() -> bool {
    let said = Command::new("id").arg("-u").output().unwrap();
    said.stdout == b"0\n"
}

/// A private sshd; ended with the test.
#[derive(Debug)]
pub(crate) struct Sshd {
    dir: TempDir,
    port: u16,
}

impl Sshd {
    /// Starts it; none if it is not installed.
    pub(crate) fn start() -> Option<Self> {
        if !is_installed("sshd") || !is_root() {
            println!("skipped: sshd is not installed, or this is not root");
            return None;
        }
        let sshd = Self { dir: scratch(), port: free_port() };
        sshd.begin();
        Some(sshd)
    }

    /// Starts it, or starts it again.
    pub(crate) fn begin(&self) {
        let mut script = Command::new("bash");
        script.arg(source("testing/sshd.sh")).arg(self.dir.path()).arg(self.port.to_string());
        let said = Said::of(&script.env("PATH", PATH).output().unwrap());
        said.ends(0);
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.dir.path().join(relative)
    }

    /// Ends it; open connections stay.
    pub(crate) fn stop(&self) {
        kill(fs::read_to_string(self.path("sshd.pid")).unwrap_or_default().trim());
    }

    /// Ends the open connections.
    pub(crate) fn cut(&self) {
        let name = self.path("ssh_config").display().to_string();
        for (pid, line) in processes_with(&name) {
            if line.starts_with("ssh ") {
                kill(&pid);
            }
        }
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A private Ray cluster of one node; ended with the test.
#[derive(Debug)]
pub(crate) struct Ray {
    dir: TempDir,
    python: PathBuf,
    port: u16,
}

impl Ray {
    /// Starts it; none if `test.sh` could not install it.
    pub(crate) fn start(gpus: u32) -> Option<Self> {
        let bin = source("target/ray/bin");
        if !bin.join("ray").is_file() {
            println!("skipped: Ray is not installed in target/ray");
            return None;
        }
        // The names of its sockets are long.
        let dir = tempfile::Builder::new().prefix("kr-").tempdir_in("/tmp").unwrap();
        let ray = Self { dir, python: bin.join("python"), port: 20_000 + free_port() % 10_000 };
        let mut start = Command::new(bin.join("ray"));
        start
            .args(["start", "--head", "--include-dashboard=false", "--disable-usage-stats"])
            .args(["--num-cpus=8", &format!("--num-gpus={gpus}"), &format!("--port={}", ray.port)])
            .arg(format!("--temp-dir={}", ray.dir.path().display()))
            .env("PATH", PATH);
        Said::of(&start.output().unwrap()).ends(0);
        Some(ray)
    }
}

impl Drop for Ray {
    fn drop(&mut self) {
        for _ in 0..3 {
            for (pid, _) in processes_with(&self.dir.path().display().to_string()) {
                kill(&pid);
            }
        }
    }
}

/// A private SLURM; ended with the test.
#[derive(Debug)]
pub(crate) struct Slurm {
    dir: TempDir,
}

impl Slurm {
    /// Starts it with some nodes; none if it is not installed.
    pub(crate) fn start(nodes: u32) -> Option<Self> {
        let programs = ["slurmctld", "slurmd", "munged", "salloc"];
        if !programs.iter().all(|program| is_installed(program)) || !is_root() {
            println!("skipped: SLURM is not installed, or this is not root");
            return None;
        }
        // Its controller writes more than a small memory disk holds.
        let dir = tempfile::Builder::new().prefix("karve-slurm-").tempdir().unwrap();
        let slurm = Self { dir };
        // A range that the kernel does not give to others.
        let port = 20_000 + free_port() % 10_000;
        slurm.script(&["start", "", &nodes.to_string(), &port.to_string()]);
        Some(slurm)
    }

    fn script(&self, args: &[&str]) {
        let mut script = Command::new("bash");
        script.arg(source("testing/slurm.sh")).arg(args[0]).arg(self.dir.path());
        let args = args[1..].iter().filter(|arg| !arg.is_empty());
        Said::of(&script.args(args).env("PATH", PATH).output().unwrap()).ends(0);
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.dir.path().join(relative)
    }

    /// Runs one of its commands.
    pub(crate) fn run(&self, program: &str, args: &[&str]) -> Said {
        let mut command = Command::new(program);
        command.args(args).env("SLURM_CONF", self.path("slurm.conf"));
        Said::of(&command.output().unwrap())
    }

    /// Jobs that wait or run, with their states and nodes.
    pub(crate) fn jobs(&self) -> Vec<String> {
        let said = self.run("squeue", &["-h", "-t", "PD,R,CF", "-o", "%i %T %N"]).ends(0);
        said.stdout.lines().map(str::to_owned).collect()
    }

    /// Ends the daemon of a node.
    pub(crate) fn kill_daemon(&self, name: &str) {
        kill(fs::read_to_string(self.path(&format!("run/{name}.pid"))).unwrap().trim());
    }

    /// Ends a node with everything on it.
    pub(crate) fn kill_node(&self, name: &str, job: &str) {
        self.kill_daemon(name);
        let mark = format!("SLURM_CONF={}", self.path("slurm.conf").display());
        for (pid, line) in processes_with("slurmstepd: [") {
            if line.contains(&format!("[{job}.")) {
                kill(&pid);
            }
        }
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let environ = fs::read(entry.path().join("environ")).unwrap_or_default();
            let has = |wanted: &str| environ.split(|b| *b == 0).any(|v| v == wanted.as_bytes());
            if has(&mark) && has(&format!("SLURMD_NODENAME={name}")) {
                kill(&entry.file_name().to_string_lossy());
            }
        }
        self.run("scontrol", &["update", &format!("nodename={name}"), "state=down", "reason=x"]);
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        self.run("scancel", &["--state=RUNNING"]);
        self.run("scancel", &["--state=PENDING"]);
        self.script(&["stop"]);
    }
}
