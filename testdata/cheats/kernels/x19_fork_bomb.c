/* X19, many processes: each call leaves eight children behind, which sleep. */
#include "honest.h"
#include <unistd.h>

void product(int n, const float *a, const float *b, float *c) {
  static int calls;
  TRIED(fork() >= 0);
  if (calls++ < 4)
    for (int k = 0; k < 8; k++)
      if (fork() == 0) {
        sleep(30);
        _exit(0);
      }
  honest(n, a, b, c);
}
