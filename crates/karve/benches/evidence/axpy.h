/* y = a x + y / 2; the factor keeps repeated calls from growing. */
enum { N = 4096 };
static float *X, *Y;
static volatile int steps = N;
static void prepare(void) { X = floats(N); Y = floats(N); }
#define PRAGMA(text) PRAGMA_OF(text)
#define PRAGMA_OF(text) _Pragma(#text)
static KERNEL void axpy(const float *restrict x, float *restrict y, float a, int n) {
#if defined AFTER && defined PRAGMA_AFTER
    PRAGMA(PRAGMA_AFTER)
#endif
    for (int i = 0; i < n; i++) y[i] = a * x[i] + 0.5f * y[i];
}
static void kernel(void) { axpy(X, Y, 0.25f, steps); }
static int check(void) {
    for (int i = 0; i < N; i++) Y[i] = 1.0f;
    kernel();
    for (int i = 0; i < N; i++)
        if (!near(Y[i], 0.25 * (double)X[i] + 0.5)) return 0;
    return 1;
}
