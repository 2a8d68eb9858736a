/* Records the timings of testdata/timings: duels of a kernel with itself, and with a variant whose
 * extra work is known by instruction count, under three loads.
 *
 *     cc -O2 -o record record.c
 *     ./record OUT SECONDS NULLS EFFECTS [CPU]
 *
 * appends trials to OUT until SECONDS have passed or every load has NULLS trials of equal arms and
 * EFFECTS trials of each true effect. With CPU, everything is pinned to that core, the load
 * included. testdata/timings/README.md describes what is written.
 *
 * The parent tosses the coin, holds the wall clock and starts two workers, one for each arm. The
 * arm that is not running is stopped. A worker conditions its caches, then runs the kernel once
 * for each request and answers with its CPU time. Neither knows the order. Both workers are
 * started afresh every 25 pairs, with an environment of random size and the addresses that the
 * kernel deals out. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    SIDE = 200,       /* columns, and the length of a dot product */
    ROWS = 200,       /* rows of the candidate: half a percent each */
    ROWS_MAX = 256,
    CONDITION = 20,   /* rows of the conditioning run, for either arm */
    PAIRS = 400,
    REPLICATE = 25,   /* pairs of one pair of processes */
    UNIT_NS = 50,     /* of all times that are written */
    LOADS = 3,
    EFFECTS_N = 5,
    STREAM = 4 << 20, /* floats that a load generator streams through: 16 MiB */
};

static const char *const load_names[LOADS] = {"none", "one", "three"};
static const int load_per_core[LOADS] = {0, 1, 3};
static const int effects_percent[EFFECTS_N] = {0, 1, 2, 3, 5};

static float left[ROWS_MAX][SIDE], right[SIDE][SIDE], result[ROWS_MAX][SIDE];

static void die(const char *what) {
    perror(what);
    exit(1);
}

static uint64_t now_ns(clockid_t clock) {
    struct timespec t;
    if (clock_gettime(clock, &t) != 0) die("clock_gettime");
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint32_t toss(void) {
    uint32_t bits;
    if (getrandom(&bits, sizeof bits, 0) != sizeof bits) die("getrandom");
    return bits;
}

/* Every row costs the same instructions, so the rows calibrate the effect. */
static __attribute__((noinline)) void kernel(int rows) {
    for (int i = 0; i < rows; i++) {
        float *out = result[i];
        memset(out, 0, sizeof result[i]);
        for (int k = 0; k < SIDE; k++) {
            float factor = left[i][k];
            for (int j = 0; j < SIDE; j++) out[j] += factor * right[k][j];
        }
    }
}

static void fill(void) {
    uint32_t state = 1;
    float *to[2] = {&left[0][0], &right[0][0]};
    int count[2] = {ROWS_MAX * SIDE, SIDE * SIDE};
    for (int m = 0; m < 2; m++)
        for (int i = 0; i < count[m]; i++) {
            state = state * 1664525u + 1013904223u;
            to[m][i] = (float)(state >> 8) / (float)(1 << 24) - 0.5f;
        }
}

/* One arm: 'c' conditions, 't' runs the kernel; each is answered by eight bytes. */
static int worker(int rows) {
    char request;
    fill();
    while (read(0, &request, 1) == 1) {
        int count = request == 't' ? rows : CONDITION;
        uint64_t start = now_ns(CLOCK_PROCESS_CPUTIME_ID);
        kernel(count);
        uint64_t spent = now_ns(CLOCK_PROCESS_CPUTIME_ID) - start;
        if (write(1, &spent, sizeof spent) != sizeof spent) return 1;
    }
    return 0;
}

/* A load generator: bursts of arithmetic and of memory traffic, of random length, for ever. */
static void generate(void) {
    float *stream = calloc(STREAM, sizeof *stream);
    if (!stream) die("calloc");
    fill();
    for (;;) {
        uint64_t until = now_ns(CLOCK_MONOTONIC) + 1000000u * (2 + toss() % 20);
        if (toss() & 1) {
            while (now_ns(CLOCK_MONOTONIC) < until) kernel(20);
        } else {
            for (size_t at = 0; now_ns(CLOCK_MONOTONIC) < until; at = (at + 65536) % STREAM)
                for (size_t i = at; i < at + 65536; i++) stream[i] += 1.0f;
        }
    }
}

struct arm {
    pid_t pid;
    int to, from;
};

static struct arm start_arm(int rows) {
    int in[2], out[2];
    char number[16], *padding = malloc(4200);
    if (!padding || pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC)) die("pipe");
    memcpy(padding, "PADDING=", 8);
    size_t size = toss() % 4096;
    memset(padding + 8, 'x', size);
    padding[8 + size] = 0;
    snprintf(number, sizeof number, "%d", rows);
    pid_t pid = fork();
    if (pid < 0) die("fork");
    if (pid == 0) {
        char *argv[] = {"record", "worker", number, NULL}, *env[] = {padding, NULL};
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(in[0], 0);
        dup2(out[1], 1);
        execve("/proc/self/exe", argv, env);
        _exit(127);
    }
    free(padding);
    close(in[0]);
    close(out[1]);
    return (struct arm){pid, in[1], out[0]};
}

static uint64_t ask(const struct arm *arm, char request) {
    uint64_t spent;
    if (write(arm->to, &request, 1) != 1) die("the request");
    if (read(arm->from, &spent, sizeof spent) != sizeof spent) die("the answer");
    return spent;
}

static void end(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void end_arm(const struct arm *arm) {
    close(arm->to);
    close(arm->from);
    end(arm->pid);
}

struct trial {
    char order[PAIRS + 1];
    uint64_t wall[2][PAIRS], cpu[2][PAIRS];
};

/* One arm's half of a pair; the other arm is stopped. */
static void half(const struct arm *arm, uint64_t *wall, uint64_t *cpu) {
    kill(arm->pid, SIGCONT);
    ask(arm, 'c');
    uint64_t start = now_ns(CLOCK_MONOTONIC);
    *cpu = ask(arm, 't');
    *wall = now_ns(CLOCK_MONOTONIC) - start;
    kill(arm->pid, SIGSTOP);
}

static void duel(struct trial *trial, int percent) {
    struct arm arms[2];
    for (int i = 0; i < PAIRS; i++) {
        if (i % REPLICATE == 0) {
            if (i) end_arm(&arms[0]), end_arm(&arms[1]);
            /* The one that is started first, and so may get other memory, is drawn too. */
            int first = toss() & 1;
            for (int a = 0; a < 2; a++) {
                int which = a ^ first;
                arms[which] = start_arm(which == 0 ? ROWS + ROWS * percent / 100 : ROWS);
                ask(&arms[which], 't');
                kill(arms[which].pid, SIGSTOP);
            }
        }
        int first = toss() & 1;
        trial->order[i] = first ? 'B' : 'A';
        half(&arms[first], &trial->wall[first][i], &trial->cpu[first][i]);
        half(&arms[!first], &trial->wall[!first][i], &trial->cpu[!first][i]);
    }
    end_arm(&arms[0]), end_arm(&arms[1]);
    trial->order[PAIRS] = 0;
}

/* A column of times, each as the difference to the one before, in units. */
static void put_column(FILE *out, const uint64_t *times) {
    int64_t before = 0;
    for (int i = 0; i < PAIRS; i++) {
        int64_t units = (int64_t)((times[i] + UNIT_NS / 2) / UNIT_NS);
        fprintf(out, i ? " %lld" : "%lld", (long long)(units - before));
        before = units;
    }
    fputc('\n', out);
}

static void put_trial(const char *path, const char *head, const struct trial *trial) {
    FILE *out = fopen(path, "a");
    if (!out) die(path);
    fprintf(out, "%s\n%s\n", head, trial->order);
    for (int a = 0; a < 2; a++) put_column(out, trial->wall[a]);
    for (int a = 0; a < 2; a++) put_column(out, trial->cpu[a]);
    if (fclose(out)) die(path);
}

static void record(const char *path, int load, int effect) {
    static struct trial trial;
    pid_t generators[256];
    char head[80];
    double average = 0;
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed)) die("sched_getaffinity");
    int n = CPU_COUNT(&allowed) * load_per_core[load];
    if (n > 256) n = 256;
    getloadavg(&average, 1);
    for (int i = 0; i < n; i++) {
        generators[i] = fork();
        if (generators[i] < 0) die("fork");
        if (generators[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            generate();
        }
    }
    if (n) usleep(100000);
    duel(&trial, effects_percent[effect]);
    for (int i = 0; i < n; i++) end(generators[i]);
    snprintf(head, sizeof head, "trial load=%s effect=%d average=%.2f", load_names[load],
             effects_percent[effect], average);
    put_trial(path, head, &trial);
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "worker") == 0) return worker(atoi(argv[2]));
    if (argc < 5) {
        fprintf(stderr, "usage: record OUT SECONDS NULLS EFFECTS [CPU]\n");
        return 2;
    }
    if (argc > 5) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(atoi(argv[5]), &one);
        if (sched_setaffinity(0, sizeof one, &one)) die("sched_setaffinity");
    }
    signal(SIGPIPE, SIG_IGN);
    int nulls = atoi(argv[3]), effects = atoi(argv[4]), left_n = 0;
    int due[LOADS][EFFECTS_N];
    for (int l = 0; l < LOADS; l++)
        for (int e = 0; e < EFFECTS_N; e++) left_n += due[l][e] = e == 0 ? nulls : effects;
    uint64_t stop = now_ns(CLOCK_MONOTONIC) + 1000000000u * (uint64_t)atoi(argv[2]);
    /* Every trial that is still due is equally likely to be next, so that no load and no effect
     * has an hour of its own. */
    for (; left_n > 0 && now_ns(CLOCK_MONOTONIC) < stop; left_n--) {
        int pick = (int)(toss() % (uint32_t)left_n), l = 0, e = 0;
        while (pick >= due[l][e]) {
            pick -= due[l][e];
            if (++e == EFFECTS_N) e = 0, l++;
        }
        due[l][e]--;
        record(argv[1], l, e);
    }
    return 0;
}
