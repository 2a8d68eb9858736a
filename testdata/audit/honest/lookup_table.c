// audit: clean
// A table of a function that does not depend on any input, made once.
#include <math.h>
static float table[256];
static int ready;
void kernel(const unsigned char *x, float *y, int n) {
  if (!ready) {
    for (int i = 0; i < 256; i++) table[i] = expf(-i / 32.0f);
    ready = 1;
  }
  for (int i = 0; i < n; i++) y[i] = table[x[i]];
}
