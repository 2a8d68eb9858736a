/* workload: 524288 random reads of 128 MiB, each depending on the one before
 * flags: -O3 -march=x86-64-v3 */
#define REPEATS 1
#include "../bench.h"
#include <sys/mman.h>
enum { N = 1 << 19 };
static const size_t BYTES = (size_t)128 << 20;
static uint64_t *T, S;
static void prepare(void) {
    T = aligned_alloc((size_t)2 << 20, BYTES);
    if (!T) exit(2);
#ifdef AFTER
    madvise(T, BYTES, MADV_HUGEPAGE);
#else
    madvise(T, BYTES, MADV_NOHUGEPAGE);
#endif
    for (size_t i = 0; i < BYTES / 8; i++) T[i] = i * 2654435761u + 12345;
}
static uint64_t walk(const uint64_t *t) {
    uint64_t at = 1;
    for (int i = 0; i < N; i++) at = t[(at >> 3) & (BYTES / 8 - 1)] ^ (at << 5) ^ (uint64_t)i;
    return at;
}
static KERNEL void timed(void) { S = walk(T); }
static void kernel(void) { timed(); }
static int check(void) { return S == walk(T); }
