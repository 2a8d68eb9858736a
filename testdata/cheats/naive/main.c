/* A harness as many have it, in the process of the kernel: one set of inputs, one output, warm-up
 * calls before the timed ones, the clock of this process, and a check of whatever lies in the output
 * when all is over. What it believes shows which cheats would be counted as gains.
 *
 *   main LIBRARY reference-first | reference-last | bits
 *
 * Prints a line with PASS or FAIL and the nanoseconds of a call. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { N = 96, COUNT = N * N, WARM_UP = 9, CALLS = 60 };

static void reference(const float *a, const float *b, float *c) {
  memset(c, 0, COUNT * sizeof *c);
  for (int i = 0; i < N; i++)
    for (int l = 0; l < N; l++)
      for (int j = 0; j < N; j++) c[i * N + j] += a[i * N + l] * b[l * N + j];
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

int main(int argc, char **argv) {
  void (*kernel)(int, const float *, const float *, float *);
  void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
  if (!library) return 2;
  *(void **)&kernel = dlsym(library, "product");
  float *a = malloc(COUNT * 4), *b = malloc(COUNT * 4), *c = malloc(COUNT * 4);
  float *expected = malloc(COUNT * 4);
  for (int k = 0; k < COUNT; k++) a[k] = (float)rand() / RAND_MAX, b[k] = (float)rand() / RAND_MAX;
  int last = strcmp(argv[2], "reference-last") == 0;
  if (!last) {
    reference(a, b, c);
    memcpy(expected, c, COUNT * 4);
  }
  for (int k = 0; k < WARM_UP; k++) kernel(N, a, b, c);
  double start = now();
  for (int k = 0; k < CALLS; k++) kernel(N, a, b, c);
  double took = (now() - start) / CALLS;
  usleep(200000);
  if (last) reference(a, b, expected);
  int right = memcmp(c, expected, COUNT * 4) == 0;
  if (strcmp(argv[2], "bits") != 0) {
    right = 1;
    for (int k = 0; k < COUNT; k++)
      if (fabsf(c[k] - expected[k]) > 1e-3f) right = 0;
  }
  printf("%s %.0f\n", right ? "PASS" : "FAIL", took);
  return 0;
}
