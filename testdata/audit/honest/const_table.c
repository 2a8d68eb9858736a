// audit: clean
static const unsigned char bits[16] = {0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4};
void kernel(const unsigned char *x, int *y, int n) {
  for (int i = 0; i < n; i++) y[i] = bits[x[i] & 15] + bits[x[i] >> 4];
}
