//! A namespace sandbox: namespaces that are created once, with their own view of the files, and
//! that commands enter later.
//!
//! The sandbox is held by its first process, which only waits for karve to close it. When that
//! process ends, the kernel kills everything in the sandbox. It is forked from karve and does not
//! exec, so the code that it runs is async-signal-safe.

use std::ffi::{CStr, CString};
use std::io::PipeWriter;
use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::{io, mem, ptr};

use super::child_socket::{FDS_MAX, receive_with_fds, send_numbers, socket_pair};
use super::{Pid, WaitMode, count_start, pidfd_open, wait};

/// Flags of `open_tree` and `move_mount`.
const OPEN_TREE_CLONE: libc::c_uint = 1;
const AT_RECURSIVE: libc::c_uint = 0x8000;
const MOVE_FROM_EMPTY_PATH: libc::c_uint = 4;

/// Attributes of a mount.
const READ_ONLY: u64 = 1;
const NO_SUID: u64 = 2;

/// The maximum number of additional trees in a sandbox.
pub(in crate::process) const TREES_MAX: usize = 256;

/// The backlog of a listener.
const DOOR_BACKLOG: libc::c_int = 64;

/// One step that builds the view, in order.
#[derive(Debug)]
pub(in crate::process) enum ViewAction {
    /// Mounts an empty in-memory file system over a path: its options, and the path.
    Hide(CString, CString),
    /// Creates a directory, unless it exists.
    Dir(CString),
    /// Creates an empty file, unless it exists.
    File(CString),
    /// Creates a link: its target, and its path; it may fail.
    Link(CString, CString),
    /// Mounts one of the trees.
    Put(usize, CString),
    /// The same, read-only.
    PutReadOnly(usize, CString),
    /// Mounts an overlay on a directory, which receives everything written there: its options,
    /// and the path.
    Layer(CString, CString),
    /// Makes a hidden path read-only.
    Seal(CString),
    /// Mounts its own terminals; it may fail.
    Terminals(CString),
    /// Mounts the `/proc` of the sandbox.
    Processes(CString),
    /// The same, and they may write to their own files there.
    OwnProcesses(CString),
}

/// The plan of a sandbox.
#[derive(Debug)]
pub(in crate::process) struct NamespacePlan {
    /// For an ordinary user: the contents of `uid_map` and `gid_map`.
    pub(in crate::process) maps: Option<[CString; 2]>,
    /// Whether it has the host's network.
    pub(in crate::process) network: bool,
    /// The ports on which karve listens on the loopback of a sandbox without it; any port for 0.
    pub(in crate::process) doors: Vec<u16>,
    /// Files and directories, opened before anything is hidden.
    pub(in crate::process) trees: Vec<CString>,
    /// The steps that follow, when everything else is read-only.
    pub(in crate::process) acts: Vec<ViewAction>,
}

/// A sandbox with its first process.
#[derive(Debug)]
pub(in crate::process) struct NamespaceHandle {
    /// Its first process, as karve sees it.
    pub(in crate::process) pid: Pid,
    pidfd: OwnedFd,
    /// The first process ends when this is closed.
    pipe: Option<PipeWriter>,
    namespaces: libc::c_int,
    /// The listeners on its loopback, in the order of the plan.
    pub(in crate::process) doors: Vec<TcpListener>,
}

/// Where creating a sandbox failed: the number of the step, or earlier.
#[derive(Debug)]
pub(in crate::process) struct NamespaceError {
    /// The step, counted from 0; none if it failed earlier.
    pub(in crate::process) act: Option<usize>,
    /// Why.
    pub(in crate::process) cause: io::Error,
}

/// The first process's message before its step number.
const READY: i32 = -1;
const BEFORE: i32 = -2;

impl NamespaceHandle {
    /// Creates a sandbox and waits until it can be entered.
    pub(in crate::process) fn make(plan: &NamespacePlan) -> Result<Self, NamespaceError> {
        let before = |cause| NamespaceError { act: None, cause };
        let (control, pipe) = io::pipe().map_err(before)?;
        let (said, say) = socket_pair().map_err(before)?;
        let mut namespaces =
            libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;
        if !plan.network {
            namespaces |= libc::CLONE_NEWNET;
        }
        if plan.maps.is_some() {
            namespaces |= libc::CLONE_NEWUSER;
        }
        let flags = namespaces | libc::SIGCHLD;
        count_start();
        let none = ptr::null_mut::<u8>();
        // SAFETY: without a stack the child gets a copy of all memory, as by fork; it runs only
        // async-signal-safe code and never returns.
        let pid = unsafe {
            libc::syscall(libc::SYS_clone, libc::c_long::from(flags), none, none, none, none)
        };
        match pid {
            -1 => return Err(before(io::Error::last_os_error())),
            0 => hold(plan, control.as_raw_fd(), say.as_raw_fd()),
            _ => {}
        }
        let pid = pid as Pid;
        drop((control, say));
        let mut report = [0_u8; 8];
        let heard = match receive_with_fds(said.as_fd(), &mut report) {
            Ok((8, doors)) => Ok(doors),
            Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) => Err(error),
        };
        let [a, b, c, d, errno @ ..] = report;
        let act = i32::from_ne_bytes([a, b, c, d]);
        let pidfd = pidfd_open(pid);
        let failed = |act, cause| {
            let _ = wait(pid, WaitMode::Block);
            Err(NamespaceError { act, cause })
        };
        match (heard, act, pidfd) {
            (Ok(doors), READY, Ok(pidfd)) => Ok(Self {
                pid,
                pidfd,
                pipe: Some(pipe),
                namespaces,
                doors: doors.into_iter().map(TcpListener::from).collect(),
            }),
            (Ok(_), READY, Err(cause)) | (Err(cause), _, _) => {
                drop(pipe);
                failed(None, cause)
            }
            (Ok(_), act, _) => {
                let cause = io::Error::from_raw_os_error(i32::from_ne_bytes(errno));
                failed(usize::try_from(act).ok(), cause)
            }
        }
    }

    /// Moves the calling process into the sandbox, except for the process namespace, which only
    /// its children enter. Async-signal-safe.
    pub(super) fn enter(&self) -> bool {
        // SAFETY: plain system calls on numbers; the descriptor is open.
        unsafe {
            if libc::setns(self.pidfd.as_raw_fd(), self.namespaces) == -1 {
                return false;
            }
            // The memory may be shared with karve; entering a user namespace made it unreadable.
            self.namespaces & libc::CLONE_NEWUSER == 0
                || libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0) == 0
        }
    }
}

impl Drop for NamespaceHandle {
    fn drop(&mut self) {
        drop(self.pipe.take());
        let _ = wait(self.pid, WaitMode::Block);
    }
}

/// The code of the first process. Async-signal-safe.
fn hold(plan: &NamespacePlan, control: libc::c_int, say: libc::c_int) -> ! {
    let mut trees = [-1; TREES_MAX];
    let mut done = if prepare(plan, &mut trees) {
        let failed = plan.acts.iter().position(|act| !perform(act, &trees));
        failed.map_or(READY, |act| act as i32)
    } else {
        BEFORE
    };
    let mut errno = io::Error::last_os_error().raw_os_error().unwrap_or(0);
    // SAFETY: plain system calls; the buffers are valid for their lengths.
    unsafe {
        // No process waits for the sandbox's orphans.
        libc::signal(libc::SIGCHLD, libc::SIG_IGN);
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGPIPE] {
            libc::signal(signal, libc::SIG_IGN);
        }
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, c"karve-ns".as_ptr());
        // karve may inspect the sandbox; processes inside have fewer privileges and may not.
        libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0);
        // It must not keep karve's files open, least of all locks.
        libc::dup2(control, 0);
        libc::dup2(say, 1);
        libc::syscall(libc::SYS_close_range, 2, libc::c_uint::MAX, 0);
        let mut doors = [-1; FDS_MAX];
        let n_doors = plan.doors.len().min(FDS_MAX);
        for (door, port) in doors.iter_mut().zip(&plan.doors) {
            *door = listen_on(*port);
            if *door == -1 && done == READY {
                (done, errno) = (BEFORE, *libc::__errno_location());
            }
        }
        let [[a, b, c, d], [e, f, g, h]] = [done.to_ne_bytes(), errno.to_ne_bytes()];
        let given = if done == READY { n_doors } else { 0 };
        let sent = send_numbers(1, &[a, b, c, d, e, f, g, h], &doors[..given]);
        if done != READY || sent.is_err() {
            libc::_exit(1);
        }
        // karve has the listeners; only karve may accept connections there.
        libc::syscall(libc::SYS_close_range, 1, libc::c_uint::MAX, 0);
        let mut byte = 0_u8;
        loop {
            let n = libc::read(0, ptr::from_mut(&mut byte).cast(), 1);
            if n == 0 || (n == -1 && *libc::__errno_location() != libc::EINTR) {
                libc::_exit(0);
            }
        }
    }
}

/// Listens on a loopback port; -1 if that is not possible. Async-signal-safe.
fn listen_on(port: u16) -> libc::c_int {
    // SAFETY: a zeroed address is valid, and outlives the calls.
    unsafe {
        let fd = libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
        let mut address: libc::sockaddr_in = mem::zeroed();
        address.sin_family = libc::AF_INET as libc::sa_family_t;
        address.sin_port = port.to_be();
        address.sin_addr.s_addr = libc::INADDR_LOOPBACK.to_be();
        let size = mem::size_of::<libc::sockaddr_in>() as libc::socklen_t;
        let bound = libc::bind(fd, ptr::from_ref(&address).cast(), size) == 0;
        if bound && libc::listen(fd, DOOR_BACKLOG) == 0 { fd } else { -1 }
    }
}

/// Sets up its user, its network and copies of the trees, and then makes everything read-only.
fn prepare(plan: &NamespacePlan, trees: &mut [libc::c_int; TREES_MAX]) -> bool {
    if let Some([uid, gid]) = &plan.maps {
        let mapped = write_file(c"/proc/self/setgroups", c"deny")
            && write_file(c"/proc/self/uid_map", uid)
            && write_file(c"/proc/self/gid_map", gid);
        if !mapped {
            return false;
        }
    }
    if !plan.network {
        // Without loopback a program cannot even connect to itself; that is acceptable.
        loopback_up();
    }
    let root = c"/".as_ptr();
    let none = ptr::null();
    // SAFETY: the path is a null-terminated string.
    let private =
        unsafe { libc::mount(none, root, none, libc::MS_REC | libc::MS_PRIVATE, none.cast()) };
    if private == -1 {
        return false;
    }
    for (fd, path) in trees.iter_mut().zip(&plan.trees) {
        let flags = OPEN_TREE_CLONE | AT_RECURSIVE | libc::O_CLOEXEC as libc::c_uint;
        // SAFETY: the path is a null-terminated string.
        let opened =
            unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, path.as_ptr(), flags) };
        if opened == -1 {
            return false;
        }
        *fd = opened as libc::c_int;
    }
    set_attributes(libc::AT_FDCWD, c"/", READ_ONLY | NO_SUID, AT_RECURSIVE)
}

fn perform(act: &ViewAction, trees: &[libc::c_int; TREES_MAX]) -> bool {
    // SAFETY: the paths are null-terminated strings.
    unsafe {
        match act {
            ViewAction::Hide(options, path) => mount_new(c"tmpfs", path, options),
            ViewAction::Dir(path) => {
                libc::mkdir(path.as_ptr(), 0o755) == 0 || *libc::__errno_location() == libc::EEXIST
            }
            ViewAction::File(path) => {
                let flags = libc::O_CREAT | libc::O_CLOEXEC | libc::O_RDONLY;
                let fd = libc::open(path.as_ptr(), flags, 0o644);
                fd != -1 && libc::close(fd) == 0
            }
            ViewAction::Link(says, path) => {
                libc::symlink(says.as_ptr(), path.as_ptr());
                true
            }
            ViewAction::Put(tree, path) => put(trees, *tree, path),
            ViewAction::PutReadOnly(tree, path) => {
                let fd = trees.get(*tree).copied().unwrap_or(-1);
                let flags = AT_RECURSIVE | libc::AT_EMPTY_PATH as libc::c_uint;
                set_attributes(fd, c"", READ_ONLY | NO_SUID, flags) && put(trees, *tree, path)
            }
            ViewAction::Layer(options, path) => mount_new(c"overlay", path, options),
            ViewAction::Seal(path) => set_attributes(libc::AT_FDCWD, path, READ_ONLY, 0),
            ViewAction::Terminals(path) => {
                mount_new(c"devpts", path, c"newinstance,ptmxmode=0666,mode=0620");
                true
            }
            ViewAction::OwnProcesses(path) => mount_new(c"proc", path, c""),
            ViewAction::Processes(path) => {
                mount_new(c"proc", path, c"") && set_attributes(libc::AT_FDCWD, path, READ_ONLY, 0)
            }
        }
    }
}

fn put(trees: &[libc::c_int; TREES_MAX], tree: usize, path: &CStr) -> bool {
    let fd = trees.get(tree).copied().unwrap_or(-1);
    // SAFETY: the paths are null-terminated strings.
    unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            fd,
            c"".as_ptr(),
            libc::AT_FDCWD,
            path.as_ptr(),
            MOVE_FROM_EMPTY_PATH,
        ) == 0
    }
}

fn mount_new(kind: &CStr, path: &CStr, options: &CStr) -> bool {
    let flags = libc::MS_NOSUID | if kind == c"proc" { libc::MS_NODEV } else { 0 };
    // SAFETY: all of them are null-terminated strings.
    unsafe {
        libc::mount(kind.as_ptr(), path.as_ptr(), kind.as_ptr(), flags, options.as_ptr().cast())
            == 0
    }
}

/// The argument of `mount_setattr`.
#[repr(C)]
#[derive(Default)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

fn set_attributes(fd: libc::c_int, path: &CStr, set: u64, flags: libc::c_uint) -> bool {
    let attributes = MountAttributes { set, ..MountAttributes::default() };
    // SAFETY: the path is a null-terminated string, and the attributes are valid for their size.
    unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            fd,
            path.as_ptr(),
            flags,
            ptr::from_ref(&attributes),
            mem::size_of::<MountAttributes>(),
        ) == 0
    }
}

fn write_file(path: &CStr, text: &CStr) -> bool {
    let bytes = text.to_bytes();
    // SAFETY: the path is a null-terminated string, and the bytes are valid for their length.
    unsafe {
        let fd = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if fd == -1 {
            return false;
        }
        let written = libc::write(fd, bytes.as_ptr().cast(), bytes.len());
        libc::close(fd);
        written == bytes.len() as isize
    }
}

fn loopback_up() {
    // SAFETY: a zeroed request is valid, its name is null-terminated, and the call reads it only.
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        let mut request: libc::ifreq = mem::zeroed();
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        libc::ioctl(socket, libc::SIOCSIFFLAGS, ptr::from_ref(&request));
        libc::close(socket);
    }
}
