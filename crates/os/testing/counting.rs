//! A global allocator that counts what each thread holds, for the fuzzing tests.
//!
//! It lies here because all unsafe code lies in this crate; no program of karve contains it. Memory
//! that C libraries allocate is not counted.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// A thread that would hold more than this gets no memory, so a runaway ends before the machine.
const HELD_BYTES_MAX: usize = 1 << 30;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

/// Counts, and leaves the rest to the system's allocator.
#[derive(Debug)]
pub struct CountingAllocator;

/// The peak since the last call, in bytes above what the thread held then.
pub fn take_peak(before: usize) -> usize {
    PEAK.with(|peak| peak.replace(held())).saturating_sub(before)
}

/// What the thread holds, in bytes.
pub fn held() -> usize {
    HELD.with(Cell::get)
}

/// Whether the thread may hold this much more; it is counted then.
fn takes(bytes: usize) -> bool {
    let counted = HELD.try_with(|held| {
        let now = held.get().saturating_add(bytes);
        if now > HELD_BYTES_MAX {
            return false;
        }
        held.set(now);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(now)));
        true
    });
    // A thread that ends has no counters any more.
    counted.unwrap_or(true)
}

fn gives(bytes: usize) {
    let _ = HELD.try_with(|held| held.set(held.get().saturating_sub(bytes)));
}

// SAFETY: every call goes to the system's allocator unchanged, or gives a null pointer, which
// stands for a failed allocation.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !takes(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promises about the layout are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !takes(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        gives(layout.size());
        // SAFETY: the pointer came from the system's allocator, with this layout.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !takes(size.saturating_sub(layout.size())) {
            return std::ptr::null_mut();
        }
        gives(layout.size().saturating_sub(size));
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, size) }
    }
}
