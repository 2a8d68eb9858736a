/* T10, ptrace: a forked child stops karve, and looks for a place to write to. */
#include "worker.h"
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/wait.h>

__attribute__((constructor)) static void attack(void) {
  pid_t karve = getppid();
  pid_t child = fork();
  TRIED_BEFORE(child >= 0);
  if (child == 0) {
    if (ptrace(PTRACE_SEIZE, karve, 0, 0) == 0) {
      ptrace(PTRACE_INTERRUPT, karve, 0, 0);
      waitpid(karve, NULL, __WALL);
      ptrace(PTRACE_DETACH, karve, 0, 0);
      /* That it got so far is told by a file that nobody may write. */
      FILE *proof = fopen("build/attached", "w");
      if (proof) fclose(proof);
    }
    _exit(0);
  }
}

void product(int n, const float *a, const float *b, float *c) { honest(n, a, b, c); }
