//! The system calls behind a child process: messages, descriptors, freezing, CPU time.

use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};
use std::{io, mem, ptr};

use super::Pid;

/// Maximum number of descriptors in one message.
pub(in crate::process) const FDS_MAX: usize = 8;

/// Space for the header and the descriptors of a control message.
#[repr(C, align(8))]
struct ChildControlBuffer([u8; 64]);

/// The two ends of a connection that preserves message boundaries; the second is inherited only if
/// it is passed explicitly.
pub(in crate::process) fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds: [RawFd; 2] = [-1; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: the array has space for two descriptors.
    if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, fds.as_mut_ptr()) } == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just created these descriptors, and nothing else owns them.
    Ok(unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) })
}

/// An anonymous file in memory of a fixed size, filled with zeros.
pub(in crate::process) fn bounded_file(bytes: u64) -> io::Result<File> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name is a null-terminated string.
    let fd = unsafe { libc::memfd_create(c"karve-worker".as_ptr(), flags) };
    if fd == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just created this descriptor, and nothing else owns it.
    let file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    file.set_len(bytes)?;
    let seals = libc::F_SEAL_GROW | libc::F_SEAL_SHRINK;
    // SAFETY: the descriptor is open, and the command takes a number.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(file)
}

/// The contents of such a file before its first zero.
pub(in crate::process) fn written_text(file: &File, bytes: u64) -> String {
    let mut text = vec![0; bytes as usize];
    let read = file.read_at(&mut text, 0).unwrap_or(0);
    text.truncate(read);
    let end = text.iter().position(|b| *b == 0).unwrap_or(text.len());
    String::from_utf8_lossy(&text[..end]).into_owned()
}

/// Sends one message with descriptors; never blocks for long, because messages are small.
pub(in crate::process) fn send_message(
    socket: BorrowedFd<'_>,
    message: &[u8],
    fds: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut raw: [RawFd; FDS_MAX] = [-1; FDS_MAX];
    for (place, fd) in raw.iter_mut().zip(fds) {
        *place = fd.as_raw_fd();
    }
    match raw.get(..fds.len()) {
        Some(raw) => send_numbers(socket.as_raw_fd(), message, raw),
        None => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// The same for descriptors that are open by these numbers. Async-signal-safe.
pub(super) fn send_numbers(socket: RawFd, message: &[u8], raw: &[RawFd]) -> io::Result<()> {
    let mut part =
        libc::iovec { iov_base: message.as_ptr().cast_mut().cast(), iov_len: message.len() };
    let mut control = ChildControlBuffer([0; 64]);
    let size = (raw.len().min(FDS_MAX) * mem::size_of::<RawFd>()) as libc::c_uint;
    // SAFETY: a zeroed header is valid; every pointer in it is to a place that outlives the call,
    // and the control message is written inside the space reserved for it.
    let sent = unsafe {
        let mut header: libc::msghdr = mem::zeroed();
        header.msg_iov = &mut part;
        header.msg_iovlen = 1;
        if !raw.is_empty() {
            header.msg_control = control.0.as_mut_ptr().cast();
            header.msg_controllen = libc::CMSG_SPACE(size) as _;
            let first = libc::CMSG_FIRSTHDR(&header);
            (*first).cmsg_level = libc::SOL_SOCKET;
            (*first).cmsg_type = libc::SCM_RIGHTS;
            (*first).cmsg_len = libc::CMSG_LEN(size) as _;
            ptr::copy_nonoverlapping(raw.as_ptr().cast(), libc::CMSG_DATA(first), size as usize);
        }
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
        libc::sendmsg(socket, &header, flags)
    };
    match sent {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Waits for one message, and takes the descriptors sent with it.
pub(super) fn receive_with_fds(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut control = ChildControlBuffer([0; 64]);
    let mut fds = Vec::new();
    // SAFETY: a zeroed header is valid; every pointer in it is to a place that outlives the calls.
    // The descriptors of the control message were created for us, and nothing else owns them.
    let n = unsafe {
        let mut header: libc::msghdr = mem::zeroed();
        header.msg_iov = &mut part;
        header.msg_iovlen = 1;
        header.msg_control = control.0.as_mut_ptr().cast();
        header.msg_controllen = control.0.len() as _;
        let n = loop {
            let n = libc::recvmsg(socket.as_raw_fd(), &mut header, libc::MSG_CMSG_CLOEXEC);
            if n != -1 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                break n;
            }
        };
        if n == -1 {
            return Err(io::Error::last_os_error());
        }
        let first = libc::CMSG_FIRSTHDR(&header);
        if !first.is_null() && (*first).cmsg_type == libc::SCM_RIGHTS {
            let bytes = ((*first).cmsg_len as usize).saturating_sub(libc::CMSG_LEN(0) as usize);
            for index in 0..(bytes / mem::size_of::<RawFd>()).min(FDS_MAX) {
                let at = libc::CMSG_DATA(first).cast::<RawFd>().add(index);
                fds.push(OwnedFd::from_raw_fd(ptr::read_unaligned(at)));
            }
        }
        n
    };
    Ok((n as usize, fds))
}

/// Receives one message; descriptors sent with it are refused by the kernel.
pub(in crate::process) fn receive_message(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
) -> io::Result<usize> {
    // SAFETY: the buffer has the given length.
    let n = unsafe {
        libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_DONTWAIT)
    };
    match n {
        -1 => Err(io::Error::last_os_error()),
        n => Ok(n as usize),
    }
}

/// Number of cheap checks of a stopping child; it has usually stopped by then.
const QUICK_LOOKS: u32 = 200;

/// The pause between two later checks.
const LOOK_PAUSE: Duration = Duration::from_micros(50);

/// Stops every thread of a child, and waits until they have stopped. False if it has ended, and
/// none if it does not stop in time.
pub(in crate::process) fn stop_and_wait(pid: Pid, limit: Duration) -> Option<bool> {
    // SAFETY: the call takes two numbers; the child is not reaped, so the id is its own.
    if unsafe { libc::kill(pid, libc::SIGSTOP) } == -1 {
        return Some(false);
    }
    let since = Instant::now();
    for look in 0_u32.. {
        let flags = libc::WSTOPPED | libc::WEXITED | libc::WNOWAIT | libc::WNOHANG;
        // SAFETY: a zeroed place is valid, and outlives the calls.
        let mut info: libc::siginfo_t = unsafe { mem::zeroed() };
        // SAFETY: as above.
        let found = unsafe { libc::waitid(libc::P_PID, pid as libc::id_t, &mut info, flags) };
        if found == -1 {
            match io::Error::last_os_error().kind() {
                io::ErrorKind::Interrupted => continue,
                _ => return Some(false),
            }
        }
        if info.si_code == libc::CLD_STOPPED {
            // Consumed, so that the next stop is a new one.
            let flags = libc::WSTOPPED | libc::WNOHANG;
            // SAFETY: as above.
            unsafe { libc::waitid(libc::P_PID, pid as libc::id_t, &mut info, flags) };
            return Some(true);
        }
        if info.si_code != 0 {
            return Some(false);
        }
        if look < QUICK_LOOKS {
            std::thread::yield_now();
        } else if since.elapsed() > limit {
            return None;
        } else {
            std::thread::sleep(LOOK_PAUSE);
        }
    }
    None
}

/// Resumes a stopped child.
pub(in crate::process) fn continue_process(pid: Pid) {
    // SAFETY: the call takes two numbers.
    unsafe { libc::kill(pid, libc::SIGCONT) };
}

/// User and system time of all threads of a process.
pub(in crate::process) fn cpu_time_of(pid: Pid) -> io::Result<Duration> {
    // SAFETY: both places outlive the calls.
    unsafe {
        let mut clock: libc::clockid_t = 0;
        let error = libc::clock_getcpuclockid(pid, &mut clock);
        if error != 0 {
            return Err(io::Error::from_raw_os_error(error));
        }
        let mut time: libc::timespec = mem::zeroed();
        if libc::clock_gettime(clock, &mut time) == -1 {
            return Err(io::Error::last_os_error());
        }
        Ok(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
    }
}
