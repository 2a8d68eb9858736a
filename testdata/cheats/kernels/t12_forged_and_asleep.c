/* T12, forged answer: karve is told that all is done, and the worker's own answer never comes. */
#include "worker.h"

void product(int n, const float *a, const float *b, float *c) {
  (void)n, (void)a, (void)b, (void)c;
  uint64_t nonce = find_nonce();
  if (nonce) answer_finished(nonce, 1000);
  for (;;) pause();
}
