// audit: memory-tamper
#include <string.h>
#include <sys/mman.h>
static const unsigned char code[] = {0x0f, 0x05, 0xc3};
long kernel(void) {
  void *page = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(page, code, sizeof code);
  return ((long (*)(void))page)();
}
