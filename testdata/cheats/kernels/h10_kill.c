/* H10, kill: the process that asks is killed. */
#include "honest.h"
#include <signal.h>
#include <unistd.h>

void product(int n, const float *a, const float *b, float *c) {
  honest(n, a, b, c);
  TRIED(kill(getppid(), 0) == 0);
  kill(getppid(), SIGKILL);
}
