"""Quick correctness and benchmark of the representative shapes.

Runs the project's own test and benchmark commands on each shape, and writes one row per shape in
the columns of primus. The campaign itself does not use this file.

Usage: python quick_test_bench.py [--repeats N] [--iters-per-repeat M] [--summary-csv PATH]
Exit code: 0 if every shape passes, 1 if one fails, 2 if nothing can be run.
"""

import argparse
import csv
import io
import math
import os
import statistics
import subprocess
import sys

BACKEND = "<target_backend>"
PROJECT = "<project_dir>"
BUILD = "<build_command>"
TEST = "<test_command>"
BENCH = "<benchmark_command>"

SHAPES = [
]

HEADER = [
    "label", "B", "M", "N", "K", "Check",
    "Forward TFLOPS", "Forward TFLOPS_stddev", "Backward TFLOPS", "Backward TFLOPS_stddev",
    "Forward Time (ms)", "Backward Time (ms)", "out_snr", "da_snr", "db_snr",
]
# Other names of the same columns.
ALIASES = {
    "Forward TFLOPS": ["fwd_tflops_mean", "forward_tflops_mean", "fwd_tflops"],
    "Backward TFLOPS": ["bwd_tflops_mean", "backward_tflops_mean", "bwd_tflops"],
    "Forward Time (ms)": ["fwd_ms_mean", "forward_ms_mean", "fwd_ms"],
    "Backward Time (ms)": ["bwd_ms_mean", "backward_ms_mean", "bwd_ms"],
    "Check": ["correct", "check", "check_pass", "correctness"],
}
GEOMETRY = ["B", "M", "N", "K"]


def expanded(command, shape, iters):
    values = {**shape, "case": shape["label"], "seed": 0, "repeats": iters}
    for name, value in values.items():
        command = command.replace("{" + name + "}", str(value))
    return command


def run(command, shape, iters):
    env = {**os.environ, "PRIMUS_TURBO_GEMM_BACKEND": BACKEND}
    return subprocess.run(
        expanded(command, shape, iters), shell=True, cwd=PROJECT, env=env,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )


def rows_in(text):
    lines = [line for line in text.splitlines() if line.count(",") >= 1]
    return list(csv.DictReader(io.StringIO("\n".join(lines)))) if lines else []


def value_of(row, column):
    for name in [column, *ALIASES.get(column, [])]:
        if row.get(name) not in (None, ""):
            return row[name]
    return None


def number(row, column):
    try:
        return float(value_of(row, column))
    except (TypeError, ValueError):
        return math.nan


def is_of(row, shape):
    if row.get("label", row.get("case")) == shape["label"]:
        return True
    shared = [name for name in shape if name in row and name != "label"]
    return bool(shared) and all(str(shape[name]) == row[name] for name in shared)


def mean_and_std(values):
    values = [value for value in values if not math.isnan(value)]
    if not values:
        return math.nan, math.nan
    return statistics.fmean(values), statistics.pstdev(values) if len(values) > 1 else 0.0


def measure(shape, repeats, iters):
    row = dict.fromkeys(HEADER, math.nan)
    row.update({"label": shape["label"], "Check": "FAIL"})
    row.update({name: shape.get(name, 1 if name == "B" else 0) for name in GEOMETRY})
    if TEST and run(TEST, shape, iters).returncode != 0:
        print(f"{shape['label']}: the test fails", file=sys.stderr)
        return row
    seen = []
    for repeat in range(repeats + 1):
        result = run(BENCH, shape, iters)
        found = [r for r in rows_in(result.stdout) if is_of(r, shape)]
        if result.returncode != 0 or not found:
            print(f"{shape['label']}: the benchmark gives no row", file=sys.stderr)
            return row
        if value_of(found[0], "Check") in ("FAIL", "False", "false", "0"):
            print(f"{shape['label']}: Check is FAIL", file=sys.stderr)
            return row
        if repeat > 0:  # the first one only warms up
            seen.append(found[0])
    for column in ["Forward TFLOPS", "Backward TFLOPS"]:
        row[column], row[column + "_stddev"] = mean_and_std([number(r, column) for r in seen])
    for column in HEADER[10:]:
        row[column] = mean_and_std([number(r, column) for r in seen])[0]
    row["Check"] = "PASS"
    return row


def geomean(values):
    values = [value for value in values if value > 0]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--iters-per-repeat", type=int, default=50)
    parser.add_argument("--summary-csv")
    args = parser.parse_args()
    if not SHAPES:
        print("SHAPES is empty: it is filled after BASELINE", file=sys.stderr)
        return 2
    if BUILD and run(BUILD, SHAPES[0], args.iters_per_repeat).returncode != 0:
        print("the build fails", file=sys.stderr)
        return 2
    rows = [measure(shape, max(1, args.repeats), args.iters_per_repeat) for shape in SHAPES]
    for row in rows:
        forward, backward = row["Forward TFLOPS"], row["Backward TFLOPS"]
        print(f"{row['label']:<22} {row['Check']:<5} {forward:>12.2f} {backward:>12.2f}")
    passed = [row for row in rows if row["Check"] == "PASS"]
    for name, column in [("Fwd", "Forward TFLOPS"), ("Bwd", "Backward TFLOPS")]:
        print(f"Geomean {name} TFLOPS: {geomean([row[column] for row in passed]):.2f}")
    if args.summary_csv:
        with open(args.summary_csv, "w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=HEADER)
            writer.writeheader()
            writer.writerows(rows)
    return 0 if len(passed) == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
