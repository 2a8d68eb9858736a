/* H10, hang: the call never ends, as if a limit were a pass. */
#include "honest.h"
#include <unistd.h>

void product(int n, const float *a, const float *b, float *c) {
  honest(n, a, b, c);
  for (;;) pause();
}
