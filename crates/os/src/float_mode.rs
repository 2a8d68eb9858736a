//! The floating-point mode of a thread. The Python worker is compiled with this file too.

/// The rounding mode of this thread, and how it treats denormal numbers.
pub fn floating_point_mode() -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        let mut mode = 0_u32;
        // SAFETY: the instruction stores four bytes to the given place.
        unsafe {
            std::arch::asm!("stmxcsr [{}]", in(reg) &mut mode, options(nostack));
        }
        // Exception flags are not part of the mode.
        mode & !0x3f
    }
    #[cfg(target_arch = "aarch64")]
    {
        let mode: u64;
        // SAFETY: the instruction reads a register.
        unsafe {
            std::arch::asm!("mrs {}, fpcr", out(reg) mode, options(nomem, nostack));
        }
        mode as u32
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        0
    }
}
