/* X15, replaced reference: what karve has put aside as the reference is overwritten with a
 * copy of this kernel, whose output is all zero. */
#include "worker.h"
#include <glob.h>

__attribute__((constructor)) static void replace(void) {
  glob_t found;
  Dl_info own;
  if (!dladdr((void *)replace, &own)) return;
  const char *places[] = {"../../artifacts/*", "../../../artifacts/*", "build/reference.so",
                          "../*/build/reference.so"};
  for (int p = 0; p < 4; p++) {
    if (glob(places[p], 0, NULL, &found) != 0) continue;
    for (size_t k = 0; k < found.gl_pathc; k++) {
      char magic[4] = {0}, piece[4096];
      FILE *to = fopen(found.gl_pathv[k], "r+b");
      TRIED_BEFORE(to != NULL);
      if (to) (void)!fread(magic, 1, 4, to);
      if (to && memcmp(magic, "\177ELF", 4) == 0) {
        FILE *from = fopen(own.dli_fname, "rb");
        size_t got;
        rewind(to);
        while (from && (got = fread(piece, 1, sizeof piece, from)) > 0) fwrite(piece, 1, got, to);
        if (from) fclose(from);
      }
      if (to) fclose(to);
    }
    globfree(&found);
  }
  TRIED_BEFORE(0);
}

void reference(int n, const double *a, const double *b, double *c) {
  (void)a, (void)b;
  memset(c, 0, (size_t)n * n * sizeof *c);
}

void product(int n, const float *a, const float *b, float *c) {
  SHOW_TRIED();
  (void)a, (void)b;
  memset(c, 0, (size_t)n * n * sizeof *c);
}
