/* S16, uninitialized luck: the sum begins with whatever lies in the output, and the last rows
 * are read past the end. */
#include "honest.h"

void product(int n, const float *a, const float *b, float *c) {
  float *rest = malloc((size_t)n * n * sizeof *rest);
  honest_rows(n, 0, n / 2, a, b, c);
  memcpy(c + (size_t)n * (n / 2), rest, (size_t)n * (n - n / 2) * sizeof *c);
  free(rest);
}
