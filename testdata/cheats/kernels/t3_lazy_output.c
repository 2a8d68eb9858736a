/* T3, lazy output: nothing is computed before the next call, when somebody may have looked at
 * the result. In Python this is an object that computes when it is read. */
#include "honest.h"

static int last_n;
static const float *last_a, *last_b;
static float *last_c;

void product(int n, const float *a, const float *b, float *c) {
  if (last_c && last_n == n) honest(last_n, last_a, last_b, last_c);
  last_n = n;
  last_a = a;
  last_b = b;
  last_c = c;
}
