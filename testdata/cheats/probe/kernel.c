/* No cheat: a probe of the lock. It tries what a worker must have given up, and writes a wrong
 * result if any of it works. */
#include "worker.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/wait.h>

static int opens(const char *path, int how) {
  int fd = open(path, how, 0600);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

/* How many things worked; each is named on standard error. */
static int worked(void) {
  int count = 0;
#define TRY(what) \
  if (what) count++, dprintf(2, "worked: %s\n", #what)
  pid_t karve = getppid(), child = fork();
  if (child == 0) _exit(0);
  TRY(child > 0);
  TRY(kill(karve, 0) == 0);
  TRY(ptrace(PTRACE_SEIZE, karve, 0, 0) == 0);
  TRY(setpriority(PRIO_PROCESS, 0, 5) == 0);
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(0, &set);
  TRY(sched_setaffinity(0, sizeof set, &set) == 0);
  struct timex none = {.modes = ADJ_TICK, .tick = 10000};
  TRY(adjtimex(&none) >= 0);
  TRY(socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
  char *argv[] = {"true", NULL};
  TRY(execv("/bin/true", argv) == 0);
  struct region output;
  TRY(shared_memories("rw-s", &output, 1) == 1 && madvise(output.from, 4096, MADV_REMOVE) == 0);
  /* Where Landlock is not there, files are the business of the sandbox. */
  if (syscall(SYS_landlock_create_ruleset, NULL, 0, 1) >= 3) {
    char memory[64];
    snprintf(memory, sizeof memory, "/proc/%d/mem", (int)karve);
    TRY(opens(memory, O_RDONLY));
    TRY(opens("/proc/self/mem", O_RDWR));
    TRY(opens("build/written", O_WRONLY | O_CREAT));
    TRY(opens("kernel.c", O_WRONLY | O_APPEND));
    TRY(opens("/tmp", O_TMPFILE | O_RDWR));
    TRY(unlink("kernel.c") == 0);
  }
  return count;
}

void product(int n, const float *a, const float *b, float *c) {
  static int found = -1;
  if (found < 0) found = worked();
  honest(n, a, b, c);
  if (found) memset(c, 0, (size_t)n * n * sizeof *c);
}
