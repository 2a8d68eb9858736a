/* X11, pages taken away: the memory of the outputs, which both arms share, is removed and made
 * anew while waking, so that the other arm must fault in every page of it while it is timed. */
#include "worker.h"
#include <signal.h>

static void remove_pages(int signal) {
  (void)signal;
  static char *kept;
  struct region output;
  if (shared_memories("rw-s", &output, 1) != 1) return;
  if (!kept) kept = malloc(output.bytes);
  memcpy(kept, output.from, output.bytes);
  int removed = madvise(output.from, output.bytes, MADV_REMOVE);
  TRIED_BEFORE(removed == 0);
  if (removed != 0) return;
  memcpy(output.from, kept, output.bytes);
}

void product(int n, const float *a, const float *b, float *c) {
  static int calls;
  if (++calls == 1) signal(SIGCONT, remove_pages);
  honest(n, a, b, c);
}
