/* workload: axpy f32 of 4096 elements, one thread
 * compilers: gcc
 * flags: -O2 -march=x86-64-v3 */
#define REPEATS 20000
#include "../bench.h"
#define PRAGMA_AFTER GCC unroll 8
#include "../axpy.h"
