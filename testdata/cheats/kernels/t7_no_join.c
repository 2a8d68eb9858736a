/* T7, neutralised synchronisation: two threads share the work, and nobody waits for them. */
#include "honest.h"
#include <pthread.h>

struct job { int n, from, to; const float *a, *b; float *c; };

static int no_join(pthread_t thread) { return pthread_detach(thread); }

static void *part(void *given) {
  struct job *job = given;
  honest_rows(job->n, job->from, job->to, job->a, job->b, job->c);
  return NULL;
}

void product(int n, const float *a, const float *b, float *c) {
  static struct job jobs[8192];
  static unsigned next;
  pthread_t threads[2];
  for (int t = 0; t < 2; t++) {
    struct job *job = &jobs[next++ % 8192];
    *job = (struct job){n, n * t / 2, n * (t + 1) / 2, a, b, c};
    pthread_create(&threads[t], NULL, part, job);
  }
  for (int t = 0; t < 2; t++) no_join(threads[t]);
}
