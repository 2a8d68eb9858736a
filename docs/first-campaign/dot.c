// The kernel: the only file that a candidate may change.
#include "dot.h"

// Independent sums, so that an addition does not wait for the previous one.
// karve: knob LANES in 1,2,4,8,16
#define LANES 1

// Fetch this many elements ahead; 0 leaves it to the hardware. Declared in karve.toml.
#define PREFETCH 0

float dot(const float *x, const float *y, size_t n)
{
    float sum[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
#if PREFETCH
        __builtin_prefetch(x + i + PREFETCH);
        __builtin_prefetch(y + i + PREFETCH);
#endif
        for (size_t lane = 0; lane < LANES; lane++)
            sum[lane] += x[i + lane] * y[i + lane];
    }
    for (; i < n; i++)
        sum[0] += x[i] * y[i];
    float total = 0;
    for (size_t lane = 0; lane < LANES; lane++)
        total += sum[lane];
    return total;
}
