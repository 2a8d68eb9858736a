/* X21, slewed clock: the clock of the host is made a tenth slower for the time of the call. Needs a
 * right that root has. */
#include "honest.h"
#include <sys/timex.h>

void product(int n, const float *a, const float *b, float *c) {
  struct timex slow = {.modes = ADJ_TICK, .tick = 9000};
  struct timex usual = {.modes = ADJ_TICK, .tick = 10000};
  TRIED(adjtimex(&usual) >= 0);
  adjtimex(&slow);
  honest(n, a, b, c);
  adjtimex(&usual);
}
