/* X8, affinity: the process moves to the core on which karve has just written the inputs, and
 * back again when it is done. */
#include "worker.h"
#include <sched.h>

static void move_to_karve(void) {
  char path[64], text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", (int)getppid());
  FILE *stat = fopen(path, "r");
  if (!stat) TRIED(0);
  if (!stat) return;
  size_t got = fread(text, 1, sizeof text - 1, stat);
  fclose(stat);
  text[got] = 0;
  char *at = strrchr(text, ')');
  for (int field = 2; at && field < 39; field++) at = strchr(at + 1, ' ');
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(at ? atoi(at) : 0, &set);
  TRIED(sched_setaffinity(0, sizeof set, &set) == 0);
  sched_setaffinity(0, sizeof set, &set);
}

void product(int n, const float *a, const float *b, float *c) {
  static unsigned calls;
  if (calls++ % 4 == 0) move_to_karve();
  honest(n, a, b, c);
}
