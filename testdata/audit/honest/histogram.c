// audit: clean
#include <string.h>
void kernel(const unsigned char *data, unsigned *out, int n) {
  unsigned counts[4][256];
  memset(counts, 0, sizeof counts);
  int i = 0;
  for (; i + 4 <= n; i += 4) {
    counts[0][data[i]]++;
    counts[1][data[i + 1]]++;
    counts[2][data[i + 2]]++;
    counts[3][data[i + 3]]++;
  }
  for (; i < n; i++) counts[0][data[i]]++;
  for (int v = 0; v < 256; v++)
    out[v] = counts[0][v] + counts[1][v] + counts[2][v] + counts[3][v];
}
