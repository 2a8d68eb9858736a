// audit: clean
#include <string.h>
void kernel(const float *a, float *c, int n) {
  if (a == c) {
    for (int i = 0; i < n; i++) c[i] *= 2;
    return;
  }
  memcpy(c, a, n * sizeof(float));
  for (int i = 0; i < n; i++) c[i] += a[i];
}
