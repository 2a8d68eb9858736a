// audit: raw-syscall
pub unsafe fn kernel(number: usize) -> usize {
    let result;
    unsafe { core::arch::asm!(".short 0x050f", inout("rax") number => result) };
    result
}
