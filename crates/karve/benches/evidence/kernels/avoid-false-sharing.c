/* workload: two threads that count by atomics to 2000000, CPU time of each
 * flags: -O3 -pthread */
#define REPEATS 2
#define THREADS 2
#include "../bench.h"
#include "../threads.h"
enum { N = 2000000 };
#ifdef AFTER
struct slot { _Atomic long sum; char pad[120]; };
#else
struct slot { _Atomic long sum; };
#endif
static struct slot *slots;
static void prepare(void) { slots = memory(4096); }
static void *count(void *slot) {
    struct slot *mine = slot;
    for (int i = 0; i < N; i++) mine->sum++;
    return 0;
}
static void kernel(void) {
    slots[0].sum = slots[1].sum = 0;
    both(count, &slots[0], &slots[1]);
}
static int check(void) { return slots[0].sum == N && slots[1].sum == N; }
