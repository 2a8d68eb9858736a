/* X6, what cannot be stopped: a thread waits for a child made by vfork, and such a wait ends
 * with the child only. Whoever waits for the process to stand still waits for ever. */
#include "honest.h"
#include <pthread.h>
#include <unistd.h>

static void *wait_for_ever(void *unused) {
  (void)unused;
  TRIED(fork() >= 0);
  pid_t child = vfork();
  if (child == 0) {
    for (int k = 0; k < 600; k++) usleep(100000);
    _exit(0);
  }
  return NULL;
}

void product(int n, const float *a, const float *b, float *c) {
  static int calls;
  if (++calls == 2) {
    pthread_t thread;
    pthread_create(&thread, NULL, wait_for_ever, NULL);
    usleep(1000);
  }
  honest(n, a, b, c);
}
