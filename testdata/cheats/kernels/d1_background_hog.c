/* D1, arm sabotage: a thread burns CPU time whenever this kernel itself is not called, so that
 * the other arm has less of it. It starts late in a process. */
#include "honest.h"
#include <pthread.h>
#include <unistd.h>

static volatile int busy;

static void *hog(void *unused) {
  (void)unused;
  volatile double x = 1;
  for (;;) {
    if (!busy)
      for (int k = 0; k < 10000; k++) x = x * 1.0000001 + 1e-9;
    else
      usleep(20);
  }
}

void product(int n, const float *a, const float *b, float *c) {
  static int calls;
  busy = 1;
  if (++calls == 8) {
    pthread_t thread;
    pthread_create(&thread, NULL, hog, NULL);
  }
  honest(n, a, b, c);
  busy = 0;
}
