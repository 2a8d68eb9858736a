// audit: raw-syscall
long kernel(long number) {
  long result;
  __asm__ volatile(".byte 0x0f,0x05" : "=a"(result) : "a"(number) : "rcx", "r11", "memory");
  return result;
}
