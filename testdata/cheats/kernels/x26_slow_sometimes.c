/* X26, the usual call is not the kernel: twelve batches out of sixteen are truly faster, and four
 * are six times slower, so that the median is a gain and the mean a loss. Batches are told apart
 * by the time since the last call, since a whole batch is one turn. */
#include "honest.h"
#include <time.h>

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

void product(int n, const float *a, const float *b, float *c) {
  static int64_t last;
  static int batch;
  if (now() - last > 30000) batch++;
  for (int i = 0; batch % 4 == 3 && i < 6; i++) honest(n, a, b, c);
  quick(n, a, b, c);
  last = now();
}
