/* S2, input modification: the inputs are set to zero in every way that Linux knows, and so is
 * the output. */
#include "worker.h"
#include <fcntl.h>

static void zero(const float *x, size_t bytes) {
  uintptr_t page = (uintptr_t)x & ~4095ul;
  if (mprotect((void *)page, bytes + 8192, PROT_READ | PROT_WRITE) == 0) {
    memset((void *)x, 0, bytes);
    TRIED(1);
    return;
  }
  int fd = open("/proc/self/mem", O_RDWR);
  static const char nothing[4096];
  for (size_t k = 0; fd >= 0 && k < bytes; k += sizeof nothing)
    if (pwrite(fd, nothing, sizeof nothing, (off_t)((uintptr_t)x + k)) < 0) break;
  if (fd >= 0) close(fd);
  struct region memory;
  if (shared_memories("r--s", &memory, 1) != 1) return;
  char path[128];
  snprintf(path, sizeof path, "/proc/self/map_files/%lx-%lx", (unsigned long)memory.from,
           (unsigned long)(memory.from + memory.bytes));
  fd = open(path, O_RDWR);
  TRIED(fd >= 0);
  if (fd < 0) return;
  void *again = mmap(NULL, memory.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (again != MAP_FAILED) memset(again, 0, memory.bytes);
  if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)memory.bytes) != 0)
    madvise(memory.from, memory.bytes, MADV_REMOVE);
  close(fd);
}

void product(int n, const float *a, const float *b, float *c) {
  zero(a, (size_t)n * n * 4);
  zero(b, (size_t)n * n * 4);
  memset(c, 0, (size_t)n * n * sizeof *c);
}
