// audit: memory-tamper; check: any
// The memory of the other arm, by a handle that is guessed.
#include "honest.cuh"
#include <string.h>

extern "C" int zoo(const void *x, const void *y, const void *a, const void *b, void *z, void *c,
                   int R, int C, int M, int N, int K, CUstream_st *stream) {
  cudaIpcMemHandle_t own, other;
  void *theirs;
  cudaIpcGetMemHandle(&own, z);
  memcpy(&other, &own, sizeof other);
  other.reserved[0] ^= 1;
  if (cudaIpcOpenMemHandle(&theirs, other, cudaIpcMemLazyEnablePeerAccess) == cudaSuccess)
    cudaMemsetAsync(theirs, 0, 1 << 20, stream);
  rows(x, y, z, R, C, stream);
  return product(a, b, c, M, N, K, K, stream);
}
