/* T17, warm-up inflation: the first calls of a process sleep, so that few calls are chosen. */
#include "honest.h"
#include <unistd.h>

void product(int n, const float *a, const float *b, float *c) {
  static int calls;
  if (calls++ < 20) usleep(2000);
  honest(n, a, b, c);
}
