/* C = A B, in double precision. */
static int check(void) {
    for (int i = 0; i < N; i += 7)
        for (int j = 0; j < N; j += 3) {
            double want = 0.0;
            for (int k = 0; k < N; k++) want += (double)A[i * N + k] * (double)B[k * N + j];
            if (!near(C[i * N + j], want)) return 0;
        }
    return 1;
}
