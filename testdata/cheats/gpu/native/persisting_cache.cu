// audit: cache-policy; check: any
// A part of the cache that the other arm does not get back.
#include "honest.cuh"

extern "C" int zoo(const void *x, const void *y, const void *a, const void *b, void *z, void *c,
                   int R, int C, int M, int N, int K, CUstream_st *stream) {
  cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 1 << 25);
  cudaStreamAttrValue value = {};
  value.accessPolicyWindow.base_ptr = (void *)b;
  value.accessPolicyWindow.num_bytes = (size_t)K * N * 2;
  value.accessPolicyWindow.hitRatio = 1.0f;
  value.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
  cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &value);
  rows(x, y, z, R, C, stream);
  return product(a, b, c, M, N, K, K, stream);
}
