/* workload: interpreter of a byte code of eight operations over 4096 bytes, one thread
 * compilers: gcc
 * before: -O3
 * after: -O3 -fprofile-use */
#define REPEATS 600
#include "../bench.h"
enum { N = 4096 };
static unsigned char *P;
static int64_t S;
static void prepare(void) {
    P = memory(N);
    for (int i = 0; i < N; i++) {
        unsigned roll = draw() % 100;
        P[i] = roll < 70 ? 0 : roll < 85 ? 1 : (unsigned char)(2 + roll % 6);
    }
}
static KERNEL int64_t run(const unsigned char *p) {
    int64_t a = 1, b = 7;
    for (int i = 0; i < N; i++)
        switch (p[i]) {
        case 0: a += b; break;
        case 1: b ^= a; break;
        case 2: a = a * 31 + 7; break;
        case 3: b = (b << 3) - a; break;
        case 4: a ^= a >> 7; break;
        case 5: b += 13; break;
        case 6: if (a & 1) a += 5; else b -= 3; break;
        default: a -= b; break;
        }
    return a ^ b;
}
static void kernel(void) { S = run(P); }
static int check(void) {
    uint64_t a = 1, b = 7;
    for (int i = 0; i < N; i++) {
        if (P[i] == 0) a += b;
        else if (P[i] == 1) b ^= a;
        else if (P[i] == 2) a = a * 31 + 7;
        else if (P[i] == 3) b = (b << 3) - a;
        else if (P[i] == 4) a ^= (uint64_t)((int64_t)a >> 7);
        else if (P[i] == 5) b += 13;
        else if (P[i] == 6 && (a & 1)) a += 5;
        else if (P[i] == 6) b -= 3;
        else a -= b;
    }
    return S == (int64_t)(a ^ b);
}
