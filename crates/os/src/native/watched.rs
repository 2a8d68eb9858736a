//! Memory that shows how far a kernel reached into it.

use super::{CallRegisters, EntryPoint, page_bytes};
use std::ptr::NonNull;
use std::{io, ptr};

/// What is reserved for one tensor; only pages that are touched take memory.
const BYTES: usize = 1 << 30;

/// Where a tensor may start: kernels expect vectors to be aligned.
pub const STEP_BYTES: usize = 64;

/// Memory of one tensor, all zero. The tensor starts `offset` bytes after the start of a page, so
/// that several calls show where it ends, not only on which page.
#[derive(Debug)]
pub struct WatchedMemory {
    base: NonNull<u8>,
    page: usize,
    /// Where the tensor starts; less than a page.
    pub offset: usize,
}

impl WatchedMemory {
    /// Fresh memory.
    pub fn new() -> io::Result<Self> {
        let (access, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
        );
        // SAFETY: a new mapping at a place of the kernel's choice, whose advice changes only how
        // its pages are made.
        let base = unsafe {
            let base = libc::mmap(ptr::null_mut(), BYTES, access, flags, -1, 0);
            if base == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            libc::madvise(base, BYTES, libc::MADV_NOHUGEPAGE);
            base
        };
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, page: page_bytes() as usize, offset: 0 })
    }

    /// The size of a page.
    pub fn page_bytes(&self) -> usize {
        self.page
    }

    /// The address of the tensor.
    pub fn address(&self) -> usize {
        self.base.as_ptr() as usize + self.offset
    }

    /// All zero again, and not touched.
    pub fn clear(&mut self) {
        // SAFETY: the mapping is ours, and no reference into it exists.
        unsafe { libc::madvise(self.base.as_ptr().cast(), BYTES, libc::MADV_DONTNEED) };
    }

    /// The number of the last page that was touched, from 1; 0 if none was.
    pub fn last_page(&self) -> io::Result<usize> {
        let mut resident = vec![0_u8; BYTES / self.page];
        // SAFETY: there is one byte for each page of the mapping.
        let asked = unsafe {
            libc::mincore(self.base.as_ptr().cast(), BYTES, resident.as_mut_ptr().cast())
        };
        match asked {
            0 => Ok(resident.iter().rposition(|page| page & 1 == 1).map_or(0, |last| last + 1)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The first bytes of the tensor, at most those that are reserved.
    pub fn bytes_mut(&mut self, bytes: usize) -> &mut [u8] {
        let bytes = bytes.min(BYTES - self.offset);
        // SAFETY: the range is in the mapping, which is ours and lives as long as the borrow.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr().add(self.offset), bytes) }
    }
}

impl Drop for WatchedMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing uses it anymore.
        unsafe { libc::munmap(self.base.as_ptr().cast(), BYTES) };
    }
}

impl EntryPoint {
    /// Calls it with the addresses of these tensors in these places.
    pub fn call_watched(self, with: &CallRegisters, tensors: &[(usize, &WatchedMemory)]) {
        let mut with = *with;
        for (place, memory) in tensors {
            if let Some(integer) = with.integers.get_mut(*place) {
                *integer = memory.address();
            }
        }
        self.call(&with);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_and_writing_touch_pages_and_clearing_forgets_them() {
        let mut memory = WatchedMemory::new().unwrap();
        let page = memory.page_bytes();
        assert_eq!(memory.last_page().unwrap(), 0);
        assert_eq!(memory.bytes_mut(10 * page)[5 * page], 0);
        assert_eq!(memory.last_page().unwrap(), 6);
        memory.bytes_mut(10 * page)[8 * page] = 1;
        assert_eq!(memory.last_page().unwrap(), 9);
        memory.clear();
        assert_eq!(memory.last_page().unwrap(), 0);
        memory.offset = page - STEP_BYTES;
        memory.bytes_mut(STEP_BYTES + 1).fill(1);
        assert_eq!(memory.last_page().unwrap(), 2);
    }
}
