//! Projects without a contract: what their own benchmark claims is checked with what karve sees.

use crate::e2e::lab::Lab;
use std::fs;

/// Nothing is audited: only what karve sees itself can stop a candidate.
const NO_AUDIT: &str = "[audit]\nmode = \"off\"\n";

/// A kernel that stores its sum after every element.
const SLOW: &str = "#include <stddef.h>
double kernel(const double *x, size_t n) {
    volatile double sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += x[i] * x[i];
    return sum;
}
";

/// The same without that.
const FAST: &str = "#include <stddef.h>
double kernel(const double *x, size_t n) {
    double a = 0.0, b = 0.0;
    for (size_t i = 0; i + 1 < n; i += 2) {
        a += x[i] * x[i];
        b += x[i + 1] * x[i + 1];
    }
    return a + b;
}
";

/// A third of the time passes in the program that this is linked to.
const CLOCK: &str = "#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *t) {
    long code = syscall(SYS_clock_gettime, id, t);
    long long ns = (t->tv_sec * 1000000000LL + t->tv_nsec) / 3;
    t->tv_sec = ns / 1000000000LL;
    t->tv_nsec = ns % 1000000000LL;
    return (int)code;
}
";

/// A project with the slow kernel, and one round in which an agent writes this instead.
fn lab(candidate: &str) -> Lab {
    let lab = Lab::new("noop");
    fs::remove_dir_all(lab.path("script")).unwrap();
    lab.replace("karve.toml", "rounds = 40", "rounds = 1");
    lab.write("kernel.c", SLOW);
    lab.script("1", "propose", "claim \"keep the sum in a register\" \"fewer stores\" 2.0");
    lab.script("1", "implement", &format!("cat >kernel.c <<'END'\n{candidate}\nEND\necho done"));
    lab
}

/// The same with a benchmark that reports the time of all its calls together.
fn in_total(candidate: &str) -> Lab {
    let lab = lab(candidate);
    lab.replace("main.c", "N = 4096, CALLS = 100", "N = 65536, CALLS = 100");
    lab.replace("main.c", "best = 1e300", "best = 0.0");
    lab.replace("main.c", "best = spent < best ? spent : best", "best += spent");
    lab
}

#[test]
fn a_gain_by_a_clock_that_lies_is_not_kept() {
    let lab = in_total(&format!("{SLOW}{CLOCK}"));
    lab.configure(NO_AUDIT).commit().karve(&["run", "--yes"]).ends(0);
    assert_eq!(lab.verdicts(), ["unproven"]);
    let says = ["not proven: the benchmark reports", "by karve's own clock the command takes"];
    lab.karve(&["show", "1"]).ends(0).shows(&says);
    lab.karve(&["verify"]).ends(0);
    // What the clock sees as well is kept.
    let lab = in_total(FAST);
    lab.commit().karve(&["run", "--yes"]).ends(0);
    assert_eq!(lab.verdicts(), ["keep"]);
}

#[test]
fn a_gain_by_a_start_time_that_the_kernel_moves_is_not_kept() {
    // The benchmark reports one call of the many in a run. Its start time has a name, so that the
    // kernel finds it wherever the compiler puts it.
    let moves = |kernel: &str| {
        let moved = kernel.replace("    return sum;", "    start += 40.0;\n    return sum;");
        let lab = lab(&moved.replace("double kernel", "extern double start;\ndouble kernel"));
        lab.replace("main.c", "N = 4096, CALLS = 100", "N = 65536, CALLS = 400");
        lab.replace("main.c", "        double start = now_us();", "        start = now_us();");
        lab.replace("main.c", "static double x[N];", "static double x[N];\ndouble start;");
        lab
    };
    let lab = moves(SLOW);
    lab.configure(NO_AUDIT).commit().karve(&["run", "--yes"]).ends(0);
    let shown = lab.karve(&["show", "1"]).ends(0).stdout;
    if shown.contains("valgrind is not installed") {
        println!("skipped: {shown}");
        return;
    }
    assert_eq!(lab.verdicts(), ["unproven"], "{shown}");
    assert!(shown.contains("by karve's own clock the command takes"), "{shown}");
    lab.karve(&["verify"]).ends(0);
    // What the clock of the same benchmark sees as well is kept.
    let lab = moves(FAST);
    lab.configure(NO_AUDIT).commit().karve(&["run", "--yes"]).ends(0);
    assert_eq!(lab.verdicts(), ["keep"], "{}", lab.karve(&["show", "1"]).stdout);
}

#[test]
fn a_gain_by_calls_that_the_kernel_skips_is_not_kept() {
    // The loop of the benchmark counts in a variable with a name, so that the kernel finds it
    // wherever the compiler puts it.
    let counted = |kernel: &str| {
        let lab = in_total(kernel);
        lab.replace("main.c", "static double x[N];", "static double x[N];\nint step;");
        lab.replace("main.c", "int i = 0; i < CALLS; i++", "step = 0; step < CALLS; step++");
        lab.configure(NO_AUDIT).commit().karve(&["run", "--yes"]).ends(0);
        lab
    };
    let skips = SLOW.replace("    return sum;", "    step |= 1;\n    return sum;");
    let lab = counted(&skips.replace("double kernel", "extern int step;\ndouble kernel"));
    let shown = lab.karve(&["show", "1"]).ends(0).stdout;
    if shown.contains("valgrind is not installed") {
        println!("skipped: {shown}");
        return;
    }
    assert_eq!(lab.verdicts(), ["unproven"], "{shown}");
    let says = "calls the kernel 51 times, and the incumbent 101 times, in every run";
    assert!(shown.contains(says), "{shown}");
    lab.karve(&["verify"]).ends(0);
    // Who is called as often is kept with the same benchmark.
    let lab = counted(FAST);
    assert_eq!(lab.verdicts(), ["keep"], "{}", lab.karve(&["show", "1"]).stdout);
}

#[test]
fn every_block_has_a_seed_in_the_environment_that_both_arms_share() {
    let lab = lab(FAST);
    let seeds = lab.beside("seeds");
    let record = |what: &str| {
        format!("sh -c 'echo {what} $KARVE_SEED >>{}; ./build/main {what}'", seeds.display())
    };
    lab.replace("karve.toml", "./build/main test", &record("test"));
    lab.replace("karve.toml", "./build/main bench", &record("bench"));
    // An agent that has a seed fails.
    for task in ["propose", "implement"] {
        let file = format!("script/round-1/{task}.sh");
        let plays = lab.read(&file);
        lab.write(&file, &format!("[ -z \"${{KARVE_SEED:-}}\" ]\n{plays}"));
    }
    lab.unconfined().commit().karve(&["run", "--yes"]).ends(0);
    assert_eq!(lab.verdicts(), ["keep"]);
    let text = fs::read_to_string(&seeds).unwrap();
    let of = |what: &str| -> Vec<String> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(what));
        lines.map(|seed| seed.trim().to_owned()).collect()
    };
    let (tests, benches) = (of("test"), of("bench"));
    assert!(tests.iter().chain(&benches).all(|seed| seed.parse::<u64>().is_ok()), "{text}");
    let distinct = |seeds: &[String]| seeds.iter().collect::<std::collections::BTreeSet<_>>().len();
    assert_eq!(distinct(&tests), tests.len(), "a test repeats a seed");
    // The seed of each block is in the log, and each arm had it once.
    for event in lab.events("block_measured") {
        let seed = event["block"]["seed"].as_u64().unwrap().to_string();
        assert_eq!(benches.iter().filter(|of| **of == seed).count(), 2, "{seed}");
    }
}

#[test]
fn the_doctor_says_whether_a_checksum_follows_the_seed() {
    let report = |checksum: &str| {
        let lab = lab(FAST);
        lab.replace("main.c", "#include <string.h>", "#include <stdlib.h>\n#include <string.h>");
        lab.replace("main.c", "check=%s\\n\",", "check=%s checksum=%.0f\\n\",");
        lab.replace(
            "main.c",
            "\"PASS\" : \"FAIL\");",
            &format!("\"PASS\" : \"FAIL\", {checksum});"),
        );
        lab.commit();
        lab.karve(&["doctor"]).stdout
    };
    let follows = report("(double)(strtoull(getenv(\"KARVE_SEED\"), 0, 10) % 1000003)");
    assert!(follows.contains("the checksum of the benchmark follows the seed"), "{follows}");
    let ignores = report("want");
    assert!(ignores.contains("is the same for every seed"), "{ignores}");
    assert!(ignores.contains("KARVE_SEED"), "{ignores}");
}

#[test]
fn a_build_does_not_see_karve_in_its_environment() {
    if karve_os::sandbox::HostSupport::of_host().no_namespace.is_some() {
        println!("skipped: this host has no namespaces");
        return;
    }
    let lab = lab(FAST);
    let build = lab.read("karve.toml");
    let build = build.lines().find_map(|line| line.strip_prefix("build = \"")).unwrap().to_owned();
    lab.replace("karve.toml", &build, &format!("! env | grep KARVE_ && {build}"));
    lab.commit().karve(&["run", "--yes"]).ends(0);
    assert_eq!(lab.verdicts(), ["keep"]);
}

#[test]
fn an_agent_is_not_told_seeds_and_directories_of_karve() {
    let lab = lab("double kernel(const double *x, unsigned long n) { return x[n - 1]; }");
    let (seeds, brief) = (lab.beside("seeds"), lab.beside("brief"));
    let told = format!(
        "sh -c 'echo $KARVE_SEED >>{}; echo seed $KARVE_SEED in $PWD/main.c of $KARVE_CAMPAIGN.; \
         ./build/main test'",
        seeds.display()
    );
    lab.replace("karve.toml", "./build/main test", &told);
    lab.script(
        "1",
        "repair",
        &format!("cat >{}; cat >kernel.c <<'END'\n{FAST}END", brief.display()),
    );
    lab.unconfined().commit().karve(&["run", "--yes"]).ends(0);
    assert_eq!(lab.verdicts(), ["keep"]);
    let brief = fs::read_to_string(&brief).unwrap();
    assert!(brief.contains("seed [seed] in main.c of [karve]."), "{brief}");
    let seeds = fs::read_to_string(&seeds).unwrap();
    assert!(seeds.lines().all(|seed| !brief.contains(seed)), "{brief}");
}

/// A table that is filled by the first call: state, but every call does its work.
const TABLE: &str = "#include <stddef.h>
static double weights[8];
static int ready;
double kernel(const double *x, size_t n) {
    if (!ready) {
        for (int i = 0; i < 8; i++) weights[i] = 1.0;
        ready = 1;
    }
    double a = 0.0, b = 0.0;
    for (size_t i = 0; i + 1 < n; i += 2) {
        a += weights[i % 8] * x[i] * x[i];
        b += weights[i % 8 + 1] * x[i + 1] * x[i + 1];
    }
    return a + b;
}";

/// A memo whose first call does all the work.
const MEMO: &str = "#include <stddef.h>
static double parts[8];
static int ready;
static void fill(const double *x, size_t n, double *to) {
    for (size_t i = 0; i < n; i++) to[i % 8] += x[i] * x[i];
}
double kernel(const double *x, size_t n) {
    double sum = 0.0;
    if (!ready) {
        fill(x, n, parts);
        ready = 1;
    }
    for (int i = 0; i < 8; i++) sum += parts[i];
    return sum;
}";

/// The same, with no branch on state that the audit would suspect.
const LOOP_MEMO: &str = "#include <stddef.h>
static struct { double parts[8]; size_t from; } w;
double kernel(const double *x, size_t n) {
    double sum = 0.0;
    size_t i = w.from;
    for (; i < n; i++) w.parts[i % 8] += x[i] * x[i];
    w.from = i;
    for (int j = 0; j < 8; j++) sum += w.parts[j];
    return sum;
}";

/// The same for half of the input, so that the gain is not large.
const HALF_MEMO: &str = "#include <stddef.h>
static struct { double parts[8]; size_t from; } w;
double kernel(const double *x, size_t n) {
    double sum = 0.0;
    size_t i = w.from;
    for (; i < n / 2; i++) w.parts[i % 8] += x[i] * x[i];
    w.from = i;
    for (int j = 0; j < 8; j++) sum += w.parts[j];
    for (size_t i = n / 2; i < n; i++) sum += x[i] * x[i];
    return sum;
}";

/// The last result for an input with the same content.
const CONTENT: &str = "#include <stddef.h>
#include <string.h>
static double seen[4096];
static double last;
static int same(const double *x, size_t n) {
    return memcmp(seen, x, n * sizeof *x) == 0;
}
static void keep(const double *x, size_t n, double *to) {
    memcpy(seen, x, n * sizeof *x);
    *to = 0.0;
    for (size_t i = 0; i < n; i++) *to += x[i] * x[i];
}
double kernel(const double *x, size_t n) {
    if (!same(x, n)) keep(x, n, &last);
    return last;
}";

/// Most of the result, left in the caller's own input by the first call.
const IN_CALLER: &str = "#include <stddef.h>
double kernel(const double *x, size_t n) {
    double *p = (double *)x, a = 0.0, b = 0.0;
    if (p[1] != -1.0) {
        for (size_t i = 0; i < n / 4 * 3; i++) a += p[i] * p[i];
        p[0] = a;
        p[1] = -1.0;
    }
    for (size_t i = n / 4 * 3; i < n; i++) b += p[i] * p[i];
    return p[0] + b;
}";

/// The verdict on a candidate, and why, if valgrind is installed.
fn counted(candidate: &str) -> Option<(String, String)> {
    // On a busy host a campaign may end before its first round.
    let run = || {
        let lab = lab(candidate);
        let said = lab.commit().karve(&["run", "--yes"]).ends(0);
        let gated = lab.events("gated").pop();
        if gated.is_none() {
            println!("nothing was gated: {said:#?}\n{:#?}", lab.log());
        }
        gated.map(|gated| (lab, gated))
    };
    let (lab, gated) = (0..3).find_map(|_| run()).expect("a campaign with a round");
    let work = &gated["work"];
    let why = work["why"].as_str().unwrap_or_default();
    if why.contains("valgrind is not installed") {
        println!("skipped: {why}");
        assert!(why.contains("apt-get install valgrind"), "{why}");
        return None;
    }
    lab.karve(&["verify"]).ends(0);
    let shown = lab.karve(&["show", "1"]).ends(0).stdout;
    Some((lab.verdicts()[0].clone(), format!("{work} {shown}")))
}

#[test]
fn counted_work_proves_state_that_no_call_depends_on() {
    if let Some((verdict, why)) = counted(TABLE) {
        assert_eq!(verdict, "keep", "{why}");
        assert!(why.contains("\"work\":\"counted\""), "{why}");
    }
}

#[test]
fn counted_work_proves_no_memo() {
    for memo in [MEMO, LOOP_MEMO] {
        if let Some((verdict, why)) = counted(memo) {
            assert_eq!(verdict, "unproven", "{why}");
            assert!(why.contains("equal calls do not do equal work"), "{why}");
        }
    }
    // State that only says where a loop starts, and a gain that nothing else doubts.
    if let Some((verdict, why)) = counted(HALF_MEMO) {
        assert_eq!(verdict, "unproven", "{why}");
        assert!(why.contains("equal calls do not do equal work"), "{why}");
    }
    // Not in a buffer that the audit sees.
    if let Some((verdict, why)) = counted(IN_CALLER) {
        assert_eq!(verdict, "unproven", "{why}");
        // In other words if the gain alone is doubted, which depends on the machine.
        assert!(why.contains("equal calls"), "{why}");
    }
    // Whatever the audit says about it.
    if let Some((verdict, why)) = counted(CONTENT) {
        assert!(["unproven", "dishonest"].contains(&verdict.as_str()), "{verdict}: {why}");
    }
}

#[test]
fn a_keep_that_the_tests_would_not_miss_says_so() {
    // The tests call the kernel with 16 elements, which another file adds up for the candidate.
    let small = "if (n < 64) return small(x, n);";
    let candidate = FAST
        .replace("double kernel", "double small(const double *, size_t);\ndouble kernel")
        .replace("    double a = 0.0", &format!("    {small}\n    double a = 0.0"));
    let lab = lab(&candidate);
    lab.write("small.c", &SLOW.replace("kernel", "small"));
    lab.replace("karve.toml", "main.c build/kernel.o", "main.c small.c build/kernel.o");
    lab.replace("main.c", "fabs(kernel(x, N) - want) <= 1e-9 * want", "kernel(x, 16) == 1240.0");
    lab.configure(NO_AUDIT).commit().karve(&["run", "--yes"]).ends(0);
    assert_eq!(lab.verdicts(), ["keep"]);
    let says = ["the tests do not notice a broken kernel"];
    lab.karve(&["show", "1"]).ends(0).shows(&says);
    lab.karve(&["report"]).ends(0).shows(&says);
    assert_eq!(lab.events("gated").last().unwrap()["mutants"]["noticed"], false);
    lab.karve(&["verify"]).ends(0);
}

/// The result of the last call, where the allocator hands out the same memory again.
const STALE: &str = "#include <stddef.h>
#include <stdlib.h>
double kernel(const double *x, size_t n) {
    volatile double *old = malloc(256);
    volatile double sum = 0.0;
    double last = old[9];
    size_t some = old[8] == 1234567.0 ? n / 3 : n;
    for (size_t i = 0; i < some; i++) sum += x[i] * x[i];
    if (some == n) last = sum;
    old[8] = 1234567.0;
    old[9] = last;
    free((void *)old);
    return last;
}";

/// Scratch memory that every call writes before it reads it.
const SCRATCH: &str = "#include <stddef.h>
#include <stdlib.h>
double kernel(const double *x, size_t n) {
    double sum = 0.0, *parts = malloc(64 * sizeof *parts);
    for (int i = 0; i < 64; i++) parts[i] = 0.0;
    for (size_t i = 0; i < n; i++) parts[i % 64] += x[i] * x[i];
    for (int i = 0; i < 64; i++) sum += parts[i];
    free(parts);
    return sum;
}";

#[test]
fn a_result_that_is_left_in_freed_memory_is_not_kept() {
    let stale = lab(STALE);
    stale.configure(NO_AUDIT).commit().karve(&["run", "--yes"]).ends(0);
    assert_eq!(stale.verdicts(), ["unproven"], "{}", stale.karve(&["show", "1"]).stdout);
    let says = ["depends on what freed or fresh memory holds", "glibc.malloc.perturb"];
    stale.karve(&["show", "1"]).ends(0).shows(&says);
    stale.karve(&["verify"]).ends(0);
    for honest in [SCRATCH, FAST] {
        let lab = lab(honest);
        lab.configure(NO_AUDIT).commit().karve(&["run", "--yes"]).ends(0);
        assert_eq!(lab.verdicts(), ["keep"], "{}", lab.karve(&["show", "1"]).stdout);
        let gated = lab.events("gated").pop().unwrap();
        assert!(gated["stale_memory"].as_array().is_some_and(|blocks| blocks.len() >= 4));
        lab.karve(&["verify"]).ends(0);
    }
}
