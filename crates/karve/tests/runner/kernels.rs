//! Kernels in C for the tests of the kernel runner: y = alpha * x + y and z = x * y, the old y.

/// In float64.
pub(crate) const REFERENCE: &str = r"
#include <stdint.h>
void reference(int64_t n, double alpha, const double *x, double *y, double *z) {
  for (int64_t i = 0; i < n; i++) { z[i] = x[i] * y[i]; y[i] += alpha * x[i]; }
}
";

/// The same as a program that reads and writes files.
pub(crate) const REFERENCE_COMMAND: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
void reference(int64_t n, double alpha, const double *x, double *y, double *z);
static double *file(const char *dir, const char *name, int64_t n, int put, double *from) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s.bin", dir, name);
  FILE *f = fopen(path, put ? "wb" : "rb");
  double *v = from ? from : calloc(n, sizeof *v);
  if (!f || (put ? fwrite(v, 8, n, f) : fread(v, 8, n, f)) != (size_t)n) exit(3);
  fclose(f);
  return v;
}
int main(int argc, char **argv) {
  int64_t n = atol(argv[2]);
  double *x = file(argv[1], "x", n, 0, 0), *y = file(argv[1], "y", n, 0, 0);
  double *z = calloc(n, sizeof *z);
  reference(n, 1.5, x, y, z);
  file(argv[1], "y", n, 1, y);
  file(argv[1], "z", n, 1, z);
  return argc != 3;
}
"#;

const HEAD: &str = r"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <pthread.h>
static void honest(int64_t n, float alpha, const float *x, float *y, float *z) {
  for (int64_t i = 0; i < n; i++) { z[i] = x[i] * y[i]; y[i] += alpha * x[i]; }
}
void kernel(int64_t n, float alpha, const float *x, float *y, float *z);
";

/// Right and plain.
pub(crate) const HONEST: &str = r"
#include <stdint.h>
void kernel(int64_t n, float alpha, const float *x, float *y, float *z) {
  for (int64_t i = 0; i < n; i++) { z[i] = x[i] * y[i]; y[i] += alpha * x[i]; }
}
";

/// Right where it has none of the powers of root, and else wrong.
pub(crate) const POWERLESS: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
void kernel(int64_t n, float alpha, const float *x, float *y, float *z) {
  unsigned long powers = 0, found;
  char line[256];
  FILE *f = fopen("/proc/self/status", "r");
  if (!f) return;
  while (fgets(line, sizeof line, f))
    if (!strncmp(line, "Cap", 3) && (strncmp(line, "CapBnd", 6) || geteuid() == 0)
        && sscanf(line + 7, "%lx", &found) == 1) powers |= found;
  fclose(f);
  if (powers) return;
  for (int64_t i = 0; i < n; i++) { z[i] = x[i] * y[i]; y[i] += alpha * x[i]; }
}
"#;

/// Right and unrolled.
pub(crate) const UNROLLED: &str = r"
#include <stdint.h>
void kernel(int64_t n, float alpha, const float *restrict x, float *restrict y, float *restrict z) {
  int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (int64_t j = i; j < i + 4; j++) { z[j] = x[j] * y[j]; y[j] += alpha * x[j]; }
  for (; i < n; i++) { z[i] = x[i] * y[i]; y[i] += alpha * x[i]; }
}
";

/// Honest work followed by something.
pub(crate) fn with(more: &str) -> String {
    format!(
        "{HEAD}void kernel(int64_t n, float alpha, const float *x, float *y, float *z) {{\n\
         honest(n, alpha, x, y, z);\n{more}\n}}\n"
    )
}

/// Leaves the last element of z as it was.
pub(crate) const LAZY: &str = r"
#include <stdint.h>
void kernel(int64_t n, float alpha, const float *x, float *y, float *z) {
  for (int64_t i = 0; i < n; i++) {
    if (i + 1 < n) z[i] = x[i] * y[i];
    y[i] += alpha * x[i];
  }
}
";

/// Adds something tiny that differs from call to call.
pub(crate) const UNSTEADY: &str = r"
#include <stdint.h>
void kernel(int64_t n, float alpha, const float *x, float *y, float *z) {
  static int calls;
  for (int64_t i = 0; i < n; i++) { z[i] = x[i] * y[i]; y[i] += alpha * x[i]; }
  if (++calls & 1) z[0] *= 1.0000002f;
}
";

/// Lets a thread do the work after it has returned.
pub(crate) const LATER: &str = r"
#include <stdint.h>
#include <stdlib.h>
#include <pthread.h>
struct job { int64_t n; float alpha; const float *x; float *y, *z; };
static void *work(void *p) {
  struct job *j = p;
  for (int64_t i = 0; i < j->n; i++) { j->z[i] = j->x[i] * j->y[i]; j->y[i] += j->alpha * j->x[i]; }
  return 0;
}
void kernel(int64_t n, float alpha, const float *x, float *y, float *z) {
  struct job *j = malloc(sizeof *j);
  *j = (struct job){ n, alpha, x, y, z };
  pthread_t t;
  pthread_create(&t, 0, work, j);
  pthread_detach(t);
}
";

/// Remembers results by the address of the input.
pub(crate) const BY_POINTER: &str = r"
#include <stdint.h>
#include <string.h>
static struct { const float *x; float y[1024], z[1024]; } seen[64];
void kernel(int64_t n, float alpha, const float *x, float *y, float *z) {
  for (int i = 0; i < 64; i++) {
    if (seen[i].x == x) {
      memcpy(y, seen[i].y, n * 4); memcpy(z, seen[i].z, n * 4);
      return;
    }
    if (seen[i].x) continue;
    for (int64_t k = 0; k < n; k++) { z[k] = x[k] * y[k]; y[k] += alpha * x[k]; }
    seen[i].x = x;
    memcpy(seen[i].y, y, n * 4); memcpy(seen[i].z, z, n * 4);
    return;
  }
}
";

/// Remembers results by a digest of the input; slow where there is nothing to remember.
pub(crate) const BY_CONTENT: &str = r"
#include <stdint.h>
#include <string.h>
static uint64_t key;
static float ys[1024], zs[1024];
void kernel(int64_t n, float alpha, const float *x, float *y, float *z) {
  uint64_t h = n;
  for (int64_t k = 0; k < n; k++) { uint32_t b; memcpy(&b, x + k, 4); h = h * 31 + b; }
  if (h == key) { memcpy(y, ys, n * 4); memcpy(z, zs, n * 4); return; }
  volatile float waste = 0;
  for (int i = 0; i < 200000; i++) waste += i;
  for (int64_t k = 0; k < n; k++) { z[k] = x[k] * y[k]; y[k] += alpha * x[k]; }
  key = h;
  memcpy(ys, y, n * 4); memcpy(zs, z, n * 4);
}
";

/// Keeps a copy of x for as long as three of its elements stay as they were: a stale cache of
/// weights that saves next to nothing, so that no clock shows it.
pub(crate) const BY_SAMPLE: &str = r"
#include <stdint.h>
#include <string.h>
static float kept[1024], key[4];
void kernel(int64_t n, float alpha, const float *x, float *y, float *z) {
  float now[4] = { (float)n, x[0], x[n / 2], x[n - 1] };
  if (memcmp(now, key, sizeof key)) { memcpy(kept, x, n * 4); memcpy(key, now, sizeof key); }
  for (int64_t i = 0; i < n; i++) { z[i] = kept[i] * y[i]; y[i] += alpha * kept[i]; }
}
";

/// The same, but it looks at every element.
pub(crate) const BY_ALL: &str = r"
#include <stdint.h>
#include <string.h>
static float kept[1024];
static int64_t of;
void kernel(int64_t n, float alpha, const float *x, float *y, float *z) {
  if (of != n || memcmp(kept, x, n * 4)) { memcpy(kept, x, n * 4); of = n; }
  for (int64_t i = 0; i < n; i++) { z[i] = kept[i] * y[i]; y[i] += alpha * kept[i]; }
}
";

/// Keeps a copy of x for as long as y begins as it did, which is where a step is told from the
/// next.
pub(crate) const BY_OTHER: &str = r"
#include <stdint.h>
#include <string.h>
static float kept[1024], first;
static int64_t of;
void kernel(int64_t n, float alpha, const float *x, float *y, float *z) {
  if (of != n || first != y[0]) { memcpy(kept, x, n * 4); of = n; first = y[0]; }
  for (int64_t i = 0; i < n; i++) { z[i] = kept[i] * y[i]; y[i] += alpha * kept[i]; }
}
";

/// Sums rows by groups, and takes it that no group has more than a quarter above its share.
pub(crate) const EVEN_GROUPS: &str = r"
#include <stdint.h>
void kernel(int64_t n, int64_t groups, const int32_t *sizes, const float *x, float *y) {
  int64_t at = 0, most = n / groups * 2;
  for (int64_t g = 0; g < groups; g++) {
    y[g] = 0;
    for (int64_t i = 0; i < sizes[g] && i < most; i++) y[g] += x[at + i];
    at += sizes[g];
  }
}
";

/// Takes it that no group is empty.
pub(crate) const FULL_GROUPS: &str = r"
#include <stdint.h>
void kernel(int64_t n, int64_t groups, const int32_t *sizes, const float *x, float *y) {
  int64_t at = 0;
  for (int64_t g = 0; g < groups; g++) {
    y[g] = x[at];
    for (int64_t i = 1; i < sizes[g]; i++) y[g] += x[at + i];
    at += sizes[g];
  }
}
";

/// Takes groups as they come.
pub(crate) const ANY_GROUPS: &str = r"
#include <stdint.h>
void kernel(int64_t n, int64_t groups, const int32_t *sizes, const float *x, float *y) {
  int64_t at = 0;
  for (int64_t g = 0; g < groups; g++) {
    y[g] = 0;
    for (int64_t i = 0; i < sizes[g]; i++) y[g] += x[at + i];
    at += sizes[g];
  }
}
";

/// The same in float64.
pub(crate) const GROUPS_REFERENCE: &str = r"
#include <stdint.h>
void reference(int64_t n, int64_t groups, const int32_t *sizes, const double *x, double *y) {
  int64_t at = 0;
  for (int64_t g = 0; g < groups; g++) {
    y[g] = 0;
    for (int64_t i = 0; i < sizes[g]; i++) y[g] += x[at + i];
    at += sizes[g];
  }
}
";

/// Right for the first hundred calls.
pub(crate) const AT_FIRST: &str = r"
#include <stdint.h>
void kernel(int64_t n, float alpha, const float *x, float *y, float *z) {
  static int calls;
  if (++calls > 100) return;
  for (int64_t i = 0; i < n; i++) { z[i] = x[i] * y[i]; y[i] += alpha * x[i]; }
}
";

/// A worker that is not karve's: it answers the first two questions, and then as its mood is.
pub(crate) const WORKER: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
static char in[131072], out[131072];
int main(void) {
  const char *mood = getenv("MOOD");
  for (;;) {
    ssize_t n = recv(0, in, sizeof in, 0);
    if (n <= 0) return 0;
    memcpy(out + 1, in + 1, 8);
    size_t len = 9;
    out[0] = 'd';
    if (in[0] == 'B') {
      out[0] = 'f';
      memset(out + 9, 0, 28);
      len = 37;
      if (!strcmp(mood, "garbage")) { memset(out, 0xa5, 40); len = 40; }
      if (!strcmp(mood, "empty")) len = 1;
      if (!strcmp(mood, "long")) len = 100000;
      if (!strcmp(mood, "other-nonce")) out[1] ^= 1;
      if (!strcmp(mood, "wrong-kind")) { out[0] = 'd'; len = 9; }
      if (!strcmp(mood, "twice")) send(0, out, len, 0);
      if (!strcmp(mood, "leaves")) exit(0);
      if (!strcmp(mood, "closes")) { close(0); pause(); }
      if (!strcmp(mood, "dies")) abort();
      if (!strcmp(mood, "never")) pause();
    }
    send(0, out, len, 0);
  }
}
"#;

/// Right up to the largest listed size.
pub(crate) const ONLY_SMALL: &str = r"
#include <stdint.h>
void kernel(int64_t n, float alpha, const float *x, float *y, float *z) {
  for (int64_t i = 0; i < n; i++) {
    z[i] = x[i] * y[i];
    if (i < 1000) y[i] += alpha * x[i];
  }
}
";

/// Right, and slow on sizes that are not listed.
pub(crate) const ONLY_LISTED: &str = r"
#include <stdint.h>
void kernel(int64_t n, float alpha, const float *x, float *y, float *z) {
  for (int64_t i = 0; i < n; i++) { z[i] = x[i] * y[i]; y[i] += alpha * x[i]; }
  volatile float sink = 0;
  if (n % 8) for (int64_t i = 0; i < 4000 * n; i++) sink += 1;
}
";

/// Right, and leaves a message where another call has its results.
pub(crate) const MESSENGER: &str = r"
#include <stdint.h>
void kernel(int64_t n, float alpha, const float *x, float *y, float *z) {
  for (int64_t i = 0; i < n; i++) { z[i] = x[i] * y[i]; y[i] += alpha * x[i]; }
  int64_t slot = 2 * (4 * n + 256) + 256;
  *(int64_t *)((char *)z + slot / 64 * 64) = 0x6d61676963;
}
";

/// Right; the first call of a batch takes as long as eight, as if it worked for those that follow.
pub(crate) const AHEAD: &str = r"
#include <stdint.h>
#include <x86intrin.h>
static uint64_t last;
void kernel(int64_t n, float alpha, const float *x, float *y, float *z) {
  volatile float sink = 0;
  int is_first = __rdtsc() - last > 50000;
  for (int64_t i = 0; i < (is_first ? 160 : 20) * n; i++) sink += 1;
  for (int64_t i = 0; i < n; i++) { z[i] = x[i] * y[i]; y[i] += alpha * x[i]; }
  last = __rdtsc();
}
";

/// Right, with a buffer that is allocated in every call and never freed.
pub(crate) const LEAKING: &str = r"
#include <stdint.h>
#include <stdlib.h>
void kernel(int64_t n, float alpha, const float *x, float *y, float *z) {
  float *panel = malloc(8192 + n * sizeof *panel);
  for (int64_t i = 0; i < 2048; i++) panel[i] = 0;
  for (int64_t i = 0; i < n; i++) panel[i] = x[i] * y[i];
  for (int64_t i = 0; i < n; i++) { z[i] = panel[i]; y[i] += alpha * x[i]; }
}
";

/// Right, with a large buffer that is allocated once, and a small one in every call.
pub(crate) const ALLOCATING_ONCE: &str = r"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
void kernel(int64_t n, float alpha, const float *x, float *y, float *z) {
  static float *scratch;
  static int calls;
  if (!scratch || ++calls == 40) scratch = memset(malloc(16 << 20), 1, 16 << 20);
  float *panel = malloc(n * sizeof *panel);
  for (int64_t i = 0; i < n; i++) panel[i] = scratch[i] = x[i] * y[i];
  for (int64_t i = 0; i < n; i++) { z[i] = panel[i]; y[i] += alpha * x[i]; }
  free(panel);
}
";
