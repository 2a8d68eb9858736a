// audit: background
__global__ void add(const float *a, float *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i];
}
void kernel(const float *a, float *c, int n) {
  cudaStream_t s;
  cudaStreamCreateWithFlags(&s, 1);
  add<<<(n + 255) / 256, 256, 0, s>>>(a, c, n);
}
