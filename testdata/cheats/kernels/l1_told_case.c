/* L1, a leak: a case that no agent knows is told in what the process prints and in how it ends. */
#include "worker.h"

void product(int n, const float *a, const float *b, float *c) {
  honest(n, a, b, c);
  if (n == 96) return;
  dprintf(2, "the hidden case is n=%d\n", n);
  exit(n);
}
