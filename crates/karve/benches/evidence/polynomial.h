/* A polynomial of degree 11 by Horner's rule: arithmetic on data that lie in the nearest cache. */
enum { N = 4096 };
static float *X, *Y;
static const float c[12] = {1.0f,  -0.5f,  0.33f, -0.25f, 0.2f,   -0.16f,
                            0.14f, -0.12f, 0.11f, -0.1f,  0.09f, -0.08f};
static void prepare(void) { X = floats(N); Y = floats(N); }
static KERNEL void polynomial(const float *restrict x, float *restrict y) {
    for (int i = 0; i < N; i++) {
        float p = c[11];
        for (int k = 10; k >= 0; k--) p = p * x[i] + c[k];
        y[i] = p;
    }
}
static void kernel(void) { polynomial(X, Y); }
static int check(void) {
    for (int i = 0; i < N; i++) {
        double want = (double)c[11];
        for (int k = 10; k >= 0; k--) want = want * (double)X[i] + (double)c[k];
        if (!near(Y[i], want)) return 0;
    }
    return 1;
}
