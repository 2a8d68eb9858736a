// audit: raw-syscall
void kernel(const float *a, float *c, int n) {
  long r;
  __asm__ volatile("syscall" : "=a"(r) : "a"(96L), "D"(0L) : "rcx", "r11", "memory");
  for (int i = 0; i < n; i++) c[i] = a[i];
}
