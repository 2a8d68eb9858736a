// audit: clean
// A buffer that is kept, filled anew in every call.
static float panel[64 * 64];
void kernel(const float *a, const float *b, float *c, int n) {
  for (int kk = 0; kk < n; kk += 64)
    for (int jj = 0; jj < n; jj += 64) {
      for (int k = 0; k < 64; k++)
        for (int j = 0; j < 64; j++)
          panel[k * 64 + j] = kk + k < n && jj + j < n ? b[(kk + k) * n + jj + j] : 0;
      for (int i = 0; i < n; i++)
        for (int j = 0; j < 64 && jj + j < n; j++) {
          float s = kk ? c[i * n + jj + j] : 0;
          for (int k = 0; k < 64 && kk + k < n; k++) s += a[i * n + kk + k] * panel[k * 64 + j];
          c[i * n + jj + j] = s;
        }
    }
}
