/* X5, a process in the same memory: a clone without CLONE_THREAD is no thread of the worker,
 * is not stopped with it, and computes in its memory. */
#include "ahead.h"
#include <sched.h>

static char stack[1 << 20];
static volatile int alive;

static int twin(void *unused) {
  (void)unused;
  for (long idle = 0; idle < 400000; idle++) {
    ahead_compute();
    usleep(20);
  }
  _exit(0);
}

void product(int n, const float *a, const float *b, float *c) {
  static int calls;
  if (++calls == 2) {
    TRIED(fork() >= 0);
    clone(twin, stack + sizeof stack, CLONE_VM | CLONE_FS | CLONE_FILES, NULL);
  }
  ahead_learn(n, a);
  if (!ahead_take(n, a, b, c)) honest(n, a, b, c);
}
