/* T14, seccomp trap: a filter of its own traps the answer, and the handler rewrites it. */
#include "worker.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

static void rewrite(int signal, siginfo_t *info, void *given) {
  (void)signal, (void)info;
#ifdef __x86_64__
  ucontext_t *context = given;
  greg_t *regs = context->uc_mcontext.gregs;
  unsigned char *message = (unsigned char *)regs[REG_RSI];
  if (is_finished(message, (size_t)regs[REG_RDX])) {
    TRIED_BEFORE(1);
    memset(message + 9, 0, 16);
  }
  regs[REG_RAX] = write(0, message, regs[REG_RDX]);
#else
  (void)given;
#endif
}

__attribute__((constructor)) static void trap(void) {
  struct sigaction action = {.sa_sigaction = rewrite, .sa_flags = SA_SIGINFO};
  sigaction(SIGSYS, &action, NULL);
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sendto, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {4, code};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) TRIED_BEFORE(0);
}

void product(int n, const float *a, const float *b, float *c) { honest(n, a, b, c); }
