/* workload: polynomial of degree 11, f32, 4096 elements, one thread
 * before: -O3
 * after: -O3 -march=x86-64-v3 */
#define REPEATS 4000
#include "../bench.h"
#include "../polynomial.h"
