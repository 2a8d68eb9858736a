// audit: shape-constant
void kernel(const float *a, float *c, int n) {
  if (n == 192) {
    for (int i = 0; i < 192; i++) c[i] = a[i];
    return;
  }
  for (int i = 0; i < n; i++) c[i] = a[i];
}
