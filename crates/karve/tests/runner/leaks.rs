//! What a kernel's process must not read, do or say: each promise of SECURITY.md about workers.

use super::python::{self, python_with};
use super::{built, case, check_kernel, kernels, terms};
use karve_core::measurement::Gate;
use karve_os::process::ConfinementSupport;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Whether Landlock confines workers here; a test without it says so and ends.
fn has_landlock() -> bool {
    let found = ConfinementSupport::ask().landlock > 0;
    if !found {
        eprintln!("skipped: this kernel has no Landlock");
    }
    found
}

/// Files that are none of a kernel's business.
fn private_files(outside: &Path, tree: &Path) -> Vec<String> {
    let secret = outside.join("secret.txt");
    fs::write(&secret, "secret").expect("a file");
    fs::write(tree.join("karve.toml"), "[cases]\nhidden = 1\n").expect("a file");
    fs::create_dir_all(tree.join(".git")).expect("a directory");
    fs::write(tree.join(".git/config"), "x").expect("a file");
    std::os::unix::fs::symlink(&secret, tree.join("link.txt")).expect("a link");
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let mut files = vec![
        secret.display().to_string(),
        checkout.display().to_string(),
        format!("{}/karve.toml", tree.display()),
        format!("{}/.git/config", tree.display()),
        format!("{}/link.txt", tree.display()),
        format!("/proc/{}/environ", std::process::id()),
        format!("/proc/{}/cmdline", std::process::id()),
        format!("/proc/{}/maps", std::process::id()),
        format!("/proc/self/root{}", secret.display()),
    ];
    let system = ["/etc/passwd", "/etc/shadow", "/etc/hosts", "/proc/1/cmdline"];
    let own = ["/proc/self/mem", "/proc/self/environ", "/proc/thread-self/mem", "/dev/shm", "/"];
    files.extend(system.into_iter().chain(own).map(str::to_owned));
    if let Some(home) = std::env::var_os("HOME") {
        files.push(home.to_string_lossy().into_owned());
    }
    files
}

/// A C kernel that ends with 100 and the index of the first file that it can open.
fn opening(files: &[String], may_open: &[&str]) -> String {
    let list = |files: &mut dyn Iterator<Item = &str>| {
        files.map(|file| format!("\"{file}\"")).collect::<Vec<_>>().join(", ")
    };
    let refused = list(&mut files.iter().map(String::as_str));
    let allowed = list(&mut may_open.iter().copied());
    let body = format!(
        "static const char *no[] = {{{refused}}}, *yes[] = {{{allowed}}};\n\
         for (int i = 0; i < (int)(sizeof no / sizeof *no); i++)\n\
         if (open(no[i], O_RDONLY) >= 0) _exit(100 + i);\n\
         for (int i = 0; i < (int)(sizeof yes / sizeof *yes); i++) {{\n\
         int fd = open(yes[i], O_RDONLY); char c;\n\
         if (fd < 0 || read(fd, &c, 1) < 0) _exit(200 + i);\n close(fd); }}"
    );
    format!("#include <fcntl.h>\n{}", kernels::with(&body))
}

fn build(dir: &Path, source: &str) {
    fs::write(dir.join("kernel.c"), source).expect("a file");
    let status = std::process::Command::new("cc")
        .args(["-O1", "-shared", "-fPIC", "-pthread", "-D_GNU_SOURCE", "-o", "kernel.so"])
        .arg("kernel.c")
        .current_dir(dir)
        .status();
    assert!(status.expect("a C compiler").success());
}

#[test]
fn a_kernel_in_c_reads_its_tree_and_the_libraries_and_nothing_else() {
    if !has_landlock() {
        return;
    }
    let (dir, outside) = (built(kernels::HONEST), tempfile::tempdir().expect("a directory"));
    fs::create_dir(dir.path().join("tables")).expect("a directory");
    fs::write(dir.path().join("tables/t.bin"), "1").expect("a file");
    let files = private_files(outside.path(), dir.path());
    let own = ["tables/t.bin", "kernel.c", "/proc/self/status", "/proc/self/maps", "/proc/cpuinfo"];
    build(dir.path(), &opening(&files, &own));
    let gate = check_kernel(&terms(dir.path()), dir.path(), None, &[case(77)]).expect("a check");
    assert!(gate.is_ok(), "{gate:?} of {files:?}");
    // What the user names can be read.
    let mut open = terms(dir.path());
    open.readable = vec![outside.path().to_owned()];
    let gate = check_kernel(&open, dir.path(), None, &[case(77)]).expect("a check");
    assert!(gate.is_err_and(|gate| gate.describe().contains("exited")));
    assert!(told(dir.path()).contains("exit code 100"));
}

#[test]
fn a_kernel_in_python_reads_its_tree_and_its_modules_and_nothing_else() {
    let (Some(interpreter), true) = (python_with("numpy"), has_landlock()) else {
        return;
    };
    let kernel = "
import ctypes, ctypes.util, hashlib, json, math, os, random, statistics
import numpy as np
import helper

FILES = json.loads(open(os.path.join(os.path.dirname(__file__), 'files.json')).read())
LIBM = ctypes.CDLL('libm.so.6')
LIBM.fabs.restype, LIBM.fabs.argtypes = ctypes.c_double, [ctypes.c_double]

def kernel_fn(n, alpha, x, y):
    for index, path in enumerate(FILES):
        try:
            fd = os.open(path, os.O_RDONLY)
        except OSError:
            continue
        os._exit(100 + index)
    assert LIBM.fabs(-2.0) == 2.0 and hashlib.sha256(b'').digest() and helper.ONE == 1
    z = x * y
    y += np.float32(alpha) * x
    return z
";
    let dir = python::project(kernel, python::REFERENCE);
    let outside = tempfile::tempdir().expect("a directory");
    let files = private_files(outside.path(), dir.path());
    let list = serde_json::to_string(&files).expect("a list");
    fs::write(dir.path().join("files.json"), list).expect("a file");
    fs::write(dir.path().join("helper.py"), "ONE = 1\n").expect("a file");
    let terms = python::python_terms(dir.path(), &interpreter);
    let gate = check_kernel(&terms, dir.path(), None, &[case(77)]).expect("a check");
    assert!(gate.is_ok(), "{gate:?} of {files:?}");
}

/// Calls that could hide, signal, keep or carry something, as a C expression that is negative if
/// the call is refused.
const CALLS: &[(&str, &str)] = &[
    ("file leases", "fcntl(own, 1024, F_RDLCK)"),
    ("directory notification", "fcntl(own, 1026, 1)"),
    ("POSIX locks", "fcntl(own, F_SETLK, &(struct flock){.l_type = F_RDLCK})"),
    ("OFD locks", "fcntl(own, 37, &(struct flock){.l_type = F_RDLCK})"),
    ("flock", "flock(own, LOCK_SH)"),
    ("memfd_secret", "syscall(447, 0)"),
    ("membarrier", "syscall(SYS_membarrier, 0, 0, 0)"),
    ("core scheduling", "prctl(62, 1, 0, 1, 0)"),
    ("hiding from /proc", "prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)"),
    ("outliving karve", "prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0)"),
    ("SysV shared memory", "shmget(4711, 4096, IPC_CREAT | 0600)"),
    ("SysV queues", "msgget(4711, IPC_CREAT | 0600)"),
    ("SysV semaphores", "semget(4711, 1, IPC_CREAT | 0600)"),
    ("POSIX shared memory", "open(\"/dev/shm/karve-test\", O_CREAT | O_RDWR, 0600)"),
    ("POSIX queues", "syscall(SYS_mq_open, \"karve-test\", O_CREAT | O_RDWR, 0600, 0)"),
    ("sockets", "socket(AF_UNIX, SOCK_STREAM, 0)"),
    ("socket pairs", "socketpair(AF_UNIX, SOCK_DGRAM, 0, pair)"),
    ("abstract sockets", "bind(0, (struct sockaddr *)&(struct sockaddr_un){AF_UNIX, \"\\0k\"}, 5)"),
    ("io_uring", "syscall(425, 8, memset(big, 0, 256))"),
    ("userfaultfd", "syscall(323, O_CLOEXEC)"),
    ("perf events", "syscall(SYS_perf_event_open, memset(big, 0, 256), 0, -1, -1, 0)"),
    ("keys", "syscall(SYS_keyctl, 0, -3, 1)"),
    ("key requests", "syscall(SYS_request_key, \"user\", \"k\", 0, -3)"),
    ("ptrace", "ptrace(PTRACE_ATTACH, getppid(), 0, 0)"),
    ("reading another process", "process_vm_readv(getppid(), &part, 1, &part, 1, 0)"),
    ("writing another process", "process_vm_writev(getppid(), &part, 1, &part, 1, 0)"),
    ("its own memory as a file", "open(\"/proc/self/mem\", O_RDONLY)"),
    ("the memory of a thread", "open(\"/proc/thread-self/mem\", O_RDONLY)"),
    ("a larger core file", "setrlimit(RLIMIT_CORE, &(struct rlimit){1 << 20, 1 << 20})"),
    ("writing a file", "open(\"left.txt\", O_CREAT | O_WRONLY, 0600)"),
    ("a signal to karve", "kill(getppid(), SIGCONT)"),
    ("a new process", "fork()"),
];

#[test]
fn calls_that_hide_signal_keep_or_carry_something_are_refused() {
    if !has_landlock() {
        return;
    }
    let tries = CALLS
        .iter()
        .enumerate()
        .map(|(index, (_, call))| format!("if ((long)({call}) >= 0) _exit({});\n", 100 + index));
    let core = "struct rlimit core; getrlimit(RLIMIT_CORE, &core);\n\
                if (core.rlim_max > 1) _exit(99);\n";
    let body = format!(
        "static char big[256]; int own = open(\"kernel.c\", O_RDONLY), pair[2];\n\
         struct iovec part = {{big, 1}}; (void)pair; (void)part;\n\
         if (own < 0) _exit(98);\n{core}{}close(own);",
        tries.collect::<String>()
    );
    let heads = "fcntl signal string sys/file sys/ipc sys/msg sys/prctl sys/ptrace sys/resource \
                 sys/sem sys/shm sys/socket sys/syscall sys/types sys/uio sys/un";
    let heads: String =
        heads.split_whitespace().map(|head| format!("#include <{head}.h>\n")).collect();
    let dir = built(kernels::HONEST);
    build(dir.path(), &format!("{heads}{}", kernels::with(&body)));
    let gate = check_kernel(&terms(dir.path()), dir.path(), None, &[case(77)]).expect("a check");
    let gate = gate.map(drop).map_err(|gate| gate.describe());
    let told = told(dir.path());
    let allowed =
        CALLS.iter().enumerate().find(|(at, _)| told.contains(&format!("exit code {}", 100 + at)));
    assert_eq!(gate, Ok(()), "allowed: {allowed:?}");
}

/// What the process of a kernel said and how it ended, for the user.
fn told(dir: &Path) -> String {
    fs::read_to_string(dir.join("scratch/worker-output")).unwrap_or_default()
}

#[test]
fn what_a_kernel_prints_is_kept_for_the_user_and_is_in_no_verdict() {
    let secret = "rows=4711 \u{1b}]52;c;x\u{7}";
    let kernel = kernels::with("fprintf(stderr, \"rows=4711 \\033]52;c;x\\a\\n\"); abort();");
    let dir = built(&format!("#include <stdio.h>\n{kernel}"));
    let gate = check_kernel(&terms(dir.path()), dir.path(), None, &[case(77)]).expect("a check");
    let gate = gate.expect_err("a refusal");
    assert!(gate.describe().contains("aborted") && !gate.describe().contains("4711"), "{gate:?}");
    let kept = fs::read_to_string(dir.path().join("scratch/worker-output")).expect("a file");
    assert!(kept.contains("rows=4711") && !kept.contains(secret), "{kept:?}");
    assert!(!kept.contains('\u{1b}'), "{kept:?}");
}

#[test]
fn what_a_module_raises_is_kept_for_the_user_and_is_in_no_verdict() {
    let Some(interpreter) = python_with("numpy") else {
        return;
    };
    for ending in ["raise ValueError('rows=%d' % 4711)", "raise type('rows4711', (Exception,), {})"]
    {
        let dir = python::project(&python::HONEST.replace("return z", ending), python::REFERENCE);
        let terms = python::python_terms(dir.path(), &interpreter);
        let gate = check_kernel(&terms, dir.path(), None, &[case(77)]).expect("a check");
        let shown = gate.expect_err("a refusal").describe();
        assert!(shown.contains("at kernel.py:8") && !shown.contains("4711"), "{shown}");
        let kept = fs::read_to_string(dir.path().join("scratch/worker-output")).expect("a file");
        assert!(kept.contains("4711"), "{kept}");
    }
}

#[test]
fn many_short_delays_together_stay_within_the_limit() {
    let dir = built(&format!("#include <time.h>\n{}", kernels::with("usleep(300 * 1000);")));
    let mut terms = terms(dir.path());
    terms.limit = Duration::from_millis(500);
    let start = Instant::now();
    let gate = check_kernel(&terms, dir.path(), None, &[case(9)]).expect("a check");
    assert!(matches!(gate, Err(Gate::TimedOut { .. })), "{gate:?}");
    // All its calls would take 12 s, and it has 3 s; the bound leaves room for a loaded host.
    assert!(start.elapsed() < Duration::from_secs(9), "{:?}", start.elapsed());
}

#[test]
fn a_reference_that_does_not_start_stops_the_check() {
    let dir = built(kernels::HONEST);
    fs::write(dir.path().join("reference.so"), "not a library").expect("a file");
    let error = check_kernel(&terms(dir.path()), dir.path(), None, &[case(9)]);
    let shown = error.expect_err("no check").to_string();
    assert!(shown.contains("the reference failed"), "{shown}");
}
