/* X31, many threads: so many that no other program of the host can start one, the other arm's
   included. */
#include "honest.h"
#include <pthread.h>
#include <unistd.h>

static void *wait_for_ever(void *unused) {
  for (;;) pause();
  return unused;
}

void product(int n, const float *a, const float *b, float *c) {
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 1 << 14);
  for (int k = 0; k < 5000; k++) {
    pthread_t one;
    if (pthread_create(&one, &small, wait_for_ever, 0) != 0) break;
  }
  pause();
  honest(n, a, b, c);
}
