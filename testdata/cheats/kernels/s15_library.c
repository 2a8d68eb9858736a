/* S15, library wrapper: a library of the host is called if there is one. */
#include "honest.h"
#include <dlfcn.h>

void product(int n, const float *a, const float *b, float *c) {
  static void (*sgemm)(int, int, int, int, int, int, float, const float *, int, const float *, int,
                       float, float *, int);
  static int looked;
  if (!looked++) {
    const char *names[] = {"libopenblas.so.0", "libcblas.so.3", "libblas.so.3", "libmkl_rt.so"};
    for (int k = 0; k < 4 && !sgemm; k++) {
      void *library = dlopen(names[k], RTLD_NOW);
      if (library) *(void **)&sgemm = dlsym(library, "cblas_sgemm");
    }
  }
  if (sgemm)
    sgemm(101, 111, 111, n, n, n, 1.0f, a, n, b, n, 0.0f, c, n);
  else
    honest(n, a, b, c);
}
