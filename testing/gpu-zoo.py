#!/usr/bin/env python3
"""Plays every cheat and every honest kernel for a GPU in campaigns, and prints what became of it.

    testing/gpu-zoo.py KARVE [--dir DIR] [--limit SECONDS] [--only NAME,NAME] [--leave NAME,NAME]

Runs on a machine with a GPU, PyTorch, Triton, nvcc and git, without Rust: with the Python that runs
this file, or that of --python. One campaign for each language and kind. One of cheats ends with a
keep, and another plays the rest, so that each meets the plain kernel of its project. What disturbs
others is played at the end in a campaign of its own. Where the clocks of a device may not be
touched, leave out locked_clocks and managed_clocks. The audit of the campaigns is off, so that the
other layers are tested; "karve audit" reads each file as well. Exit code 1: a cheat was kept that
the audit does not forbid, an honest kernel was forbidden or flagged, or some were not played within
the limit.
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

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What disturbs others is played at the end, alone.
LAST = ["other_memory", "managed_clocks", "memory_hog", "forked_helper", "locked_clocks"]
CLOCKS = ["locked_clocks", "managed_clocks"]
UNMEASURED = ["no_candidate", "no_change", "same_artifact", "already_tried"]


class Kernel:
    def __init__(self, path, is_honest):
        self.path, self.name, self.is_honest = path, path.stem, is_honest
        head = path.read_text().splitlines()[0]
        self.expected = head.partition("check: ")[2].split(" | ")
        self.is_native = path.suffix == ".cu"
        self.is_graph = path.parent.name == "graph"
        self.forbidden, self.end, self.why = [], "not played", ""

    def is_wrong(self):
        if self.is_honest:
            return bool(self.forbidden) or self.end not in ("kept", "verdict", "not played")
        return self.end == "kept" and not self.forbidden


def audit(karve, kernel):
    """The rules that forbid a kernel."""
    said = subprocess.run(
        [karve, "audit", kernel.path.name, "--json"],
        cwd=kernel.path.parent,
        capture_output=True,
        text=True,
    )
    findings = json.loads(said.stdout)["findings"]
    return sorted({one["rule"] for one in findings if one["severity"] == "forbidden"})


def lab(options, place, kernels):
    """A project with some kernels to play, in git."""
    native = options.cheats / "native"
    shutil.copytree(native / "project" if kernels[0].is_native else options.cheats / "project", place)
    shutil.copy(options.cheats / "project/agent.sh", place)
    shutil.copy(options.cheats / "project/reference.py", place)
    if kernels[0].is_native:
        shutil.copy(native / "honest.cuh", place)
        # With its kernels in the file that may be changed, or planted bugs have no place there.
        plain = (native / "honest.cuh").read_text().replace("#pragma once\n", "")
        path = place / "kernel.cu"
        path.write_text(path.read_text().replace('#include "honest.cuh"\n', plain))
    (place / "kernels").mkdir()
    for number, kernel in enumerate(kernels, 1):
        shutil.copy(kernel.path, place / "kernels" / f"{number}-{kernel.path.name}")
    config = (place / "karve.toml").read_text()
    config = config.replace('interpreter = "python3"', f'interpreter = "{options.python}"')
    config = config.replace("rounds = 100", f"rounds = {len(kernels)}")
    if not kernels[0].is_honest:
        # The next one must meet the plain kernel, too.
        config = config.replace("[sources]", 'goal = ">1.000001x"\n\n[sources]', 1)
    if kernels[0].is_graph:
        config = config.replace("reduction = ", 'launch = "graph"\nreduction = ', 1)
    (place / "karve.toml").write_text(config)
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "The zoo"]):
        subprocess.run(["git", *words], cwd=place, check=True, env=environment(place))


def environment(place):
    own = {"KARVE_LEASE_DIR": str(place.parent / (place.name + "-leases"))}
    for role in ("AUTHOR", "COMMITTER"):
        own |= {f"GIT_{role}_NAME": "karve", f"GIT_{role}_EMAIL": "karve@localhost"}
    return os.environ | own


def events_of(place):
    path = place / ".karve" / "zoo" / "events.jsonl"
    # The last line may be torn.
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return [json.loads(line)["event"] for line in lines]


def end_of(events, number, settled):
    """Which layer ended a round, and its words."""
    verdict = settled["verdict"]
    if verdict["verdict"].startswith("keep"):
        return "kept", ""
    of_round = [
        event
        for event in events
        if number in (event.get("round"), (event.get("duel") or {}).get("round"))
    ]
    for event in of_round:
        gate = event.get("gate")
        if not isinstance(gate, dict) or gate.get("gate") in (None, "passed"):
            continue
        why = gate.get("why") or gate.get("excerpt") or json.dumps(gate)
        if event["type"] == "block_failed":
            return "duel", why
        if gate["gate"] in ("build_failed", "out_of_scope"):
            return "not measured", why
        return ("hidden cases" if gate.get("case") == "a hidden case" else "correctness"), why
    reason = verdict.get("reason") or {}
    reason = reason.get("reason", "") if isinstance(reason, dict) else str(reason)
    return ("not measured" if reason in UNMEASURED else "verdict"), reason


def play(options, name, kernels):
    """Plays kernels in one campaign, or in more if one ends early."""
    rest, campaign = list(kernels), 0
    while rest and time.monotonic() < options.end:
        campaign += 1
        place = options.dir / f"{name}-{campaign}"
        lab(options, place, rest)
        left = max(1.0, options.end - time.monotonic())
        with open(options.dir / f"{name}-{campaign}.log", "w") as log:
            process = subprocess.Popen(
                [options.karve, "run", "--yes"],
                cwd=place,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment(place),
            )
            try:
                process.wait(left)
            except subprocess.TimeoutExpired:
                process.terminate()
                process.wait()
        events = events_of(place)
        ends = [event for event in events if event["type"] == "settled"]
        for number, (settled, kernel) in enumerate(zip(ends, rest), 1):
            kernel.end, kernel.why = end_of(events, number, settled)
            show(kernel)
        if not ends and time.monotonic() < options.end:
            rest[0].end, rest[0].why = "no verdict", f"see {name}-{campaign}.log"
            show(rest[0])
        rest = rest[max(1, len(ends)) :]


def show(kernel):
    mark = "WRONG" if kernel.is_wrong() else ""
    if not (mark or kernel.is_honest or kernel.end in kernel.expected + ["kept", "not played"]):
        mark = "" if kernel.expected == ["any"] else "other"
    if kernel.end == "kept" and not kernel.is_honest and kernel.forbidden:
        mark = "audit only"
    kind = "honest" if kernel.is_honest else "cheat"
    forbidden = ", ".join(kernel.forbidden) or "-"
    why = " ".join(kernel.why.split())[:90]
    print(f"{kind:7}{kernel.name:21}{kernel.end:14}{mark:11}{forbidden:32}{why}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("karve")
    parser.add_argument("--dir", type=pathlib.Path)
    parser.add_argument("--limit", type=float, default=540.0)
    parser.add_argument("--only", default="")
    parser.add_argument("--leave", default="")
    parser.add_argument("--python", default=sys.executable)
    cheats = ROOT / "testdata/cheats/gpu"
    parser.add_argument("--cheats", type=pathlib.Path, default=cheats)
    parser.add_argument("--honest", type=pathlib.Path, default=ROOT / "testdata/honest/gpu")
    options = parser.parse_args()
    options.karve = str(pathlib.Path(options.karve).resolve())
    options.dir = options.dir or pathlib.Path(tempfile.mkdtemp())
    options.dir.mkdir(parents=True, exist_ok=True)
    options.end = time.monotonic() + options.limit
    patterns = ("native/*.cu", "graph/*.py", "*.py")
    files = [path for pattern in patterns for path in sorted(options.cheats.glob(pattern))]
    kernels = [Kernel(path, False) for path in files]
    kernels += [Kernel(path, True) for path in sorted(options.honest.glob("*.[pc][yu]"))]
    only = [name for name in options.only.split(",") if name]
    leave = options.leave.split(",")
    kernels = [k for k in kernels if (not only or k.name in only) and k.name not in leave]
    for kernel in kernels:
        kernel.forbidden = audit(options.karve, kernel)
    last = [k for k in kernels if k.name in LAST and not k.is_honest and not k.is_native]
    last.sort(key=lambda kernel: LAST.index(kernel.name))
    print(f"{'':7}{'kernel':21}{'ended by':14}{'':11}{'the audit forbids':32}why")
    groups = {}
    for kernel in kernels:
        if kernel not in last:
            language = "native" if kernel.is_native else "graph" if kernel.is_graph else "python"
            kind = "honest" if kernel.is_honest else "cheats"
            groups.setdefault(f"{language}-{kind}", []).append(kernel)
    for name, group in groups.items():
        play(options, name, group)
    play(options, "last", last)
    if any(kernel.name in CLOCKS for kernel in last):
        subprocess.run(["nvidia-smi", "--reset-gpu-clocks"], capture_output=True, check=False)
    played = [kernel for kernel in kernels if kernel.end != "not played"]
    wrong = [kernel.name for kernel in kernels if kernel.is_wrong()]
    left = len(kernels) - len(played)
    print(f"{len(played)} played, {left} not played; wrong: {', '.join(wrong) or 'none'}")
    print(f"campaigns are in {options.dir}")
    sys.exit(1 if wrong or left else 0)


if __name__ == "__main__":
    main()
