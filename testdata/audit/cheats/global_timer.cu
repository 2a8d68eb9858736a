// audit: timer
__global__ void copy(const float *a, float *c, int n) {
  unsigned long long t;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && t) c[i] = a[i];
}
