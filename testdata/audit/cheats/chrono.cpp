// audit: timer
#include <chrono>
using namespace std::chrono;
void kernel(const float *a, float *c, int n) {
  auto t = steady_clock::now();
  for (int i = 0; i < n; i++) c[i] = a[i] + (t == steady_clock::time_point());
}
