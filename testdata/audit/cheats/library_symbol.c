// audit: dynamic-load
#include <dlfcn.h>
typedef void (*gemm)(int, int, int, int, int, int, float, const float *, int);
void kernel(const float *a, float *c, int n) {
  gemm g = (gemm)dlsym(RTLD_DEFAULT, "cblas_sgemm");
  g(101, 111, 111, n, n, n, 1.0f, a, n);
  (void)c;
}
