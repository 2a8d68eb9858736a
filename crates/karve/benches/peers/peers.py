"""Plays autotuners on measured spaces: how near to the optimum do they come, in how many settings?

run.sh starts this and says how. The rules are those of `cargo bench --bench tune`, which is run at
the end so that karve's own strategies stand in the same table:

- What counts is the fraction of the optimum after 25, 50, 100 and 200 distinct settings, in the
  order in which they were tried: the mean over the seeds, then over the spaces, with the standard
  error that the seeds leave. A setting that fails counts. What the restrictions forbid, and what
  is asked for again, costs nothing.
- Every strategy has the defaults of its authors. Who ends before 200 settings keeps what it has.
- The last column is the CPU time of the search itself for each setting. What is done once for a
  space, such as to list its valid settings, is not in it. The rows of karve have elapsed time
  there, which is longer where other work shares the CPUs.
- A few seeds tell little: with three of them the means of two runs differ by up to 0.09. The row
  of random search over all seeds is exact, and a measure for the luck of the others.
"""

import argparse
import contextlib
import csv
import gzip
import io
import json
import math
import multiprocessing
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
import zlib
from pathlib import Path

import numpy

MARKS = (25, 50, 100, 200)
BUDGET = MARKS[-1]
# A search that asks for nothing new for so long is ended, in seconds of CPU time.
LIMIT_S = 120
# Optuna knows no restrictions: it may propose so many settings for the ones that count.
PROPOSALS = 5 * BUDGET

KERNEL_TUNER = {
    "kernel_tuner/adaptive_tabu_greywolf": "adaptive_tabu_greywolf",
    "kernel_tuner/hybrid_vndx": "hybrid_vndx",
    "kernel_tuner/pso": "pso",
    "kernel_tuner/genetic_algorithm": "genetic_algorithm",
    "kernel_tuner/dual_annealing": "dual_annealing",
    "kernel_tuner/random": "random_sample",
}
OPTUNA = "optuna/tpe"
KARVE = "karve/"


def value_of(text):
    """A value of a knob as a number, if it is one."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


class Space:
    """A measured space: the time of every setting, or None where it failed."""

    def __init__(self, table):
        self.name = table.name.split(".")[0]
        opened = gzip.open if table.suffix == ".gz" else open
        with opened(table, "rt", newline="") as file:
            rows = [[cell.strip() for cell in row] for row in csv.reader(file) if row]
        head = rows.pop(0)
        at = {name: index for index, name in enumerate(head)}
        width = min(at.get("valid", at["time"]), at["time"])
        self.knobs = head[:width]
        self.times = {}
        for row in rows:
            works = "valid" not in at or row[at["valid"]] in ("1", "true")
            setting = tuple(value_of(cell) for cell in row[:width])
            self.times[setting] = float(row[at["time"]]) if works else None
        about = table.parent / f"{self.name}.json"
        about = json.loads(about.read_text()) if about.exists() else {}
        found = [list(dict.fromkeys(setting[k] for setting in self.times)) for k in range(width)]
        listed = about.get("params", {})
        self.params = {
            knob: listed.get(knob) or ordered(values) for knob, values in zip(self.knobs, found)
        }
        restrictions = [
            with_constants(restriction, about.get("constants", {}))
            for restriction in about.get("restrictions", [])
        ]
        # What speaks of constants only is true, and Kernel Tuner cannot read it.
        names = re.compile(rf"\b({'|'.join(map(re.escape, self.knobs))})\b")
        self.restrictions = [one for one in restrictions if names.search(one)]
        # Where the restrictions are not known, they are the list of what was measured.
        self.exact = about.get("restrictions_check") == "exact"
        self.optimum = min(value for value in self.times.values() if value is not None)

    def rules(self):
        """The restrictions as Kernel Tuner takes them."""
        from constraint import FunctionConstraint

        if self.exact:
            return list(self.restrictions)
        return [FunctionConstraint(lambda *setting: setting in self.times)]

    def write_cache(self, path):
        """Writes a cache file of Kernel Tuner."""
        cache = {}
        for setting, value in self.times.items():
            entry = dict(zip(self.knobs, setting))
            if value is None:
                entry["__error__"] = "RuntimeFailedConfig"
            else:
                entry["time"] = value
            cache[",".join(str(part) for part in setting)] = entry
        whole = {
            "device_name": "recorded",
            "kernel_name": self.name,
            "tune_params_keys": self.knobs,
            "tune_params": self.params,
            "objective": ["time"],
            "cache": cache,
        }
        path.write_text(json.dumps(whole, indent="").rstrip())

    def chance(self):
        """What random search reaches at each mark, in the mean of all seeds there are."""
        found = [0.0 if value is None else self.optimum / value for value in self.times.values()]
        found.sort(reverse=True)
        means = []
        for mark in MARKS:
            mean, missed = 0.0, 1.0
            for better, fraction in enumerate(found):
                hit = min(1.0, mark / (len(found) - better))
                mean += missed * hit * fraction
                missed *= 1.0 - hit
            means.append(mean)
        return means

    def fractions(self, tried):
        """The fraction of the optimum at each mark; `tried` are distinct settings in order."""
        best, path = math.inf, []
        for setting in tried[:BUDGET]:
            value = self.times[setting]
            best = best if value is None else min(best, value)
            path.append(self.optimum / best)
        path += [path[-1] if path else 0.0] * (BUDGET - len(path))
        return [path[mark - 1] for mark in MARKS]


def ordered(values):
    """Numbers by size, words as they came."""
    numbers = all(isinstance(value, (int, float)) for value in values)
    return sorted(values) if numbers else values


def with_constants(restriction, constants):
    """A restriction with its constants written out."""
    for name, value in constants.items():
        restriction = re.sub(rf"\b{re.escape(name)}\b", repr(value), restriction)
    return restriction


class Watched:
    """A strategy of Kernel Tuner whose settings and CPU time are noted."""

    def __init__(self, name, space):
        self.name, self.space = name, space
        self.tried, self.spent_s = {}, 0.0

    def tune(self, searchspace, runner, tuning_options):
        from kernel_tuner.interface import strategy_map
        from kernel_tuner.util import StopCriterionReached

        if searchspace.size != len(self.space.times):
            raise ValueError(
                f"{self.space.name}: {searchspace.size} settings are valid, "
                f"{len(self.space.times)} were measured"
            )
        inner = runner.run
        # Its modules are loaded by the first use.
        tune = strategy_map[self.name].tune
        started = time.process_time()

        def run(settings, options):
            settings = [tuple(setting) for setting in settings]
            results = inner(settings, options)
            for setting, result in zip(settings, results):
                if result is not None and setting in self.space.times:
                    self.tried.setdefault(setting)
            if time.process_time() - started > LIMIT_S:
                raise StopCriterionReached("out of time")
            return results

        runner.run = run
        try:
            return tune(searchspace, runner, tuning_options)
        finally:
            self.spent_s = time.process_time() - started


def own_seed(space, seed):
    """A seed for one space: else spaces of one size would see the same luck."""
    return zlib.crc32(f"{space.name} {seed}".encode())


def play_kernel_tuner(space, name, seed, cache):
    from kernel_tuner import tune_kernel

    random.seed(own_seed(space, seed))
    numpy.random.seed(own_seed(space, seed))
    watched = Watched(KERNEL_TUNER[name], space)
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tune_kernel(
            space.name,
            "",
            1,
            [],
            dict(space.params),
            restrictions=space.rules(),
            lang="C",
            cache=str(cache),
            simulation_mode=True,
            strategy=watched,
            strategy_options={"max_fevals": BUDGET},
            quiet=True,
        )
    return list(watched.tried), watched.spent_s


def play_optuna(space, seed):
    """Asks the TPE of Optuna. Forbidden and failed settings are told as pruned: it avoids them."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    tried, spent_s = {}, 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sampler = optuna.samplers.TPESampler(seed=own_seed(space, seed))
        study = optuna.create_study(sampler=sampler)
        for _ in range(PROPOSALS):
            started = time.process_time()
            trial = study.ask()
            setting = tuple(suggest(trial, *knob) for knob in space.params.items())
            known = setting in space.times
            value = space.times.get(setting)
            if value is None:
                study.tell(trial, state=optuna.trial.TrialState.PRUNED)
            else:
                study.tell(trial, value)
            spent_s += time.process_time() - started
            if known:
                tried.setdefault(setting)
            if len(tried) >= min(BUDGET, len(space.times)) or spent_s > LIMIT_S:
                break
    return list(tried), spent_s


def suggest(trial, knob, values):
    """A value of a knob: numbers by their rank, the rest as a choice."""
    numbers = all(isinstance(value, (int, float)) for value in values)
    if numbers and len(values) > 2:
        return values[trial.suggest_int(knob, 0, len(values) - 1)]
    return values[trial.suggest_categorical(knob, list(range(len(values))))]


def play(job):
    space, name, seed, cache = job
    if name == OPTUNA:
        tried, spent_s = play_optuna(space, seed)
    else:
        tried, spent_s = play_kernel_tuner(space, name, seed, cache)
    each_ms = spent_s * 1e3 / max(len(tried), 1)
    return name, space.name, space.fractions(tried), each_ms, len(tried)


def line(name, cells):
    """One row: the mean over the spaces, with the standard error that the seeds leave."""
    out = f"{name:<36}"
    for mark in range(len(MARKS)):
        means, squares = [], []
        for cell in cells:
            values = [fractions[mark] for fractions, _, _ in cell]
            means.append(statistics.fmean(values))
            spread = statistics.variance(values) if len(values) > 1 else 0.0
            squares.append(spread / len(values))
        error = math.sqrt(sum(squares)) / len(cells)
        out += f" {statistics.fmean(means):.3f} ±{error:.3f}"
    runs = [run for cell in cells for run in cell]
    settings = statistics.fmean(run[2] for run in runs)
    each_ms = statistics.fmean(run[1] for run in runs)
    return out + f" {settings:9.0f} {each_ms:9.2f}"


def play_karve(asked, names):
    """The rows of karve's own benchmark, in the shape of this table."""
    root = Path(__file__).resolve().parents[4]
    command = ["cargo", "bench", "--quiet", "--locked", "--bench", "tune", "--"]
    command += [str(Path(asked.dir).resolve()), "--seeds", str(asked.seeds)]
    if names:
        command += ["--only", ",".join(names)]
    if asked.each:
        command += ["--each"]
    done = subprocess.run(command, cwd=root, text=True, stdout=subprocess.PIPE, check=True)
    for row in done.stdout.splitlines()[3:]:
        name = row[:28].rstrip()
        own = name if name.startswith("  ") else KARVE + name
        yield f"{own:<36}{row[28:]}"


def parse():
    parser = argparse.ArgumentParser(description="Plays autotuners on measured spaces.")
    parser.add_argument("dir", help="a directory of measured spaces")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", help="names of the first column, separated by commas")
    parser.add_argument("--each", action="store_true", help="a row for each space too")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="searches at once")
    return parser.parse_args()


def main():
    asked = parse()
    names = [*KERNEL_TUNER, OPTUNA]
    own = None
    if asked.only:
        wanted = asked.only.split(",")
        own = [name.removeprefix(KARVE) for name in wanted if name.startswith(KARVE)]
        strange = [name for name in wanted if name not in names and not name.startswith(KARVE)]
        if strange:
            sys.exit(f"there is no {strange[0]}; there are {', '.join(names)} and {KARVE}...")
        names = [name for name in names if name in wanted]
    tables = [path for path in Path(asked.dir).iterdir() if re.search(r"\.csv(\.gz)?$", path.name)]
    spaces = [Space(path) for path in sorted(tables)]
    if not spaces:
        sys.exit(f"there is no .csv or .csv.gz in {asked.dir}")
    marks = "".join(f" {mark:>12}" for mark in MARKS)
    print(f"{len(spaces)} spaces, {asked.seeds} seeds\n", flush=True)
    print(f"{'strategy':<36}{marks}  settings   ms each", flush=True)
    chances = [[(space.chance(), 0.0, BUDGET)] for space in spaces]
    print(line("random, in the mean of all seeds", chances), flush=True)
    with tempfile.TemporaryDirectory() as scratch, multiprocessing.Pool(asked.jobs) as pool:
        caches = {space.name: Path(scratch) / f"{space.name}.json" for space in spaces}
        for space in spaces:
            space.write_cache(caches[space.name])
        for name in names:
            jobs = [
                (space, name, seed, caches[space.name])
                for space in spaces
                for seed in range(asked.seeds)
            ]
            cells = {space.name: [] for space in spaces}
            for _, where, *run in pool.imap(play, jobs):
                cells[where].append(run)
            if asked.each:
                for where, cell in cells.items():
                    print(line(f"  {where}", [cell]), flush=True)
            print(line(name, list(cells.values())), flush=True)
    if own is None or own:
        for row in play_karve(asked, own):
            print(row, flush=True)


if __name__ == "__main__":
    main()
