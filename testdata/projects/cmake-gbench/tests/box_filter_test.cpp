#include <cmath>
#include <cstdio>

#include "smooth/image.hpp"

static int failures = 0;

static void expect_near(const char* what, float got, float want) {
    if (std::fabs(got - want) > 1e-5f) {
        std::printf("%s: %g, expected %g\n", what, got, want);
        ++failures;
    }
}

int main() {
    smooth::Image flat(16, 8), out(16, 8);
    for (float& pixel : flat.pixels) pixel = 0.5f;
    smooth::box_filter(flat, out);
    for (float pixel : out.pixels) expect_near("flat image", pixel, 0.5f);

    smooth::Image dot(9, 9), spread(9, 9);
    dot.at(4, 4) = 9.0f;
    smooth::box_filter(dot, spread);
    for (int y = 0; y < 9; ++y) {
        for (int x = 0; x < 9; ++x) {
            const bool near = std::abs(x - 4) <= 1 && std::abs(y - 4) <= 1;
            expect_near("single dot", spread.at(x, y), near ? 1.0f : 0.0f);
        }
    }
    return failures == 0 ? 0 : 1;
}
