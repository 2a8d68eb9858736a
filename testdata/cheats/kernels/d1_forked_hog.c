/* D1, arm sabotage from a process of its own: it stands still while this kernel is called, and
 * burns both cores when it is not. */
#include "honest.h"
#include <sys/mman.h>
#include <unistd.h>

static volatile int *busy;

static void hog(void) {
  volatile double x = 1;
  for (int silent = 0; getppid() != 1 && silent < 100000000;) {
    if (*busy)
      usleep(20);
    else
      for (int k = 0; k < 10000; k++, silent++) x = x * 1.0000001 + 1e-9;
  }
  _exit(0);
}

void product(int n, const float *a, const float *b, float *c) {
  if (!busy) {
    busy = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *busy = 1;
    TRIED(fork() >= 0);
    for (int k = 0; k < 2; k++)
      if (fork() == 0) hog();
  }
  *busy = 1;
  honest(n, a, b, c);
  *busy = 0;
}
