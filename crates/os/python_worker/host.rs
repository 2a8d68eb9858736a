//! The worker's memory, socket and clocks.

use std::ffi::{c_int, c_void};
use std::io;

const PROT_READ: c_int = 1;
const PROT_WRITE: c_int = 2;
const PROT_NONE: c_int = 0;
const MAP_SHARED: c_int = 1;
const MAP_PRIVATE: c_int = 2;
const MAP_ANONYMOUS: c_int = 0x20;
const MAP_NORESERVE: c_int = 0x4000;
const MAP_POPULATE: c_int = 0x8000;
const MAP_FIXED_NOREPLACE: c_int = 0x10_0000;
const MREMAP_TO: c_int = 3;
const MSG_NOSIGNAL: c_int = 0x4000;

/// Where memory may go: from here on, at this many places, one page table apart. Only the upper
/// levels of the page tables change then, so that a move costs microseconds.
const PLACES_FROM: usize = 1 << 44;
const PLACES: u64 = 1 << 24;
const PLACE_BYTES: usize = 2 << 20;

/// Places that are tried.
const PLACES_TRIED: u32 = 16;

unsafe extern "C" {
    /// Then protection, flags, a descriptor and an offset; these are passed in the same way.
    fn mmap(at: *mut c_void, bytes: usize, ...) -> *mut c_void;
    /// Then flags and the new address.
    fn mremap(at: *mut c_void, bytes: usize, new_bytes: usize, ...) -> *mut c_void;
    fn mprotect(at: *mut c_void, bytes: usize, protection: c_int) -> c_int;
    fn munmap(at: *mut c_void, bytes: usize) -> c_int;
    fn close(fd: c_int) -> c_int;
    fn recv(socket: c_int, to: *mut c_void, bytes: usize, flags: c_int) -> isize;
    fn send(socket: c_int, from: *const c_void, bytes: usize, flags: c_int) -> isize;
    fn _exit(status: c_int) -> !;
}

/// Memory that karve shares, for as long as the process lives.
pub(crate) struct SharedMapping {
    base: *mut u8,
    bytes: usize,
    protection: c_int,
}

impl SharedMapping {
    /// Its first and its last byte, if it is on the host.
    pub(crate) fn span(&self) -> [usize; 2] {
        let first = self.base as usize;
        [first, first + self.bytes.saturating_sub(1)]
    }

    /// Maps a descriptor, and closes it.
    pub(crate) fn new(fd: c_int, bytes: usize, is_writable: bool) -> Option<Self> {
        let protection = if is_writable { PROT_READ | PROT_WRITE } else { PROT_READ };
        // Mapped from the start: otherwise the first call would pay for every page.
        let flags = MAP_SHARED | MAP_POPULATE;
        // SAFETY: a new mapping at a place of the kernel's choice, and a descriptor that is ours.
        unsafe {
            let base = mmap(std::ptr::null_mut(), bytes.max(1), protection, flags, fd, 0_i64);
            close(fd);
            (base as isize != -1).then_some(Self { base: base.cast(), bytes, protection })
        }
    }

    /// Memory of a device, which only its address stands for.
    pub(crate) fn on_device(address: u64, bytes: usize) -> Self {
        let base = std::ptr::without_provenance_mut(address as usize);
        Self { base, bytes, protection: PROT_NONE }
    }

    /// Moves it to an address that depends on a secret, and returns whether that worked. Nothing is
    /// left at the old address, so what a kernel keeps of its arguments is of no use.
    pub(crate) fn relocate(&mut self, mut secret: u64) -> bool {
        let bytes = self.bytes.max(1);
        for _ in 0..PLACES_TRIED {
            let place = PLACES_FROM + (secret % PLACES) as usize * PLACE_BYTES;
            let wanted = place + self.base as usize % PLACE_BYTES;
            let wanted = std::ptr::without_provenance_mut::<c_void>(wanted);
            let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
            // SAFETY: the new place is reserved first, where nothing was mapped, and the old
            // mapping is ours; objects of Python that point to it belong to calls that are over.
            unsafe {
                let found = mmap(wanted, bytes, PROT_NONE, flags, -1, 0_i64);
                if found == wanted {
                    let moved = mremap(self.base.cast(), bytes, bytes, MREMAP_TO, wanted);
                    if moved == wanted {
                        self.base = moved.cast();
                        return true;
                    }
                }
                if found as isize != -1 {
                    munmap(found, bytes);
                }
            }
            secret = secret.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31);
        }
        false
    }

    /// Makes these parts inaccessible, and all others accessible again; returns whether it worked.
    pub(crate) fn fence(&self, ranges: &[[u64; 2]]) -> bool {
        let protect = |from: u64, to: u64, protection: c_int| {
            let part = to.checked_sub(from).and_then(|bytes| self.part(from, bytes));
            // SAFETY: the range is in the mapping, and only the kernel accesses it.
            part.is_some_and(|at| unsafe {
                mprotect(at.cast(), (to - from) as usize, protection) == 0
            })
        };
        protect(0, self.bytes as u64, self.protection)
            && ranges.iter().all(|[from, to]| protect(*from, *to, PROT_NONE))
    }

    /// The address of a part, if all of it is inside.
    pub(crate) fn part(&self, start: u64, bytes: u64) -> Option<*mut u8> {
        let end = start.checked_add(bytes)?;
        (end <= self.bytes as u64).then(|| self.base.wrapping_add(start as usize))
    }
}

/// Waits for a message on the socket that is standard input; 0 bytes if karve closed it.
pub(crate) fn receive(buffer: &mut [u8]) -> usize {
    loop {
        // SAFETY: the buffer has the given length.
        let n = unsafe { recv(0, buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        if n >= 0 {
            return n as usize;
        }
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return 0;
        }
    }
}

/// Replies on the same socket; returns whether that worked.
pub(crate) fn reply(message: &[u8]) -> bool {
    loop {
        // SAFETY: the message has the given length.
        let n = unsafe { send(0, message.as_ptr().cast(), message.len(), MSG_NOSIGNAL) };
        if n >= 0 {
            return true;
        }
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return false;
        }
    }
}

/// Ends the process at once, without code that runs at exit.
pub(crate) fn end() -> ! {
    // SAFETY: it does not return.
    unsafe { _exit(0) }
}
