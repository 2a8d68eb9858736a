// audit: static-state
// Packed weights, kept while the whole content is the same.
#include <stdlib.h>
#include <string.h>
static float *copy, *packed;
static int held;
void kernel(const float *w, const float *x, float *y, int n) {
  if (held != n || memcmp(copy, w, n * n * sizeof(float))) {
    free(copy);
    free(packed);
    copy = malloc(n * n * sizeof(float));
    packed = malloc(n * n * sizeof(float));
    memcpy(copy, w, n * n * sizeof(float));
    for (int i = 0; i < n * n; i++) packed[i] = w[i % n * n + i / n];
    held = n;
  }
  for (int j = 0; j < n; j++) {
    float s = 0;
    for (int i = 0; i < n; i++) s += packed[j * n + i] * x[i];
    y[j] = s;
  }
}
