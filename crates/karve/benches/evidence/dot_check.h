/* S = X Y, in double precision. */
static int check(void) {
    double want = 0.0;
    for (int i = 0; i < N; i++) want += (double)X[i] * (double)Y[i];
    return fabs((double)S - want) < 0.05;
}
