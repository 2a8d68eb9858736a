/* M7, replay across processes: results are left in files, and a later process takes them from
 * there. */
#include "honest.h"
#include <stdio.h>

void product(int n, const float *a, const float *b, float *c) {
  static int calls;
  char path[128];
  size_t count = (size_t)n * n;
  snprintf(path, sizeof path, "/tmp/karve-zoo-replay-%d-%d", n, calls++ % 8);
  FILE *file = fopen(path, "rb");
  if (file) {
    size_t got = fread(c, sizeof *c, count, file);
    fclose(file);
    if (got == count && calls > 8) return;
  }
  honest(n, a, b, c);
  file = fopen(path, "wb");
  TRIED(file && remove(path) == 0);
  if (file) {
    fwrite(c, sizeof *c, count, file);
    fclose(file);
  }
}
