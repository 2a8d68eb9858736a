/* X16, flood: thousands of messages are sent without a question, in the hope that one of them
 * is taken for an answer. */
#include "worker.h"
#include <sys/socket.h>

void product(int n, const float *a, const float *b, float *c) {
  (void)a, (void)b;
  memset(c, 0, (size_t)n * n * sizeof *c);
  for (uint64_t nonce = 0; nonce < 5000; nonce++) {
    unsigned char message[FINISHED_BYTES] = {'f'};
    memcpy(message + 1, &nonce, 8);
    (void)!send(0, message, sizeof message, MSG_DONTWAIT);
  }
}
