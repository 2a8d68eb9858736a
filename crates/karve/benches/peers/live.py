"""Tunes real kernels with karve and with Kernel Tuner in the same time: who finds the faster one?

live.sh starts this and says how. The rules:

- Every tuner gets the same seconds on the same kernel, with the knobs, restrictions and compiler
  flags that the example declares. They take turns, so that the load of the host meets all.
- A setting is timed alike: the functions of the example's own harness, on the same cases, are what
  `karve tune` runs and what is linked to the kernel for Kernel Tuner, and the geometric mean over
  the cases counts. karve also tests every setting, and builds all of the example in a worktree;
  Kernel Tuner only compiles the kernel, and loads it into its own process.
- Nobody waits for a quiet host.
- The strategy of Kernel Tuner has the defaults of its authors, and its time includes listing the
  settings. The one with the best reading is its choice.
- There is one referee: what a tuner chose is written into a clone of the example, and karve bench
  lets it meet the default. The duel at the end of `karve tune` does not count. As the default is
  much slower, and noisy, it also meets what karve chose with the same seed. The mean over the seeds
  is geometric, of the ratios and of the ends of their 95% intervals.
"""

import argparse
import contextlib
import io
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[4] / "examples"
STRATEGY = "adaptive_tabu_greywolf"
TUNERS = ("karve/auto", "karve/random", f"kernel_tuner/{STRATEGY}")
# The file of each example that times a case, by a function time_ms(Case, int *passed).
HARNESS = {"matmul": "bench.c", "conv2d": "harness.c", "stencil": "harness.c"}
# karve would wait while others keep the CPUs busy, and its time would be gone.
WAIT_FOR_NOBODY = "\n[device]\npressure_max = 100\n"
# Pairs at most where what two tuners chose meets.
VERSUS_PAIRS = 30
# What Kernel Tuner gets for a setting that is wrong.
WRONG_MS = 1e6

# Times all cases as the example's harness does, and gives the geometric mean.
SHIM = """
#define main harness_main
#include "{harness}"
#undef main
#include <math.h>
float live(void) {{
    const Case cases[] = {{{cases}}};
    const int count = sizeof cases / sizeof *cases;
    int passed = 1;
    double logs = 0.0;
    for (int i = 0; i < count; i++) logs += log(time_ms(cases[i], &passed));
    return passed ? (float)exp(logs / count) : {wrong}f;
}}
"""

# Compiles a kernel as the Makefile of the example does, with the flags that its first lines name,
# and joins it with the shim. Other calls go to the compiler as they are.
COMPILER = """#!/bin/sh
set -e
if [ "$1" != -c ]; then exec cc "$@"; fi
for out; do :; done
opt=$(sed -n 's/^#define OPT //p' "$2")
case $(sed -n 's/^#define ARCH //p' "$2") in
native) arch=-march=native;;
native-wide) arch="-march=native -mprefer-vector-width=512";;
*) arch=;;
esac
cc -std=gnu11 -fPIC -I{example} $opt $arch -c -o "$out.kernel" "$2"
ld -r -o "$out" "$out.kernel" {shim}
rm "$out.kernel"
"""


def call(*command, cwd=None):
    """What a command prints; ends the program if it fails."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{command} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done.stdout


class Example:
    """A kernel of examples/, under git in a directory of its own."""

    def __init__(self, name, directory):
        self.name, self.path = name, Path(directory)
        if not self.path.exists():
            left_out = shutil.ignore_patterns("build", ".karve")
            shutil.copytree(EXAMPLES / name, self.path, ignore=left_out)
            with open(self.path / "karve.toml", "a") as config:
                config.write(WAIT_FOR_NOBODY)
            self.git("init", "--quiet", "--initial-branch", "main")
            self.commit("The default")
        config = tomllib.loads((self.path / "karve.toml").read_text())
        self.editable, self.cases = config["sources"]["editable"], config["cases"]["list"]
        self.knobs, self.restrictions = {}, []
        for file in self.editable:
            text = (self.path / file).read_text()
            self.restrictions += re.findall(r"karve: restrict (.*)", text)
            for name, values in re.findall(r"karve: knob (\w+) in (\S+)", text):
                values = values.split(",")
                numbers = all(re.fullmatch(r"\d+", value) for value in values)
                self.knobs[name] = [int(value) for value in values] if numbers else values

    def git(self, *arguments):
        identity = ("-c", "user.name=live", "-c", "user.email=live@localhost")
        return call("git", *identity, *arguments, cwd=self.path)

    def commit(self, message):
        self.git("add", ".")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)

    def write(self, setting):
        """Commits a setting on top of the default; gives the commit."""
        self.git("checkout", "--quiet", "--detach", "main")
        for file in self.editable:
            text = (self.path / file).read_text()
            for name, value in setting.items():
                definition = re.compile(rf"^(#define {name} |{name} = )\S+$", flags=re.M)
                text = definition.sub(rf"\g<1>{value}", text)
            (self.path / file).write_text(text)
        self.commit("A setting")
        return self.git("rev-parse", "HEAD").strip()


def by_karve(example, strategy, seed, budget_s):
    """Settings tried, and the commit that karve tune chose."""
    said = call(os.environ["KARVE"], "tune", "--strategy", strategy, "--seed", str(seed),
                "--budget", f"{budget_s}s", cwd=example.path)
    tried = int(re.search(r"^(\d+) of \d+ settings tried", said, flags=re.M)[1])
    refs = example.git("for-each-ref", "--format=%(objectname)", "refs/karve/tune").split()
    return tried, refs[0] if refs else "main"


def by_kernel_tuner(example, seed, budget_s):
    """Settings tried, and a commit with the best setting of Kernel Tuner."""
    with tempfile.TemporaryDirectory() as scratch:
        answer = Path(scratch) / "answer.json"
        call(sys.executable, __file__, "--kernel-tuner", str(example.path), "--seeds", str(seed),
             "--budget", str(budget_s), "--answer", str(answer), cwd=scratch)
        tried, setting = json.loads(answer.read_text())
    return tried, example.write(setting)


def play_kernel_tuner(example, seed, budget_s, scratch):
    """Kernel Tuner on an example, in a process of its own: settings tried, and the best one."""
    import random

    import numpy
    from kernel_tuner import tune_kernel

    harness, shim = HARNESS[example.name], scratch / "shim.o"
    cases = ", ".join("{" + ", ".join(re.findall(r"\d+", case)) + "}" for case in example.cases)
    source = scratch / "shim.c"
    source.write_text(SHIM.format(harness=harness, cases=cases, wrong=WRONG_MS))
    call("cc", "-std=gnu11", "-O2", "-fPIC", f"-I{example.path}", "-c", "-o", shim, source)
    compiler = scratch / "compiler"
    compiler.write_text(COMPILER.format(example=example.path, shim=shim))
    compiler.chmod(0o755)
    # The definitions go: Kernel Tuner writes them. The comment keeps it from taking this for C++.
    kernel = scratch / "kernel.c"
    definition = re.compile(rf"^#define ({'|'.join(example.knobs)}) .*$", flags=re.M)
    text = definition.sub("", (example.path / "kernel.c").read_text())
    kernel.write_text(f'// not extern "C"\n{text}')

    random.seed(seed)
    numpy.random.seed(seed)
    tried = {}
    with contextlib.redirect_stdout(io.StringIO()):
        results, _ = tune_kernel(
            "live", str(kernel), 1, [], example.knobs, lang="C", compiler=str(compiler),
            compiler_options=["-lm"], restrictions=example.restrictions, iterations=1,
            strategy=STRATEGY, strategy_options={"time_limit": budget_s}, quiet=True)
    for result in results:
        tried[tuple(str(result[name]) for name in example.knobs)] = result["time"]
    right = {k: t for k, t in tried.items() if isinstance(t, (int, float)) and t < WRONG_MS}
    best = min(right, key=right.get)
    return len(tried), dict(zip(example.knobs, best))


def duel(example, a, b, *limits):
    """How many times as fast as a commit another one is, and the interval, by karve bench."""
    if example.git("rev-parse", a) == example.git("rev-parse", b):
        return 1.0, 1.0, 1.0
    said = call(os.environ["KARVE"], "bench", a, b, "--json", *limits, cwd=example.path)
    estimate = json.loads(said)["clocks"][0]["estimate"]
    return estimate["ratio"], estimate["low"], estimate["high"]


def play(example, tuner, seed, budget_s):
    """Settings tried, and the commit that a tuner chose."""
    kind, strategy = tuner.split("/")
    if kind == "karve":
        return by_karve(example, strategy, seed, budget_s)
    return by_kernel_tuner(example, seed, budget_s)


def round_of(name, seed, budget_s, scratch):
    """One seed of one kernel: for each tuner, settings tried and the duels of what it chose."""
    rows, first = {}, None
    for tuner in TUNERS:
        example = Example(name, Path(scratch) / f"{name}-{seed}-{tuner.replace('/', '-')}" / name)
        start = time.monotonic()
        tried, chosen = play(example, tuner, seed, budget_s)
        took_s = time.monotonic() - start
        # All meet in the repository of the first.
        first = first or example
        first.git("fetch", "--quiet", str(example.path), f"{chosen}:refs/live/{tuner}")
        ratio, low, high = duel(first, "main", f"refs/live/{tuner}", "--every-case")
        rows[tuner] = {"tried": tried, "duel": (ratio, low, high)}
        print(f"{name}, seed {seed}, {tuner}: {tried} settings in {took_s:.0f} s, "
              f"{ratio:.2f}x [{low:.2f}, {high:.2f}]", file=sys.stderr, flush=True)
    for tuner in TUNERS[1:]:
        pair = (f"refs/live/{TUNERS[0]}", f"refs/live/{tuner}")
        rows[tuner]["versus"] = duel(first, *pair, "--pairs", str(VERSUS_PAIRS))
    return rows


def mean_of(triples):
    """The geometric mean of ratios and of the ends of their intervals."""
    return "{:.3g}x [{:.3g}, {:.3g}]".format(*map(statistics.geometric_mean, zip(*triples)))


def show(played, seeds, budget_s):
    print(f"{budget_s} s for each tuner, kernel and seed; means over {seeds} seeds")
    print()
    heads = ("kernel", "tuner", "settings", "over the default", f"over {TUNERS[0]}")
    print("|", " | ".join(heads), "|")
    print("|---" * len(heads) + "|")
    for name, rounds in played.items():
        for tuner in TUNERS:
            rows = [rows[tuner] for rows in rounds]
            tried = statistics.fmean(row["tried"] for row in rows)
            versus = mean_of([row["versus"] for row in rows]) if "versus" in rows[0] else ""
            gain = mean_of([row["duel"] for row in rows])
            print(f"| {name} | {tuner} | {tried:.0f} | {gain} | {versus} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--budget", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default=",".join(HARNESS))
    parser.add_argument("--kernel-tuner", help=argparse.SUPPRESS)
    parser.add_argument("--answer", help=argparse.SUPPRESS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        if options.kernel_tuner:
            example = Example(Path(options.kernel_tuner).name, options.kernel_tuner)
            answer = play_kernel_tuner(example, options.seeds, options.budget, Path(scratch))
            Path(options.answer).write_text(json.dumps(answer))
            return
        played = {name: [] for name in options.only.split(",")}
        for seed in range(1, options.seeds + 1):
            for name, rounds in played.items():
                rounds.append(round_of(name, seed, options.budget, scratch))
        show(played, options.seeds, options.budget)


if __name__ == "__main__":
    main()
