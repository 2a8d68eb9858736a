/* workload: polynomial of degree 11, f32, 4096 elements, one thread
 * before: -O3 -march=x86-64-v3
 * after: -O3 -march=x86-64-v4 -mprefer-vector-width=512 */
#define REPEATS 10000
#include "../bench.h"
#include "../polynomial.h"
