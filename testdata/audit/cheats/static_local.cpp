// audit: result-memo
#include <vector>
static std::vector<float> turned(const float *w, int n) {
  std::vector<float> t(n * n);
  for (int i = 0; i < n * n; i++) t[i] = w[i % n * n + i / n];
  return t;
}
void kernel(const float *w, const float *x, float *y, int n) {
  static const std::vector<float> packed = turned(w, n);
  for (int j = 0; j < n; j++) {
    float s = 0;
    for (int i = 0; i < n; i++) s += packed[i * n + j] * x[i];
    y[j] = s;
  }
}
