// What the cores of this host can do at most: multiply-adds without memory, and bytes moved at
// every level of the caches. karve compiles this for the host and runs it; see roofline.rs.
//
// Prints a line for each run: "flops THREADS RATE", or "KIND BYTES THREADS RATE" where KIND is
// read, copy or triad and BYTES is what all threads go over again and again. karve takes the best.
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if defined(__AVX512F__)
enum { LANES = 16, CHAINS = 24 };
#elif defined(__AVX__)
enum { LANES = 8, CHAINS = 12 };
#elif defined(__aarch64__)
enum { LANES = 4, CHAINS = 24 };
#else
enum { LANES = 4, CHAINS = 12 };
#endif
// So many independent sums hide the latency of a multiply-add and still fit the registers.

#if defined(__clang__)
#define STRAIGHT _Pragma("clang loop unroll(full)")
#else
#define STRAIGHT _Pragma("GCC unroll 32")
#endif

typedef float vec __attribute__((vector_size(LANES * sizeof(float)), may_alias));
enum { THREADS_MAX = 1024, UNROLL = 8, STEPS = 4000 };
// A slow or busy host gets fewer runs: after so many times the time that all should take.
enum { RUNS_MIN = 5, BUDGET = 4 };

static volatile float hidden_factor = 0.75f, hidden_term = 0.25f;
static double run_s; // how long a run should take

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

typedef enum { FLOPS, READ, COPY, TRIAD } Kind;

typedef struct {
    Kind kind;
    size_t bytes; // of one thread
    long turns;
    vec *memory;
    float sink;
    double start, end;
} Share;

// All lanes: of what nobody reads a compiler could leave out the work.
static float total(vec all) {
    float sum = 0;
    for (int lane = 0; lane < LANES; lane++) sum += all[lane];
    return sum;
}

static __attribute__((noinline)) void compute(Share *share) {
    const vec factor = hidden_factor - (vec){0}, term = hidden_term - (vec){0};
    vec sum[CHAINS];
    STRAIGHT
    for (int i = 0; i < CHAINS; i++) sum[i] = term * (float)i;
    for (long turn = 0; turn < share->turns; turn++) {
        for (int step = 0; step < STEPS; step++) {
            STRAIGHT
            for (int i = 0; i < CHAINS; i++) sum[i] = sum[i] * factor + term;
        }
    }
    vec all = {0};
    STRAIGHT
    for (int i = 0; i < CHAINS; i++) all += sum[i];
    share->sink = total(all);
}

static __attribute__((noinline)) void reading(Share *share) {
    const size_t n = share->bytes / sizeof(vec) / UNROLL * UNROLL;
    vec sum[UNROLL] = {{0}};
    for (long turn = 0; turn < share->turns; turn++) {
        const vec *from = share->memory;
        __asm__ volatile("" : "+r"(from) : : "memory");
        for (size_t i = 0; i < n; i += UNROLL) {
            STRAIGHT
            for (int u = 0; u < UNROLL; u++) sum[u] += from[i + (size_t)u];
        }
    }
    for (int u = 1; u < UNROLL; u++) sum[0] += sum[u];
    share->sink = total(sum[0]);
}

static __attribute__((noinline)) void copying(Share *share) {
    const size_t n = share->bytes / 2 / sizeof(vec) / UNROLL * UNROLL;
    for (long turn = 0; turn < share->turns; turn++) {
        const vec *from = share->memory;
        vec *to = share->memory + n;
        __asm__ volatile("" : "+r"(from), "+r"(to) : : "memory");
        for (size_t i = 0; i < n; i += UNROLL) {
            vec held[UNROLL];
            STRAIGHT
            for (int u = 0; u < UNROLL; u++) held[u] = from[i + (size_t)u];
            __asm__ volatile("" : : : "memory"); // not a call of memcpy
            STRAIGHT
            for (int u = 0; u < UNROLL; u++) to[i + (size_t)u] = held[u];
        }
    }
    share->sink = share->memory[0][0];
}

static __attribute__((noinline)) void triad(Share *share) {
    const size_t n = share->bytes / 3 / sizeof(vec) / UNROLL * UNROLL;
    const vec factor = hidden_factor - (vec){0};
    for (long turn = 0; turn < share->turns; turn++) {
        const vec *a = share->memory, *b = share->memory + n;
        vec *to = share->memory + 2 * n;
        __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(to) : : "memory");
        for (size_t i = 0; i < n; i += UNROLL) {
            vec held[UNROLL];
            STRAIGHT
            for (int u = 0; u < UNROLL; u++) held[u] = a[i + (size_t)u] + factor * b[i + (size_t)u];
            STRAIGHT
            for (int u = 0; u < UNROLL; u++) to[i + (size_t)u] = held[u];
        }
    }
    share->sink = share->memory[0][0];
}

static void perform(Share *share) {
    switch (share->kind) {
    case FLOPS: compute(share); break;
    case READ: reading(share); break;
    case COPY: copying(share); break;
    case TRIAD: triad(share); break;
    }
}

// Operations or bytes of one turn of one thread.
static double amount(const Share *share) {
    const size_t vecs = share->bytes / sizeof(vec), group = UNROLL * sizeof(vec);
    switch (share->kind) {
    case FLOPS: return 2.0 * STEPS * CHAINS * LANES;
    case READ: return (double)(vecs / UNROLL * group);
    case COPY: return 2.0 * (double)(share->bytes / 2 / group * group);
    case TRIAD: return 3.0 * (double)(share->bytes / 3 / group * group);
    }
    return 0;
}

static atomic_int waiting;

static void *serve(void *argument) {
    Share *share = argument;
    atomic_fetch_sub(&waiting, 1);
    while (atomic_load(&waiting) > 0) {}
    share->start = now_s();
    perform(share);
    share->end = now_s();
    return NULL;
}

// The rate of one run. The time is from the first start to the last end of all threads.
static double once(Share *shares, int threads) {
    if (threads == 1) {
        shares->start = now_s();
        perform(shares);
        shares->end = now_s();
    } else {
        pthread_t ids[THREADS_MAX];
        atomic_store(&waiting, threads);
        for (int t = 0; t < threads; t++) {
            if (pthread_create(&ids[t], NULL, serve, &shares[t]) != 0) exit(1);
        }
        for (int t = 0; t < threads; t++) pthread_join(ids[t], NULL);
    }
    double start = shares->start, end = shares->end, all = 0;
    for (int t = 0; t < threads; t++) {
        if (shares[t].start < start) start = shares[t].start;
        if (shares[t].end > end) end = shares[t].end;
        all += amount(&shares[t]) * (double)shares[t].turns;
    }
    return end > start ? all / (end - start) : 0;
}

static void measure(Kind kind, size_t bytes, int threads, int runs) {
    static const char *const names[] = {"flops", "read", "copy", "triad"};
    static Share shares[THREADS_MAX];
    const size_t own = bytes / (size_t)threads;
    for (int t = 0; t < threads; t++) {
        shares[t] = (Share){.kind = kind, .bytes = own, .turns = 1};
        if (kind == FLOPS) continue;
        // A page more for each thread than the one before, so that they do not share sets.
        const size_t size = (own / 4096 + 2) * 4096;
        shares[t].memory = aligned_alloc(4096, size);
        if (shares[t].memory == NULL) exit(1);
        for (size_t i = 0; i < size / sizeof(vec); i++) shares[t].memory[i] = (vec){0} + 1.0f;
    }
    // The first run warms up; the second says how many turns a run takes.
    (void)once(shares, threads);
    const double rate = once(shares, threads);
    double turns = rate > 0 ? run_s * rate / (amount(shares) * threads) : 1;
    if (turns < 1) turns = 1;
    if (turns > 1e9) turns = 1e9;
    for (int t = 0; t < threads; t++) shares[t].turns = (long)turns;
    const double begin = now_s(), most = run_s * runs * BUDGET;
    for (int run = 0; run < runs && (run < RUNS_MIN || now_s() - begin < most); run++) {
        const double found = once(shares, threads);
        if (kind == FLOPS) printf("flops %d %.6e\n", threads, found);
        else printf("%s %zu %d %.6e\n", names[kind], bytes, threads, found);
    }
    for (int t = 0; t < threads; t++) free(shares[t].memory);
}

// Arguments: threads, runs, milliseconds of a run, then bytes for one thread and bytes for all.
int main(int argc, char **argv) {
    if (argc < 4) return 2;
    const int threads = atoi(argv[1]), runs = atoi(argv[2]);
    run_s = atof(argv[3]) * 1e-3;
    if (threads < 1 || threads > THREADS_MAX || runs < 1 || !(run_s > 0)) return 2;
    measure(FLOPS, 0, 1, runs);
    if (threads > 1) measure(FLOPS, 0, threads, runs);
    for (int i = 4; i + 1 < argc; i += 2) {
        const size_t one = strtoull(argv[i], NULL, 10), all = strtoull(argv[i + 1], NULL, 10);
        for (Kind kind = READ; kind <= TRIAD; kind++) {
            measure(kind, one, 1, runs);
            if (threads > 1) measure(kind, all, threads, runs);
        }
    }
    printf("lanes %d\n", LANES);
    return 0;
}
