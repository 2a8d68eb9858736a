"""Runs two campaigns in a row, with and without what the first learned, and with a false entry.

See run.sh, which starts it.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[3]
# The same speedup: this share of the smaller of the two that are compared.
SAME = 0.95
POISON = "less-optimization"


def run(command, where, **more):
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, **more)
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


class Campaign:
    """A project in a directory of its own, and the campaign that was run there."""

    def __init__(self, lab, kernel, name, root, seed, poisoned=False):
        self.name = name
        self.dir = lab / f"{name}-project"
        shutil.copytree(HERE / kernel, self.dir)
        if poisoned:
            (self.dir / "knowledge").mkdir()
            shutil.copy(HERE / "poison.md", self.dir / "knowledge" / f"{POISON}.md")
        config = self.dir / "karve.toml"
        text = f'\n[campaign]\nname = "{name}"\nroot = "{root}"\nseed = {seed}\n'
        config.write_text(config.read_text() + text)
        self.env = dict(os.environ, XDG_CONFIG_HOME=str(lab / "config"))
        self.karve = os.environ.get("KARVE", str(ROOT / "target/release/karve"))
        for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", name]):
            who = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"]
            run(["git", *who, *command], self.dir, env=self.env)
        began = time.monotonic()
        self.said = self.ask("run", "--yes")
        self.seconds = time.monotonic() - began
        self.status = json.loads(self.ask("status", "--json"))
        self.rounds = json.loads(self.ask("log", "--json"))

    def ask(self, *words):
        return run([self.karve, *words], self.dir, env=self.env)

    def speedup(self):
        return self.status["cumulative_ratio"]

    def interval(self):
        head = self.status["headline"]
        return head["ratio"], head["low"] or 0.0, head["high"] or float("inf")

    def rounds_to(self, speedup):
        for number, of in enumerate(self.rounds, 1):
            if of["cumulative_ratio"] >= speedup:
                return number
        return len(self.rounds)

    def meets(self, other):
        """A duel of the final kernels of two campaigns on the same kernel, A and B.

        Two speedups over the original are no comparison: each has the noise of the original in it.
        """
        theirs = f"optimize/{other.name}"
        run(["git", "fetch", "-q", str(other.dir), f"{theirs}:{theirs}"], self.dir, env=self.env)
        said = self.ask("bench", f"optimize/{self.name}", theirs, "--harness", "A", "--json")
        return json.loads(said)["clocks"][0]["estimate"]

    def standing(self, entry):
        shown = self.ask("knowledge", "show", entry)
        return next(line for line in shown.splitlines() if line.startswith("standing"))


def shown(campaign):
    return bracketed(*campaign.interval())


def bracketed(ratio, low, high):
    return f"{ratio:.2f}x [{low:.2f}, {high:.2f}]"


def one(lab, seed, tell):
    """All campaigns of one seed: a row of the table, and what is wrong."""
    lab.mkdir(parents=True)
    shared, alone, poisoned = lab / "shared", lab / "alone", lab / "poisoned"
    first = Campaign(lab, "gemm", "first", shared, seed)
    tell("first", first)
    shutil.copytree(shared / "knowledge", poisoned / "knowledge")
    second = Campaign(lab, "linear", "second", shared, seed)
    tell("second, after the first", second)
    anew = Campaign(lab, "linear", "anew", alone, seed)
    tell("second, without it", anew)
    false = Campaign(lab, "linear", "misled", poisoned, seed, poisoned=True)
    tell("second, misled", false)
    same = SAME * min(second.speedup(), anew.speedup())
    with_it, without = second.rounds_to(same), anew.rounds_to(same)
    standing = false.standing(POISON)
    wrong = []
    if with_it >= without:
        wrong.append(f"seed {seed}: {with_it} rounds are not fewer than {without}")
    if "refuted" not in standing:
        wrong.append(f"seed {seed}: the false entry is not refuted: {standing}")
    duel = second.meets(false)
    if duel["high"] < SAME:
        wrong.append(f"seed {seed}: with the false entry it is not as good: {bracketed(**duel)}")
    row = [
        str(seed),
        f"{same:.2f}x",
        str(without),
        str(with_it),
        f"{without / with_it:.1f}",
        shown(anew),
        shown(second),
        shown(false),
        bracketed(**duel),
        standing.split(":")[0].split()[-1],
    ]
    return row, wrong


HEAD = [
    "seed",
    "same speedup",
    "rounds without",
    "rounds with",
    "ratio",
    "final without",
    "final with",
    "final with the false entry",
    "its kernel over that of the second",
    "the false entry is",
]


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--keep", type=pathlib.Path)
    options = options.parse_args()
    began = time.monotonic()

    def tell(what, campaign):
        line = f"{what:<26} {campaign.seconds:5.0f} s, {len(campaign.rounds)} rounds"
        print(f"{line}, {shown(campaign)}", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory() as scratch:
        home = options.keep.resolve() if options.keep else pathlib.Path(scratch)
        print("| " + " | ".join(HEAD) + " |")
        print("|" + "---|" * len(HEAD), flush=True)
        results = []
        for seed in range(1, options.seeds + 1):
            results.append(one(home / str(seed), seed, tell))
            print("| " + " | ".join(results[-1][0]) + " |", flush=True)
    print(f"{time.monotonic() - began:.0f} s in all", file=sys.stderr)
    wrong = [fault for _, faults in results for fault in faults]
    for fault in wrong:
        print(fault, file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
