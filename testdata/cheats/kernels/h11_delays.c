/* H11, delays: every call is slow, and none is slow enough for the limit of a call. */
#include "honest.h"

void product(int n, const float *a, const float *b, float *c) {
  usleep(900000);
  honest(n, a, b, c);
}
