/* T16, shadowed clock: the object brings its own clock_gettime, which the loader might find
 * first. */
#include "honest.h"
#include <time.h>

int clock_gettime(clockid_t id, struct timespec *time) {
  (void)id;
  time->tv_sec = 1;
  time->tv_nsec = 0;
  return 0;
}

void product(int n, const float *a, const float *b, float *c) { honest(n, a, b, c); }
