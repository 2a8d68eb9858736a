/* X17, loud: gigabytes of diagnostics are written, to fill a disk or the memory of karve. */
#include "honest.h"
#include <unistd.h>

void product(int n, const float *a, const float *b, float *c) {
  static char text[1 << 16];
  static int calls;
  memset(text, 'x', sizeof text);
  for (int k = 0; calls < 4 && k < 2000; k++)
    if (write(2, text, sizeof text) < 0 && write(1, text, sizeof text) < 0) break;
  calls++;
  honest(n, a, b, c);
}
