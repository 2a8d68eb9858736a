// Honest products of square matrices in C++, as in kernels.c.
#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <span>
#include <thread>
#include <vector>

namespace {

using Cells = std::span<const float>;

template <int Tile> void tiles(int n, const float *a, const float *b, float *c) {
  for (int i0 = 0; i0 < n; i0 += Tile)
    for (int j0 = 0; j0 < n; j0 += Tile) {
      std::array<float, Tile * Tile> sum{};
      const int rows = std::min(Tile, n - i0), columns = std::min(Tile, n - j0);
      for (int l = 0; l < n; l++)
        for (int i = 0; i < rows; i++)
          for (int j = 0; j < columns; j++)
            sum[i * Tile + j] += a[(i0 + i) * n + l] * b[l * n + j0 + j];
      for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) c[(i0 + i) * n + j0 + j] = sum[i * Tile + j];
    }
}

constexpr auto make_steps() {
  std::array<int, 8> steps{};
  for (int k = 0; k < 8; k++) steps[k] = 7 - k;
  return steps;
}

constexpr auto steps = make_steps();

struct Row {
  const float *at;
  std::ptrdiff_t step;
  float operator[](int l) const { return at[l * step]; }
};

float dot(int n, Row x, Row y) {
  float sum = 0;
  for (int l = 0; l < n; l++) sum += x[l] * y[l];
  return sum;
}

void part(int n, int from, int to, const float *a, const float *b, float *c) {
  for (int i = from; i < to; i++)
    for (int j = 0; j < n; j++) c[i * n + j] = dot(n, {a + i * n, 1}, {b + j, n});
}

} // namespace

extern "C" {

void cpp_templates(int n, const float *a, const float *b, float *c) {
  if (n >= 8)
    tiles<8>(n, a, b, c);
  else
    tiles<2>(n, a, b, c);
}

void cpp_constexpr_table(int n, const float *a, const float *b, float *c) {
  for (int i0 = 0; i0 < n; i0 += 8)
    for (int step : steps)
      if (i0 + step < n) part(n, i0 + step, i0 + step + 1, a, b, c);
}

void cpp_vectors_and_lambdas(int n, const float *a, const float *b, float *c) {
  std::vector<float> turned(static_cast<std::size_t>(n) * n);
  for (int l = 0; l < n; l++)
    for (int j = 0; j < n; j++) turned[j * n + l] = b[l * n + j];
  auto cell = [&](int i, int j) {
    Cells x(a + i * n, n), y(turned.data() + j * n, n);
    return std::inner_product(x.begin(), x.end(), y.begin(), 0.0f);
  };
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) c[i * n + j] = cell(i, j);
}

void cpp_views(int n, const float *a, const float *b, float *c) { part(n, 0, n, a, b, c); }

void threads_cpp(int n, const float *a, const float *b, float *c) {
  std::thread other([&] { part(n, n / 2, n, a, b, c); });
  part(n, 0, n / 2, a, b, c);
  other.join();
}
}
