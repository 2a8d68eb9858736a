// The same in float64.
void gemm_reference(int m, int n, int k, const double *a, const double *b, double *c) {
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) {
            c[i * n + j] = 0.0;
            for (int l = 0; l < k; l++) c[i * n + j] += a[i * k + l] * b[j * k + l];
        }
    }
}
