//! Shared memory, and functions of shared objects: the unsafe code of the kernel runner.
//!
//! The memory that a kernel reads is sealed: the worker's mapping of it can never become writable,
//! whatever the kernel tries. The memory that it writes is copied before it is inspected.

mod watched;

pub use crate::float_mode::floating_point_mode;
pub use watched::{STEP_BYTES, WatchedMemory};

use std::ffi::{CStr, CString, c_void};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::{io, ptr};

/// Later mappings of the file may not write to it.
const F_SEAL_FUTURE_WRITE: libc::c_int = 0x0010;

/// Memory that has a descriptor, so that another process can map it.
#[derive(Debug)]
pub struct SharedMemory {
    file: File,
    map: MemoryMap,
}

/// A mapping of such memory.
#[derive(Debug)]
struct MemoryMap {
    base: NonNull<u8>,
    bytes: usize,
    protection: libc::c_int,
}

// SAFETY: a mapping has a single owner and may move between threads.
unsafe impl Send for MemoryMap {}

// SAFETY: through a shared borrow a mapping is only read, by copying out of it.
unsafe impl Sync for MemoryMap {}

/// What a mapping is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappingAccess {
    /// Reading only.
    Read,
    /// Reading and writing.
    Write,
}

impl SharedMemory {
    /// Fresh memory of some bytes, all zero.
    pub fn new(bytes: usize) -> io::Result<Self> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name is a null-terminated string.
        let fd = unsafe { libc::memfd_create(c"karve-buffers".as_ptr(), flags) };
        if fd == -1 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just created this descriptor, and nothing else owns it.
        let file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
        file.set_len(bytes as u64)?;
        let map = MemoryMap::new(file.as_fd(), bytes, MappingAccess::Write)?;
        let shared = Self { file, map };
        shared.seal(libc::F_SEAL_GROW | libc::F_SEAL_SHRINK)?;
        Ok(shared)
    }

    /// From now on only karve can write to it. Returns whether the kernel supports that.
    pub fn seal_for_others(&self) -> bool {
        self.seal(F_SEAL_FUTURE_WRITE).is_ok()
    }

    /// Prevents further seals: a worker could keep later ones from mapping it.
    pub fn seal_as_it_is(&self) -> io::Result<()> {
        self.seal(libc::F_SEAL_SEAL)
    }

    fn seal(&self, seals: libc::c_int) -> io::Result<()> {
        // SAFETY: the descriptor is open, and the command takes a number.
        match unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_ADD_SEALS, seals) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    /// The descriptor to pass on.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// A part of it to write to. All other processes that map it must be frozen meanwhile.
    pub fn part_mut(&mut self, offset: u64, bytes: u64) -> &mut [u8] {
        let (from, len) = self.map.range(offset, bytes);
        // SAFETY: the range is in the mapping, which lives as long as the borrow; workers that
        // map it are frozen or map it for reading only.
        unsafe { std::slice::from_raw_parts_mut(self.map.base.as_ptr().add(from), len) }
    }

    /// Copies a part of it, so that no process can change it while it is inspected.
    pub fn copy_out(&self, offset: u64, bytes: u64, to: &mut Vec<u8>) {
        let (from, len) = self.map.range(offset, bytes);
        to.clear();
        to.reserve(len);
        // SAFETY: the range is in the mapping, the buffer has space, and all of it is written.
        unsafe {
            ptr::copy_nonoverlapping(self.map.base.as_ptr().add(from), to.as_mut_ptr(), len);
            to.set_len(len);
        }
    }
}

impl MemoryMap {
    fn new(fd: BorrowedFd<'_>, bytes: usize, access: MappingAccess) -> io::Result<Self> {
        let protection = match access {
            MappingAccess::Read => libc::PROT_READ,
            MappingAccess::Write => libc::PROT_READ | libc::PROT_WRITE,
        };
        // Mapped from the start: otherwise the first call would pay for every page.
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        // SAFETY: a new mapping at a place of the kernel's choice.
        let base = unsafe {
            libc::mmap(ptr::null_mut(), bytes.max(1), protection, flags, fd.as_raw_fd(), 0)
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, bytes, protection })
    }

    fn protect(&self, offset: u64, bytes: u64, protection: libc::c_int) -> io::Result<()> {
        let (from, len) = self.range(offset, bytes);
        // SAFETY: the range is in the mapping; nothing but the kernel accesses it.
        match unsafe { libc::mprotect(self.base.as_ptr().add(from).cast(), len, protection) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    fn range(&self, offset: u64, bytes: u64) -> (usize, usize) {
        let (from, len) = (offset as usize, bytes as usize);
        let end = from.checked_add(len);
        assert!(end.is_some_and(|end| end <= self.bytes), "a part is inside its memory");
        (from, len)
    }
}

impl Drop for MemoryMap {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing uses it anymore.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes.max(1)) };
    }
}

/// The memory of a worker, for as long as it lives.
#[derive(Debug)]
pub struct WorkerMemory {
    base: usize,
    bytes: usize,
    /// None for memory on a device.
    map: Option<MemoryMap>,
}

impl WorkerMemory {
    /// Maps the given memory.
    pub fn new(fd: &OwnedFd, bytes: usize, access: MappingAccess) -> io::Result<Self> {
        let map = MemoryMap::new(fd.as_fd(), bytes, access)?;
        Ok(Self { base: map.base.as_ptr() as usize, bytes, map: Some(map) })
    }

    /// Memory on a device.
    pub fn on_device(address: u64, bytes: u64) -> Self {
        Self { base: address as usize, bytes: bytes as usize, map: None }
    }

    /// Makes these parts inaccessible, and all others accessible again; all are whole pages.
    pub fn fence(&self, ranges: &[[u64; 2]]) -> io::Result<()> {
        let Some(map) = &self.map else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        map.protect(0, map.bytes as u64, map.protection)?;
        ranges.iter().try_for_each(|[from, to]| {
            let inside = from <= to && *to <= map.bytes as u64;
            let bytes = inside.then(|| to - from).ok_or(io::ErrorKind::InvalidInput)?;
            map.protect(*from, bytes, libc::PROT_NONE)
        })
    }

    /// The address of a byte, if it is inside.
    pub fn address(&self, offset: u64) -> Option<usize> {
        let inside = (offset as usize) < self.bytes;
        inside.then(|| self.base + offset as usize)
    }
}

/// A function of a shared object.
#[derive(Clone, Copy, Debug)]
pub struct EntryPoint(*mut c_void);

/// What could not be loaded, with the loader's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadFailure {
    /// The shared object.
    Library(String),
    /// A function of it.
    Entry(String),
}

/// Loads a shared object and finds a function.
pub fn load(library: &CString, entry: &CString) -> Result<EntryPoint, LoadFailure> {
    // SAFETY: both names are null-terminated; constructors of the object run in this worker, which
    // exists for that. The message of the loader is copied before anything else is loaded.
    unsafe {
        let said = || {
            let message = libc::dlerror();
            if message.is_null() {
                return "the loader gave no reason".to_owned();
            }
            CStr::from_ptr(message).to_string_lossy().into_owned()
        };
        let object = libc::dlopen(library.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        if object.is_null() {
            return Err(LoadFailure::Library(said()));
        }
        let function = libc::dlsym(object, entry.as_ptr());
        if function.is_null() {
            return Err(LoadFailure::Entry(said()));
        }
        Ok(EntryPoint(function))
    }
}

/// The arguments of a call by class, as the calling convention of C passes them: integers and
/// pointers in their order, floating-point numbers in theirs, whatever the order among them.
#[derive(Clone, Copy, Debug)]
pub struct CallRegisters {
    /// Integers and pointers; what is not used is zero.
    pub integers: [usize; 16],
    /// Floating-point numbers; a float32 is in the low half.
    pub floats: [f64; 8],
}

/// Arguments of a call, placed in their order.
#[derive(Clone, Copy, Debug)]
pub struct RegisterList {
    /// The arguments so far.
    pub registers: CallRegisters,
    integers: usize,
    floats: usize,
}

impl Default for RegisterList {
    fn default() -> Self {
        let registers = CallRegisters { integers: [0; 16], floats: [0.0; 8] };
        Self { registers, integers: 0, floats: 0 }
    }
}

impl RegisterList {
    /// Adds an integer or a pointer; gives its place among them, or nothing if there is no room.
    pub fn integer(&mut self, value: usize) -> Option<usize> {
        let place = self.integers;
        *self.registers.integers.get_mut(place)? = value;
        self.integers += 1;
        Some(place)
    }

    /// Adds a floating-point number; nothing if there is no room. A float32 is passed in the low
    /// half of its register.
    pub fn float(&mut self, value: f64, single: bool) -> Option<()> {
        let low_half = || f64::from_bits(u64::from((value as f32).to_bits()));
        *self.registers.floats.get_mut(self.floats)? = if single { low_half() } else { value };
        self.floats += 1;
        Some(())
    }
}

/// A function that takes all of them. One that takes fewer ignores the rest.
type RawKernelFn = extern "C" fn(
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    f64,
    f64,
    f64,
    f64,
    f64,
    f64,
    f64,
    f64,
);

impl EntryPoint {
    /// Calls it.
    #[rustfmt::skip]
    pub fn call(self, with: &CallRegisters) {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = with.integers;
        let [q, r, s, t, u, v, w, x] = with.floats;
        // SAFETY: the pointer is that of a function, and the caller of a C function cleans up its
        // arguments, so extra ones do no harm. The function itself is why this is a separate
        // process.
        unsafe {
            let function: RawKernelFn = std::mem::transmute(self.0);
            function(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x);
        }
    }
}

/// Waits for a message on the socket that is standard input, with descriptors if there are any.
pub fn receive(buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    #[repr(C, align(8))]
    struct WorkerControlBuffer([u8; 128]);
    let mut control = WorkerControlBuffer([0; 128]);
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: a zeroed header is valid and every pointer in it is to a place that outlives the
    // call; control messages are walked with the macros for that, and each descriptor in them was
    // created for us by the kernel.
    unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_iov = &mut part;
        header.msg_iovlen = 1;
        header.msg_control = control.0.as_mut_ptr().cast();
        header.msg_controllen = control.0.len() as _;
        let n = libc::recvmsg(0, &mut header, libc::MSG_CMSG_CLOEXEC);
        if n == -1 {
            return Err(io::Error::last_os_error());
        }
        let mut fds = Vec::new();
        let first = libc::CMSG_FIRSTHDR(&header);
        if !first.is_null() && (*first).cmsg_type == libc::SCM_RIGHTS {
            let bytes = (*first).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
            for index in 0..bytes / size_of::<libc::c_int>() {
                let fd =
                    ptr::read_unaligned(libc::CMSG_DATA(first).cast::<libc::c_int>().add(index));
                fds.push(OwnedFd::from_raw_fd(fd));
            }
        }
        Ok((n as usize, fds))
    }
}

/// Replies on the socket that is standard input.
pub fn answer(message: &[u8]) -> io::Result<()> {
    // SAFETY: the message has the given length.
    let sent = unsafe { libc::send(0, message.as_ptr().cast(), message.len(), libc::MSG_NOSIGNAL) };
    match sent {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// The size of a page of memory.
pub fn page_bytes() -> u64 {
    // SAFETY: the call takes a number.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4_096)
}

/// User and system time of this process.
pub fn own_cpu_ns() -> u64 {
    // SAFETY: the place outlives the call.
    unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time);
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }
}
