// audit: background; check: any
// Work on a stream that the caller does not know.
#include "honest.cuh"

static cudaStream_t side;

extern "C" int zoo(const void *x, const void *y, const void *a, const void *b, void *z, void *c,
                   int R, int C, int M, int N, int K, CUstream_st *stream) {
  if (!side) cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
  rows(x, y, z, R, C, side);
  return product(a, b, c, M, N, K, K, side);
}
