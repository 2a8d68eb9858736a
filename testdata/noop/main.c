// Tests and measures the kernel: "main test" or "main bench".
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

double kernel(const double *x, size_t n);

enum { N = 4096, CALLS = 100 };
static double x[N];

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

int main(int argc, char **argv) {
    double want = 0.0;
    for (int i = 0; i < N; i++) {
        x[i] = i % 17;
        want += x[i] * x[i];
    }
    int right = fabs(kernel(x, N) - want) <= 1e-9 * want;
    if (argc > 1 && strcmp(argv[1], "test") == 0) {
        return right ? 0 : 1;
    }
    double best = 1e300;
    for (int i = 0; i < CALLS; i++) {
        double start = now_us();
        volatile double result = kernel(x, N);
        (void)result;
        double spent = now_us() - start;
        best = spent < best ? spent : best;
    }
    printf("METRIC time_us=%.4f case=sum check=%s\n", best, right ? "PASS" : "FAIL");
    return 0;
}
