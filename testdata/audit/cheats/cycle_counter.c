// audit: timer
void kernel(const float *a, float *c, int n) {
  unsigned low, high;
  __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
  for (int i = 0; i < n; i++) c[i] = a[i] + (low == high);
}
