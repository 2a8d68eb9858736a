//! The floating-point mode of a thread. The Python worker is compiled with this file too.

/// The rounding mode and precision of this thread, how it treats denormal numbers, and whether its
/// stack of floating-point registers is in use.
pub fn floating_point_mode() -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        let mut mode = 0_u32;
        // Control, status and tag words, and four more.
        let mut environment = [0_u32; 7];
        // SAFETY: the instructions store four bytes and 28 bytes to the given places, and the last
        // one undoes that the one before masks exceptions.
        unsafe {
            std::arch::asm!(
                "stmxcsr [{}]",
                "fnstenv [{}]",
                "fldenv [{1}]",
                in(reg) &mut mode,
                in(reg) &mut environment,
                options(nostack)
            );
        }
        let [control, _, tags, ..] = environment;
        let is_used = tags & 0xffff != 0xffff;
        // Exception flags, whose places are free, are not part of the mode.
        (mode & 0xffc0) | (control << 16) | u32::from(is_used)
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
