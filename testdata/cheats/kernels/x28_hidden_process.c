/* X28, hidden from /proc: a process that is not dumpable cannot be counted by others, so that a
 * thread can stay behind. */
#include "honest.h"
#include <pthread.h>
#include <sys/prctl.h>

static void *stay(void *unused) {
  for (;;) pause();
  return unused;
}

void product(int n, const float *a, const float *b, float *c) {
  static int calls;
  if (++calls == 1) {
    pthread_t thread;
    TRIED(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    pthread_create(&thread, NULL, stay, NULL);
  }
  honest(n, a, b, c);
}
