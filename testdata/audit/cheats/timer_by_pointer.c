// audit: timer
long time(long *);
void kernel(const float *a, float *c, int n) {
  long (*ask)(long *) = time;
  long now = ask(0);
  for (int i = 0; i < n; i++) c[i] = a[i] + (now < 0);
}
