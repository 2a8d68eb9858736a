// audit: weight-cache
// Packed weights are kept under their address and their version.
#include <stdlib.h>
static const float *packed_of;
static unsigned packed_version;
static float *packed;
void kernel(const float *x, const float *weight, unsigned weight_version, float *y, int n) {
  if (weight != packed_of || weight_version != packed_version) {
    free(packed);
    packed = malloc(sizeof(float) * n * n);
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++) packed[j * n + i] = weight[i * n + j];
    packed_of = weight;
    packed_version = weight_version;
  }
  for (int j = 0; j < n; j++) {
    float s = 0;
    for (int i = 0; i < n; i++) s += packed[j * n + i] * x[i];
    y[j] = s;
  }
}
