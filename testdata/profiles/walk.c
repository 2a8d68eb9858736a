/* Walks a matrix by rows and by columns, picks by a coin, and calls itself. Without a C library, so
   that a profile of it is short: cc -O1 -g -static -nostdlib walk.c -o walk */
enum { N = 256, COINS = 20000 };
float a[N][N] = {{1}}, b[N][N] = {{1}};
unsigned char coins[COINS];
static volatile float sink;
static volatile int kept;

__attribute__((noinline)) static float by_rows(void) {
    float s = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) s += a[i][j];
    return s;
}

__attribute__((noinline)) static float by_columns(void) {
    float s = 0;
    for (int j = 0; j < N; j++)
        for (int i = 0; i < N; i++) s += b[i][j];
    return s;
}

__attribute__((noinline)) static int pick(const unsigned char *p, int n) {
    int k = 0;
    for (int i = 0; i < n; i++) {
        if (p[i] & 1) kept = i;
        else k ^= i;
    }
    return k;
}

__attribute__((noinline)) static int depth(int n) {
    return n < 2 ? 1 : depth(n - 1) + depth(n - 2);
}

__attribute__((noinline)) static void toss(void) {
    unsigned x = 1;
    for (int i = 0; i < COINS; i++) {
        x = x * 1664525u + 1013904223u;
        coins[i] = (unsigned char)(x >> 24);
    }
}

void _start(void) {
    toss();
    sink = by_rows() + by_columns();
    kept = pick(coins, COINS) + depth(12);
    __asm__ volatile("mov $60, %%eax\n\txor %%edi, %%edi\n\tsyscall" ::: "rax", "rdi");
}
