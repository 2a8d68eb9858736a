// The same in float64.
void linear_reference(int rows, int n, int k, const double *w, const double *bias, const double *x,
                      double *y) {
    for (int r = 0; r < rows; r++) {
        for (int i = 0; i < n; i++) {
            double sum = bias[i];
            for (int l = 0; l < k; l++) sum += w[i * k + l] * x[r * k + l];
            y[r * n + i] = sum > 0.0 ? sum : 0.0;
        }
    }
}
