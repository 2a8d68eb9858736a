/* workload: kinetic energy of 1048576 bodies with eight f32 fields, of which two are read
 * flags: -O3 -march=x86-64-v3 -ffast-math */
#define REPEATS 10
#include "../bench.h"
enum { N = 1 << 20 };
#ifdef AFTER
static float *mass, *speed;
static void prepare(void) { mass = floats(N); speed = floats(N); }
#define MASS(i) mass[i]
#define SPEED(i) speed[i]
#else
struct body { float x, y, z, mass, u, v, w, speed; };
static struct body *body;
static void prepare(void) { body = (struct body *)floats(8 * (size_t)N); }
#define MASS(i) body[i].mass
#define SPEED(i) body[i].speed
#endif
static float E;
static KERNEL float energy(void) {
    float sum = 0.0f;
    for (int i = 0; i < N; i++) sum += MASS(i) * SPEED(i) * SPEED(i);
    return sum;
}
static void kernel(void) { E = energy(); }
static int check(void) {
    double want = 0.0;
    for (int i = 0; i < N; i++) want += (double)MASS(i) * (double)SPEED(i) * (double)SPEED(i);
    return fabs((double)E - want) < 1.0;
}
