// A matrix times another one that lies transposed, as plainly as it can be written.
void gemm(int m, int n, int k, const float *a, const float *b, float *c) {
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) {
            float sum = 0.0f;
            for (int l = 0; l < k; l++) {
                sum += a[i * k + l] * b[j * k + l];
            }
            c[i * n + j] = sum;
        }
    }
}
