/* workload: two threads that sum 4000000 integers each into one result, CPU time of each
 * flags: -O3 -pthread */
#define REPEATS 2
#define THREADS 2
#include "../bench.h"
#include "../threads.h"
enum { N = 4000000 };
static unsigned *X;
static _Atomic unsigned total;
static void prepare(void) {
    X = memory(sizeof(unsigned) * 2 * N);
    for (int i = 0; i < 2 * N; i++) X[i] = draw();
}
static void *sum(void *at) {
    const unsigned *x = at;
#ifdef AFTER
    unsigned mine = 0;
    for (int i = 0; i < N; i++) mine += x[i];
    total += mine;
#else
    for (int i = 0; i < N; i++) total += x[i];
#endif
    return 0;
}
static void kernel(void) {
    total = 0;
    both(sum, X, X + N);
}
static int check(void) {
    unsigned want = 0;
    for (int i = 0; i < 2 * N; i++) want += X[i];
    return total == want;
}
