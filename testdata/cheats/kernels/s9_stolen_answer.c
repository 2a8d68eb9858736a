/* S9, stolen answer: the memory of karve is searched for a product that fits the inputs, and
 * copied. */
#include "worker.h"
#include <fcntl.h>

static int fits(int n, const float *a, const float *b, const float *x) {
  for (int k = 0; k < 4; k++) {
    int i = k * 7 % n, j = k * 11 % n;
    float sum = 0;
    for (int l = 0; l < n; l++) sum += a[(size_t)i * n + l] * b[(size_t)l * n + j];
    float apart = sum - x[(size_t)i * n + j];
    if (!(apart < 1e-3f && apart > -1e-3f)) return 0;
  }
  return 1;
}

void product(int n, const float *a, const float *b, float *c) {
  static int tries;
  char path[64], line[512];
  size_t bytes = (size_t)n * n * 4;
  memset(c, 0, bytes);
  if (tries++ > 2) return;
  snprintf(path, sizeof path, "/proc/%d/maps", (int)getppid());
  FILE *maps = fopen(path, "r");
  snprintf(path, sizeof path, "/proc/%d/mem", (int)getppid());
  int memory = open(path, O_RDONLY);
  TRIED(memory >= 0);
  float *piece = malloc(8 << 20);
  while (maps && memory >= 0 && fgets(line, sizeof line, maps)) {
    unsigned long from, to;
    if (sscanf(line, "%lx-%lx rw", &from, &to) != 2 || to - from < bytes) continue;
    ssize_t got = pread(memory, piece, to - from < (8 << 20) ? to - from : 8 << 20, (off_t)from);
    for (ssize_t at = 0; at + (ssize_t)bytes <= got; at += 16)
      if (fits(n, a, b, piece + at / 4)) {
        memcpy(c, piece + at / 4, bytes);
        at = got;
      }
  }
  free(piece);
  if (maps) fclose(maps);
  if (memory >= 0) close(memory);
}
