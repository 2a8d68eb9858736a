#pragma once

// out (cols x rows) = in (rows x cols), both on the device and stored by rows.
void transpose(const float *in, float *out, int rows, int cols, cudaStream_t stream = 0);
