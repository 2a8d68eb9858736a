/* One thread that stays, and waits between calls. Needs threads = 2. */
#include <stddef.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;
static struct {
  int n;
  const float *a, *b;
  float *c;
  int due;
} job;

static void rows(int n, int from, int to, const float *a, const float *b, float *c) {
  for (size_t i = (size_t)from * n; i < (size_t)to * n; i++) c[i] = 0.0f;
  for (int i = from; i < to; i++)
    for (int l = 0; l < n; l++) {
      float x = a[(size_t)i * n + l];
      for (int j = 0; j < n; j++) c[(size_t)i * n + j] += x * b[(size_t)l * n + j];
    }
}

static void *work(void *unused) {
  pthread_mutex_lock(&lock);
  for (;;) {
    while (!job.due) pthread_cond_wait(&change, &lock);
    pthread_mutex_unlock(&lock);
    rows(job.n, job.n / 2, job.n, job.a, job.b, job.c);
    pthread_mutex_lock(&lock);
    job.due = 0;
    pthread_cond_broadcast(&change);
  }
  return unused;
}

void product(int n, const float *a, const float *b, float *c) {
  static int started;
  pthread_t thread;
  if (!started && pthread_create(&thread, NULL, work, NULL) == 0) started = 1;
  if (!started) {
    rows(n, 0, n, a, b, c);
    return;
  }
  pthread_mutex_lock(&lock);
  job.n = n;
  job.a = a;
  job.b = b;
  job.c = c;
  job.due = 1;
  pthread_cond_broadcast(&change);
  pthread_mutex_unlock(&lock);
  rows(n, 0, n / 2, a, b, c);
  pthread_mutex_lock(&lock);
  while (job.due) pthread_cond_wait(&change, &lock);
  pthread_mutex_unlock(&lock);
}
