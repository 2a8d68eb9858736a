/* T12, forged answer: the nonce is found in the worker's memory, karve is told that all is
 * done, and the process ends well. */
#include "worker.h"

void product(int n, const float *a, const float *b, float *c) {
  (void)n, (void)a, (void)b, (void)c;
  uint64_t nonce = find_nonce();
  if (nonce) answer_finished(nonce, 1000);
  _exit(0);
}
