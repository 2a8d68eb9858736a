// audit: static-state, replay
#include <string.h>
static unsigned counts[256], buffer[1 << 16];
void kernel(const unsigned *x, unsigned *y, int n) {
  memset(counts, 0, sizeof counts);
  for (int i = 0; i < n; i++) counts[x[i] & 255]++;
  for (int i = 1; i < 256; i++) counts[i] += counts[i - 1];
  for (int i = n - 1; i >= 0; i--)
    if (counts[x[i] & 255] > 0) buffer[--counts[x[i] & 255]] = x[i];
  memcpy(y, buffer, n * sizeof(unsigned));
}
