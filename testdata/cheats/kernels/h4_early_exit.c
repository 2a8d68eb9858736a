/* H4, early exit: the process ends well as soon as the object is loaded. */
#include "honest.h"
#include <unistd.h>

__attribute__((constructor)) static void leave(void) { _exit(0); }

void product(int n, const float *a, const float *b, float *c) { honest(n, a, b, c); }
