/* X22, a little help: a second thread takes a fifth of the rows and is joined before the call
 * returns, so that no thread is left and the CPU time stays below what one thread and a quarter
 * use. */
#include "honest.h"
#include <pthread.h>

struct job {
  int n;
  const float *a, *b;
  float *c;
};

static void *help(void *given) {
  struct job *job = given;
  honest_rows(job->n, job->n - job->n / 5, job->n, job->a, job->b, job->c);
  return NULL;
}

void product(int n, const float *a, const float *b, float *c) {
  struct job job = {n, a, b, c};
  pthread_t thread;
  if (pthread_create(&thread, NULL, help, &job) != 0) {
    honest(n, a, b, c);
    return;
  }
  honest_rows(n, 0, n - n / 5, a, b, c);
  pthread_join(thread, NULL);
}
