/* workload: axpy f32 of 4096 elements, one thread
 * before: -O2
 * after: -O3 */
#define REPEATS 20000
#include "../bench.h"
#include "../axpy.h"
