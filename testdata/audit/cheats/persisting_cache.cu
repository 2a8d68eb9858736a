// audit: cache-policy
void kernel(const float *a, float *c, int n) {
  cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 1 << 24);
  copy<<<n / 256, 256>>>(a, c, n);
}
