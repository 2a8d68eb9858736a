/* D1, arm sabotage by the kernel: pages are made dirty and their writing is started at the end
 * of a call, so that a thread of the operating system is busy in the turn of the other arm. */
#include "honest.h"
#include <fcntl.h>
#include <unistd.h>

void product(int n, const float *a, const float *b, float *c) {
  static int fd = -1;
  static unsigned calls;
  static char page[1 << 16];
  if (fd < 0) fd = open("/var/tmp", O_TMPFILE | O_RDWR, 0600);
  TRIED(fd >= 0);
  honest(n, a, b, c);
  if (fd >= 0 && calls++ % 8 == 7) {
    page[0]++;
    for (int k = 0; k < 16; k++) (void)!pwrite(fd, page, sizeof page, (off_t)k * sizeof page);
    sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
  }
}
