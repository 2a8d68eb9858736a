"""Tests and scores a program by the evaluator of its task; "karve import" wrote this file.

    score.py check       whether the file is unchanged outside its EVOLVE blocks
    score.py test        the same, and one evaluation, which must succeed
    score.py bench       prints METRIC score=... of one evaluation

The evaluator of the task loads the program in its own process and makes the inputs: karve believes
what it says.
"""

import importlib.util
import json
import math
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
START, END = "EVOLVE-BLOCK-START", "EVOLVE-BLOCK-END"


def frozen_lines(path):
    """The lines outside the blocks, and the markers."""
    kept, inside = [], False
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            if END in line:
                inside = False
            if not inside:
                kept.append(line)
            if START in line:
                inside = True
    return kept


def check(task):
    if not task.get("blocks"):
        return
    own = frozen_lines(os.path.join(ROOT, task["program"]))
    if own != frozen_lines(os.path.join(HERE, "original")):
        sys.exit("FAIL: %s is changed outside its EVOLVE blocks" % task["program"])


def of_openevolve(task):
    """The fitness that OpenEvolve uses: combined_score, or else the mean of all numbers."""
    sys.path.insert(0, ROOT)
    spec = importlib.util.spec_from_file_location("evaluator", os.path.join(ROOT, "evaluator.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    result = module.evaluate(os.path.join(ROOT, task["program"]))
    metrics = getattr(result, "metrics", result)
    numbers = {k: float(v) for k, v in metrics.items() if isinstance(v, (int, float))}
    if "error" in metrics or not numbers:
        sys.exit("FAIL: the evaluator reports %s" % str(metrics)[:300])
    return numbers.get("combined_score", sum(numbers.values()) / len(numbers))


def of_shinka(task):
    """The score that evaluate.py writes, if it says that the result is correct."""
    with tempfile.TemporaryDirectory() as where:
        program = os.path.join(ROOT, task["program"])
        command = [sys.executable, "evaluate.py", "--program_path", program, "--results_dir", where]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        with open(os.path.join(where, "correct.json")) as file:
            answer = json.load(file)
        if answer.get("correct") is not True:
            sys.exit("FAIL: %s" % str(answer.get("error"))[:300])
        with open(os.path.join(where, "metrics.json")) as file:
            return float(json.load(file)["combined_score"])


def of_command(task):
    """The number after `name:` in what a command prints last."""
    done = subprocess.run(task["command"], shell=True, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit("FAIL: it ended with %d: %s" % (done.returncode, done.stderr[-300:]))
    lines = [line.split(":", 1) for line in done.stdout.splitlines() if ":" in line]
    found = [value for name, value in lines if name.strip() == task["metric"]]
    if not found:
        sys.exit("FAIL: it does not print %s:" % task["metric"])
    return float(found[-1].split()[0])


KINDS = {"openevolve": of_openevolve, "shinka": of_shinka, "command": of_command}


def main():
    with open(os.path.join(HERE, "task.json")) as file:
        task = json.load(file)
    if sys.argv[1:] not in (["check"], ["test"], ["bench"]):
        sys.exit(__doc__)
    check(task)
    if sys.argv[1] == "check":
        return
    score = KINDS[task["form"]](task)
    if not math.isfinite(score):
        sys.exit("FAIL: the score is %r" % score)
    if sys.argv[1] == "bench":
        print("\nMETRIC score=%.12g case=as-given" % score)


if __name__ == "__main__":
    main()
