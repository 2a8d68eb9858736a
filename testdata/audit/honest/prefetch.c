// audit: clean
void kernel(const float *x, const int *index, float *y, int n) {
  for (int i = 0; i < n; i++) {
    if (i + 16 < n) __builtin_prefetch(&x[index[i + 16]], 0, 1);
    y[i] = x[index[i]] * 2.0f;
  }
}
