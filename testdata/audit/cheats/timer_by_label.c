// audit: timer
extern int tick(int, void *) __asm__("clock_gettime");
void kernel(const float *a, float *c, int n) {
  long t[2];
  tick(1, t);
  for (int i = 0; i < n; i++) c[i] = a[i];
}
