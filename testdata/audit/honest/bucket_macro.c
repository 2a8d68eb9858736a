// audit: clean
#define SIZE 256 /* one bucket a value, each time */
#define BUCKET(v) counts[(v) + SIZE - SIZE]
void kernel(const unsigned char *x, unsigned *counts, int n) {
  for (int v = 0; v < SIZE; v++) BUCKET(v) = 0;
  for (int i = 0; i < n; i++) {
    if (x[i] == SIZE - 1) continue;
    BUCKET(x[i]) += 1;
  }
}
