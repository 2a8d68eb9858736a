/* Honest products of square matrices in the styles that people write them, one entry each. An entry
 * whose name begins with threads may use two of them. None may be flagged. */
#define _GNU_SOURCE
#include <alloca.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

static void rows(int n, int from, int to, const float *restrict a, const float *restrict b,
                 float *restrict c) {
  memset(c + (size_t)from * n, 0, (size_t)(to - from) * n * sizeof *c);
  for (int i = from; i < to; i++)
    for (int l = 0; l < n; l++)
      for (int j = 0; j < n; j++) c[(size_t)i * n + j] += a[(size_t)i * n + l] * b[(size_t)l * n + j];
}

void restrict_pointers(int n, const float *restrict a, const float *restrict b, float *restrict c) {
  rows(n, 0, n, a, b, c);
}

void tiled(int n, const float *a, const float *b, float *c) {
  enum { TILE = 16 };
  memset(c, 0, (size_t)n * n * sizeof *c);
  for (int l0 = 0; l0 < n; l0 += TILE)
    for (int i = 0; i < n; i++)
      for (int l = l0; l < n && l < l0 + TILE; l++)
        for (int j = 0; j < n; j++) c[i * n + j] += a[i * n + l] * b[l * n + j];
}

void accumulators(int n, const float *a, const float *b, float *c) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      float s0 = 0, s1 = 0;
      int l = 0;
      for (; l + 2 <= n; l += 2) {
        s0 += a[i * n + l] * b[l * n + j];
        s1 += a[i * n + l + 1] * b[(l + 1) * n + j];
      }
      for (; l < n; l++) s0 += a[i * n + l] * b[l * n + j];
      c[i * n + j] = s0 + s1;
    }
}

/* SIMD intrinsics, with stores that bypass the caches where they are aligned. */
static void row_streamed(int n, const float *row, float *to) {
  int j = 0;
#ifdef __x86_64__
  for (; j < n && ((uintptr_t)(to + j) & 15); j++) to[j] = row[j];
  for (; j + 4 <= n; j += 4) _mm_stream_ps(to + j, _mm_loadu_ps(row + j));
  _mm_sfence();
#endif
  for (; j < n; j++) to[j] = row[j];
}

void non_temporal(int n, const float *a, const float *b, float *c) {
  float row[n];
  for (int i = 0; i < n; i++) {
    memset(row, 0, sizeof row);
    for (int l = 0; l < n; l++)
      for (int j = 0; j < n; j++) row[j] += a[i * n + l] * b[l * n + j];
    row_streamed(n, row, c + (size_t)i * n);
  }
}

/* A variant for this processor, chosen once. */
typedef void (*variant)(int, int, int, const float *, const float *, float *);
#ifdef __x86_64__
__attribute__((target("avx2"))) static void rows_wide(int n, int from, int to, const float *a,
                                                      const float *b, float *c) {
  for (int i = from; i < to; i++) {
    memset(c + (size_t)i * n, 0, n * sizeof *c);
    for (int l = 0; l < n; l++) {
      __m256 x = _mm256_set1_ps(a[(size_t)i * n + l]);
      const float *row = b + (size_t)l * n;
      float *out = c + (size_t)i * n;
      int j = 0;
      for (; j + 8 <= n; j += 8)
        _mm256_storeu_ps(out + j, _mm256_add_ps(_mm256_loadu_ps(out + j),
                                                _mm256_mul_ps(x, _mm256_loadu_ps(row + j))));
      for (; j < n; j++) out[j] += a[(size_t)i * n + l] * row[j];
    }
  }
}
#else
#define rows_wide rows
#endif

static int is_wide(void) {
#ifdef __x86_64__
  return __builtin_cpu_supports("avx2");
#else
  return 0;
#endif
}

static variant chosen;

void dispatched(int n, const float *a, const float *b, float *c) {
  if (!chosen) chosen = is_wide() ? rows_wide : rows;
  chosen(n, 0, n, a, b, c);
}

/* Where rows start, in a table that is made when the size changes. */
static size_t *starts;
static int starts_for;

void table_of_starts(int n, const float *a, const float *b, float *c) {
  if (starts_for != n) {
    starts = realloc(starts, (size_t)n * sizeof *starts);
    for (int i = 0; i < n; i++) starts[i] = (size_t)i * n;
    starts_for = n;
  }
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      float sum = 0;
      for (int l = 0; l < n; l++) sum += a[starts[i] + l] * b[starts[l] + j];
      c[starts[i] + j] = sum;
    }
}

/* A table of orders that is computed at the first use, and one that is constant. */
static unsigned char reversed[256];
static int reversed_is_made;
static const unsigned char order[4] = {2, 0, 3, 1};

void lookup_tables(int n, const float *a, const float *b, float *c) {
  if (!reversed_is_made) {
    for (int i = 0; i < 256; i++) reversed[i] = (unsigned char)(255 - i);
    reversed_is_made = 1;
  }
  for (int i0 = 0; i0 < n; i0 += 4)
    for (int k = 0; k < 4; k++) {
      int i = i0 + order[255 - reversed[k]];
      if (i < n) rows(n, i, i + 1, a, b, c);
    }
}

/* An arena that is kept, grown, and used from its start in every call. */
static char *arena;
static size_t arena_room, arena_used;

static void *take(size_t bytes) {
  void *piece = arena + arena_used;
  arena_used += (bytes + 63) / 64 * 64;
  return piece;
}

void from_an_arena(int n, const float *a, const float *b, float *c) {
  size_t need = 2 * ((size_t)n * n * sizeof *a + 64);
  if (arena_room < need) {
    free(arena);
    arena = malloc(need);
    arena_room = need;
  }
  arena_used = 0;
  float *turned = take((size_t)n * n * sizeof *turned), *row = take(n * sizeof *row);
  for (int l = 0; l < n; l++)
    for (int j = 0; j < n; j++) turned[j * n + l] = b[l * n + j];
  for (int i = 0; i < n; i++) {
    memcpy(row, a + (size_t)i * n, n * sizeof *row);
    for (int j = 0; j < n; j++) {
      float sum = 0;
      for (int l = 0; l < n; l++) sum += row[l] * turned[j * n + l];
      c[i * n + j] = sum;
    }
  }
}

/* Weights that are packed in every call, into scratch memory in huge pages. */
static float *packed;
static size_t packed_room;

void packed_in_huge_pages(int n, const float *a, const float *b, float *c) {
  size_t bytes = ((size_t)n * n * sizeof *b + (2 << 20) - 1) / (2 << 20) * (2 << 20);
  if (packed_room < bytes) {
    free(packed);
    packed = aligned_alloc(2 << 20, bytes);
    madvise(packed, bytes, MADV_HUGEPAGE);
    packed_room = bytes;
  }
  memcpy(packed, b, (size_t)n * n * sizeof *b);
  rows(n, 0, n, a, packed, c);
}

void prefetched(int n, const float *a, const float *b, float *c) {
  memset(c, 0, (size_t)n * n * sizeof *c);
  for (int i = 0; i < n; i++)
    for (int l = 0; l < n; l++) {
      __builtin_prefetch(b + (size_t)(l + 1) * n, 0, 3);
      for (int j = 0; j < n; j++) c[i * n + j] += a[i * n + l] * b[l * n + j];
    }
}

void inline_assembly(int n, const float *a, const float *b, float *c) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      float sum = 0;
      for (int l = 0; l < n; l++) {
        float term = a[i * n + l] * b[l * n + j];
#ifdef __x86_64__
        __asm__("addss %1, %0" : "+x"(sum) : "x"(term));
#else
        sum += term;
#endif
      }
      c[i * n + j] = sum;
    }
}

void on_the_stack(int n, const float *a, const float *b, float *c) {
  float *row = alloca(n * sizeof *row);
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < n; j++) row[j] = 0;
    for (int l = 0; l < n; l++)
      for (int j = 0; j < n; j++) row[j] += a[i * n + l] * b[l * n + j];
    memcpy(c + (size_t)i * n, row, n * sizeof *row);
  }
}

static void halves(int n, int from, int to, const float *a, const float *b, float *c) {
  if (to - from <= 8) {
    rows(n, from, to, a, b, c);
    return;
  }
  halves(n, from, (from + to) / 2, a, b, c);
  halves(n, (from + to) / 2, to, a, b, c);
}

void recursive(int n, const float *a, const float *b, float *c) { halves(n, 0, n, a, b, c); }

static _Thread_local float column[4096];

void thread_local_scratch(int n, const float *a, const float *b, float *c) {
  for (int j = 0; j < n; j++) {
    for (int l = 0; l < n && l < 4096; l++) column[l] = b[l * n + j];
    for (int i = 0; i < n; i++) {
      float sum = 0;
      for (int l = 0; l < n; l++) sum += a[i * n + l] * column[l];
      c[i * n + j] = sum;
    }
  }
}

void unions_and_jumps(int n, const float *a, const float *b, float *c) {
  union {
    float value;
    uint32_t bits;
  } x;
  int i = 0;
next:
  if (i == n) return;
  for (int j = 0; j < n; j++) c[i * n + j] = 0;
  for (int l = 0; l < n; l++) {
    x.value = a[i * n + l];
    if ((x.bits & 0x7fffffff) == 0) x.value = 0;
    for (int j = 0; j < n; j++) c[i * n + j] += x.value * b[l * n + j];
  }
  i++;
  goto next;
}

/* Generated: four columns at once. */
#define EACH(of) of(0) of(1) of(2) of(3)
#define DECLARE(k) float sum##k = 0;
#define ADD(k) sum##k += x * b[l * n + j + k];
#define STORE(k) c[i * n + j + k] = sum##k;

void generated(int n, const float *a, const float *b, float *c) {
  for (int i = 0; i < n; i++) {
    int j = 0;
    for (; j + 4 <= n; j += 4) {
      EACH(DECLARE);
      for (int l = 0; l < n; l++) {
        float x = a[i * n + l];
        EACH(ADD);
      }
      EACH(STORE);
    }
    for (; j < n; j++) {
      float sum = 0;
      for (int l = 0; l < n; l++) sum += a[i * n + l] * b[l * n + j];
      c[i * n + j] = sum;
    }
  }
}

struct part {
  int n, from, to;
  const float *a, *b;
  float *c;
};

static void *do_part(void *given) {
  struct part *part = given;
  rows(part->n, part->from, part->to, part->a, part->b, part->c);
  return NULL;
}

void threads_joined(int n, const float *a, const float *b, float *c) {
  struct part half = {n, n / 2, n, a, b, c};
  pthread_t thread;
  int made = pthread_create(&thread, NULL, do_part, &half) == 0;
  rows(n, 0, n / 2, a, b, c);
  if (made) pthread_join(thread, NULL);
  if (!made) do_part(&half);
}

/* A thread that stays, and waits between calls. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;
static struct part job;
static int due, started;

static void *serve(void *unused) {
  pthread_mutex_lock(&lock);
  for (;;) {
    while (!due) pthread_cond_wait(&change, &lock);
    pthread_mutex_unlock(&lock);
    do_part(&job);
    pthread_mutex_lock(&lock);
    due = 0;
    pthread_cond_broadcast(&change);
  }
  return unused;
}

void threads_in_a_pool(int n, const float *a, const float *b, float *c) {
  pthread_t thread;
  if (!started) {
    pthread_create(&thread, NULL, serve, NULL);
    started = 1;
  }
  pthread_mutex_lock(&lock);
  job = (struct part){n, n / 2, n, a, b, c};
  due = 1;
  pthread_cond_broadcast(&change);
  pthread_mutex_unlock(&lock);
  rows(n, 0, n / 2, a, b, c);
  pthread_mutex_lock(&lock);
  while (due) pthread_cond_wait(&change, &lock);
  pthread_mutex_unlock(&lock);
}
