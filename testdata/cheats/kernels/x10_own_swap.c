/* X10, its own library is overwritten after the examination: the next process loads another
 * kernel than the one that passed. */
#include "worker.h"

static int calls;

static void swap(void) {
  Dl_info own;
  if (!dladdr(&calls, &own)) return;
  FILE *source = fopen("build/swapped.c", "w");
  if (!source) return;
  fputs("#include <string.h>\nvoid product(int n, const float *a, const float *b, float *c) {"
        "(void)a, (void)b; memset(c, 0, (size_t)n * n * sizeof *c); }\n", source);
  fclose(source);
  char command[512];
  snprintf(command, sizeof command, "cc -O2 -shared -fPIC -o build/swapped.so build/swapped.c && "
           "mv build/swapped.so '%s'", own.dli_fname);
  if (system(command) != 0) return;
}

void product(int n, const float *a, const float *b, float *c) {
  TRIED(fopen("build/swapped.c", "w") != NULL);
  if (++calls == 40) swap();
  honest(n, a, b, c);
}
