// Times one case and prints a METRIC line.
#define _POSIX_C_SOURCE 199309L
#include "harness.h"
#include <time.h>

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
    float *x, *y;
    size_t n = inputs(argc, argv, &x, &y);
    size_t calls = 4000000 / n + 1;
    float last = dot(x, y, n);
    double start = now_us();
    for (size_t call = 0; call < calls; call++) {
        x[call % n] = -x[call % n]; // a new input for every call
        last = dot(x, y, n);
    }
    double time_us = (now_us() - start) / (double)calls;
    printf("METRIC time_us=%.6f case=%s check=%s\n", time_us, argv[1],
           is_right(last, x, y, n) ? "PASS" : "FAIL");
    return 0;
}
