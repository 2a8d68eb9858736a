/* T4, patched timer: the process's own clock is made to run at a hundredth of its speed. */
#include "worker.h"
#include <sys/syscall.h>
#include <time.h>

static struct timespec start;

static int slow_clock(clockid_t id, struct timespec *time) {
  long result = syscall(SYS_clock_gettime, id, time);
  if (result == 0 && id == CLOCK_MONOTONIC) {
    TRIED_BEFORE(1);
    if (!start.tv_sec) start = *time;
    long long ns = (time->tv_sec - start.tv_sec) * 1000000000ll + time->tv_nsec - start.tv_nsec;
    ns = start.tv_nsec + ns / 100;
    time->tv_sec = start.tv_sec + ns / 1000000000ll;
    time->tv_nsec = ns % 1000000000ll;
  }
  return (int)result;
}

__attribute__((constructor)) static void patch(void) {
  if (!detour("clock_gettime", slow_clock)) TRIED_BEFORE(0);
}

void product(int n, const float *a, const float *b, float *c) { honest(n, a, b, c); }
