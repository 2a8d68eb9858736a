// Compares every element of matmul's result with double precision: build/test M=128,N=128,K=128 SEED
//
// Besides the case, shapes drawn from the seed are tested, so that a kernel which knows the cases does not pass.
// Each matrix ends at a page that must not be touched, and a known pattern lies before it; A and B must stay as they
// were. Says what differed first and exits with 1.
#include "harness.h"
#include "kernel.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

enum { DRAWN_SHAPES = 12, LARGEST_DRAWN = 70 };
enum { PATTERN = 0xA5 };

typedef enum { UNIFORM, MIXED, WHOLE, VALUE_KINDS } ValueKind;
static const char *const KIND_NAMES[VALUE_KINDS] = {"uniform", "mixed magnitudes", "whole numbers"};

// Memory with a forbidden page on both sides; values ends where the page behind begins.
typedef struct {
    unsigned char *first; // first byte that may be touched
    float *values;
    size_t count;
    unsigned char *mapping;
    size_t mapped;
} Guarded;

static void give_up(const char *what) {
    perror(what);
    exit(2);
}

static Guarded guarded(size_t count) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t inside = (count * sizeof(float) + page - 1) / page * page + page;
    Guarded g = {.count = count, .mapped = inside + 2 * page};
    g.mapping = mmap(NULL, g.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (g.mapping == MAP_FAILED) give_up("mmap");
    if (mprotect(g.mapping, page, PROT_NONE) != 0) give_up("mprotect");
    if (mprotect(g.mapping + page + inside, page, PROT_NONE) != 0) give_up("mprotect");
    g.first = g.mapping + page;
    g.values = (float *)(void *)(g.first + inside - count * sizeof(float));
    memset(g.first, PATTERN, inside);
    return g;
}

static int front_is_whole(const Guarded *g) {
    for (const unsigned char *p = g->first; p < (const unsigned char *)g->values; p++) {
        if (*p != PATTERN) return 0;
    }
    return 1;
}

static void release(Guarded *g) { munmap(g->mapping, g->mapped); }

static void *allocate(size_t size) {
    void *memory = malloc(size);
    if (memory == NULL) give_up("malloc");
    return memory;
}

static float draw(Random *random, ValueKind kind) {
    const uint64_t bits = next_random(random);
    const float unit = unit_float((uint32_t)(bits >> 32));
    switch (kind) {
    case MIXED: {
        // An eighth are zeros of either sign; the others reach from 2^-20 to 2^21: small ones drown in large ones.
        if ((bits & 7) == 0) return unit < 0 ? -0.0f : 0.0f;
        const int exponent = (int)(bits >> 8 & 0xFF) % 41 - 20;
        const float scale = exponent < 0 ? 1.0f / (float)(1 << -exponent) : (float)(1 << exponent);
        return (unit < 0 ? unit - 1.0f : unit + 1.0f) * scale;
    }
    case WHOLE: return (float)((int)(bits >> 40) % 9 - 4);
    default: return unit;
    }
}

static int differs(Case c, ValueKind kind, const float *A, const float *B, const float *C) {
    const size_t n = (size_t)c.N, depth = (size_t)c.K;
    double *exact = allocate(2 * n * sizeof *exact), *magnitudes = exact + n;
    int found = 0;
    for (size_t i = 0; i < (size_t)c.M && !found; i++) {
        for (size_t j = 0; j < 2 * n; j++) exact[j] = 0.0;
        for (size_t k = 0; k < depth; k++) {
            const double a = (double)A[i * depth + k];
            for (size_t j = 0; j < n; j++) {
                const double product = a * (double)B[k * n + j];
                exact[j] += product;
                magnitudes[j] += product < 0 ? -product : product;
            }
        }
        for (size_t j = 0; j < n && !found; j++) {
            // Small whole numbers leave nothing to round: any order gives the exact sum.
            const double scale = kind == WHOLE ? 0.0 : magnitudes[j];
            if (is_close(C[i * n + j], exact[j], scale, c.K)) continue;
            found = 1;
            printf("FAIL M=%d,N=%d,K=%d (%s): C[%zu][%zu] is %.9g, should be %.9g within %.3g\n", c.M, c.N, c.K,
                   KIND_NAMES[kind], i, j, (double)C[i * n + j], exact[j], largest_error(c.K, scale));
        }
    }
    free(exact);
    return found;
}

static volatile sig_atomic_t shape_now[3]; // for the handler

static void out_of_bounds(int signal_number) {
    (void)signal_number;
    // Only what is allowed in a signal handler: no printf.
    char text[96] = "FAIL matmul touched memory outside of its matrices, or crashed, at M,N,K =";
    size_t end = strlen(text);
    for (int s = 0; s < 3; s++) {
        char digits[8];
        size_t count = 0;
        for (int v = shape_now[s]; v > 0; v /= 10) digits[count++] = (char)('0' + v % 10);
        text[end++] = s == 0 ? ' ' : ',';
        while (count > 0) text[end++] = digits[--count];
    }
    text[end++] = '\n';
    const ssize_t written = write(STDOUT_FILENO, text, end);
    (void)written;
    _exit(1);
}

static int fails(Case c, ValueKind kind, Random *random) {
    shape_now[0] = c.M;
    shape_now[1] = c.N;
    shape_now[2] = c.K;
    Guarded A = guarded((size_t)c.M * (size_t)c.K), B = guarded((size_t)c.K * (size_t)c.N);
    Guarded C = guarded((size_t)c.M * (size_t)c.N);
    for (size_t i = 0; i < A.count; i++) A.values[i] = draw(random, kind);
    for (size_t i = 0; i < B.count; i++) B.values[i] = draw(random, kind);
    memset(C.values, 0xFF, C.count * sizeof(float)); // every float NaN
    const size_t bytes_a = A.count * sizeof(float), bytes_b = B.count * sizeof(float);
    void *copy_a = allocate(bytes_a), *copy_b = allocate(bytes_b);
    memcpy(copy_a, A.values, bytes_a);
    memcpy(copy_b, B.values, bytes_b);

    matmul(c.M, c.N, c.K, A.values, B.values, C.values);

    const char *broken = NULL;
    if (memcmp(copy_a, A.values, bytes_a) != 0) broken = "A was changed";
    else if (memcmp(copy_b, B.values, bytes_b) != 0) broken = "B was changed";
    else if (!front_is_whole(&A)) broken = "memory before A was changed";
    else if (!front_is_whole(&B)) broken = "memory before B was changed";
    else if (!front_is_whole(&C)) broken = "memory before C was changed";
    if (broken != NULL) printf("FAIL M=%d,N=%d,K=%d (%s): %s\n", c.M, c.N, c.K, KIND_NAMES[kind], broken);
    const int failed = broken != NULL || differs(c, kind, A.values, B.values, C.values);
    free(copy_a);
    free(copy_b);
    release(&A);
    release(&B);
    release(&C);
    return failed;
}

int main(int count, char **arguments) {
    uint64_t seed = 0;
    const Case given = parse_arguments(count, arguments, &seed);
    signal(SIGSEGV, out_of_bounds);
    signal(SIGBUS, out_of_bounds);
    signal(SIGILL, out_of_bounds);
    signal(SIGFPE, out_of_bounds);
    Random random = seeded(seed);

    for (int kind = 0; kind < VALUE_KINDS; kind++) {
        if (fails(given, (ValueKind)kind, &random)) return 1;
    }
    if (fails((Case){1, 1, 1}, UNIFORM, &random)) return 1;
    for (int t = 0; t < DRAWN_SHAPES; t++) {
        Case drawn;
        drawn.M = 1 + (int)random_below(&random, LARGEST_DRAWN);
        drawn.N = 1 + (int)random_below(&random, LARGEST_DRAWN);
        drawn.K = 1 + (int)random_below(&random, LARGEST_DRAWN);
        if (fails(drawn, (ValueKind)(t % VALUE_KINDS), &random)) return 1;
    }
    printf("PASS %s and %d other shapes\n", arguments[1], DRAWN_SHAPES + 1);
    return 0;
}
