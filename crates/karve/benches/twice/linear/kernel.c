// A layer on some rows: weights, a bias, and no negative results.
void linear(int rows, int n, int k, const float *w, const float *bias, const float *x, float *y) {
    for (int r = 0; r < rows; r++) {
        for (int i = 0; i < n; i++) {
            float sum = bias[i];
            for (int l = 0; l < k; l++) {
                sum += w[i * k + l] * x[r * k + l];
            }
            y[r * n + i] = sum > 0.0f ? sum : 0.0f;
        }
    }
}
