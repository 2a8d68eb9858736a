#!/usr/bin/env python3
"""Seconds from a project's clone to the first verdict, for the fixtures that need no GPU.

usage: testing/first-verdict.py [--steps] KARVE [PROJECT...]

KARVE is a debug or release binary; the first line says which, and the load of the machine. "verdict"
is from the start of `karve propose` to the verdict in the log, "submit" until karve asks for the next
proposal: the A/A test and the profile are between them. --steps prints where the time went.
"""

import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

PROJECTS = pathlib.Path(__file__).resolve().parent.parent / "testdata/projects"

# A change that is right, by project: the file, what is replaced, and by what.
CHANGES = {
    "make": (
        "matvec.c",
        "    for (j = 0; j < cols; j++)\n        for (i = 0; i < rows; i++)",
        "    for (i = 0; i < rows; i++)\n        for (j = 0; j < cols; j++)",
    ),
    "cmake-gbench": (
        "src/box_filter.cpp",
        "    for (long x = 0; x < w; ++x) {\n        for (long y = 0; y < h; ++y) {",
        "    for (long y = 0; y < h; ++y) {\n        for (long x = 0; x < w; ++x) {",
    ),
    "plain-c": (
        "saxpby.c",
        "    for (int i",
        "#pragma GCC unroll 8\n    for (int i",
    ),
    "cargo-plain": (
        "src/lib.rs",
        "            let replaced = table[(i - 1) * width + j - 1]",
        "            let above = &table[(i - 1) * width..i * width];\n"
        "            let replaced = above[j - 1]",
    ),
    "cargo-criterion": (
        "src/histogram.rs",
        "    for value in 0..=255u8 {\n        counts[value as usize] = "
        "pixels.iter().filter(|pixel| **pixel == value).count() as u32;\n    }",
        "    for pixel in pixels {\n        counts[*pixel as usize] += 1;\n    }",
    ),
    "numpy-script": (
        "stencil.py",
        "    for i in range(1, u.shape[0] - 1):\n        for j in range(1, u.shape[1] - 1):\n"
        "            laplacian = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]\n"
        "            out[i, j] = u[i, j] + alpha * laplacian\n",
        "    inner = u[1:-1, 1:-1]\n"
        "    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]\n"
        "    out[1:-1, 1:-1] = inner + alpha * (around - 4.0 * inner)\n",
    ),
    "pytest-benchmark": (
        "src/neighbors/pairwise.py",
        "        for j in range(n):\n            difference = points[i] - points[j]\n"
        "            out[i, j] = np.sqrt(np.sum(difference * difference))\n",
        "        difference = points[i] - points\n"
        "        out[i] = np.sqrt(np.sum(difference * difference, axis=1))\n",
    ),
}


def timed(words, here):
    """Runs a command; its seconds and what it printed."""
    start = time.monotonic()
    run = subprocess.run(words, cwd=here, capture_output=True, text=True, check=False)
    if run.returncode:
        raise SystemExit(f"{' '.join(map(str, words))}: {run.stdout}{run.stderr}")
    return time.monotonic() - start, run.stdout


def commit(here):
    own = ["-c", "user.name=karve", "-c", "user.email=karve@example.com"]
    timed(["git", "add", "-A"], here)
    timed(["git", *own, "commit", "-qm", "fixture"], here)


def events(here):
    """The records of the only campaign."""
    (log,) = here.glob(".karve/*/events.jsonl")
    return [json.loads(line) for line in log.read_text().splitlines()]


def steps(records):
    """Where the time went: seconds and number of each kind of event, in order."""
    spent = collections.OrderedDict()
    for record in records:
        event = record["event"]
        duel = event.get("duel", "")
        duel = duel if isinstance(duel, str) else "".join(list(duel)[:1])
        name = f"{event['type']} {duel}".strip()
        count, seconds = spent.get(name, (0, 0.0))
        spent[name] = (count + 1, seconds + record["spent_ms"] / 1e3)
    return ", ".join(f"{name} {s:.1f} s ({n})" for name, (n, s) in spent.items() if s >= 0.1)


def measure(karve, name, scratch):
    here = pathlib.Path(scratch) / name
    shutil.copytree(PROJECTS / name, here)
    timed(["git", "init", "-q", "."], here)
    commit(here)
    spent = [timed([karve, "init", "--yes"], here)[0]]
    commit(here)
    spent.append(timed([karve, "doctor"], here)[0])
    took, text = timed([karve, "next", "--yes", "--json"], here)
    spent.append(took)
    idea = here.parent / "idea.json"
    told = {"title": "a change", "mechanism": "it does less", "expected_ratio": 1.5}
    idea.write_text(json.dumps(told))
    workspace = pathlib.Path(json.loads(text)["workspace"])
    start = time.time()
    took, _ = timed([karve, "propose", idea, "--json"], here)
    path, old, new = CHANGES[name]
    source = workspace / path
    assert old in source.read_text(), f"{path} of {name} has changed"
    source.write_text(source.read_text().replace(old, new))
    submitted, text = timed([karve, "submit", "--json"], here)
    records = events(here)
    settled = next(of["at_ms"] for of in records if of["event"]["type"] == "settled")
    spent += [settled / 1e3 - start, took + submitted]
    return spent, json.loads(text)["last"], steps(records)


def main():
    arguments = [word for word in sys.argv[1:] if word != "--steps"]
    karve = os.path.abspath(arguments[0])
    _, version = timed([karve, "--version"], ".")
    build = next(line for line in version.splitlines() if line.startswith("build"))
    print(f"{build}; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print("| project | load | init | doctor | next | verdict | submit | |")
    print("|---|---|---|---|---|---|---|---|")
    for name in arguments[1:] or CHANGES:
        with tempfile.TemporaryDirectory() as scratch:
            spent, last, where = measure(karve, name, scratch)
        cells = " | ".join(f"{seconds:.0f} s" for seconds in spent)
        ratio = f"{last['ratio']:.2f}x" if last["ratio"] else ""
        if last["verdict"] != "keep":
            ratio = f"{ratio} {last['why']}".strip()
        load = f"{os.getloadavg()[1]:.1f}"
        print(f"| {name} | {load} | {cells} | {last['verdict']} {ratio} |", flush=True)
        if "--steps" in sys.argv:
            print(f"  {where}", flush=True)


if __name__ == "__main__":
    main()
