/* H4, early exit: the process ends well in the first call. */
#include "honest.h"

void product(int n, const float *a, const float *b, float *c) {
  (void)n, (void)a, (void)b, (void)c;
  exit(0);
}
