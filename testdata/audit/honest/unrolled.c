// audit: clean
float kernel(const float *x, const float *y, int n) {
  float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  const float *end = x + n / 4 * 4;
  while (x != end) {
    s0 += x[0] * y[0];
    s1 += x[1] * y[1];
    s2 += x[2] * y[2];
    s3 += x[3] * y[3];
    x += 4;
    y += 4;
  }
  for (int i = 0; i < n % 4; i++) s0 += x[i] * y[i];
  return (s0 + s1) + (s2 + s3);
}
