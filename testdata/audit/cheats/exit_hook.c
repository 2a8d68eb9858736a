// audit: exit-hook
#include <stdlib.h>
static void rewrite(void) {}
void kernel(const float *a, float *c, int n) {
  atexit(rewrite);
  for (int i = 0; i < n; i++) c[i] = a[i];
}
