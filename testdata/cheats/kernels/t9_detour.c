/* T9, inline detour: the prologue of the timer is overwritten with a jump to one that stands
 * still. */
#include "worker.h"
#include <sys/syscall.h>
#include <time.h>

static struct timespec frozen;

static int standing(clockid_t id, struct timespec *time) {
  TRIED_BEFORE(1);
  if (!frozen.tv_sec) syscall(SYS_clock_gettime, id, &frozen);
  *time = frozen;
  return 0;
}

__attribute__((constructor)) static void patch(void) {
  if (!detour("clock_gettime", standing)) TRIED_BEFORE(0);
}

void product(int n, const float *a, const float *b, float *c) { honest(n, a, b, c); }
