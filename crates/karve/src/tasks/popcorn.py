"""Tests and measures a task of GPU MODE by its official evaluation; "karve import" wrote this file.

    popcorn.py test          all tests; 0 if all pass
    popcorn.py bench CASE    prints METRIC time_us=... for one benchmark
"""

import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
LINES_BYTES_MAX = 16 << 20
SECONDS_MAX = 3000


def evaluated(mode, cases):
    """What eval.py says about some cases: keys and values."""
    text = "\n".join("; ".join("%s: %s" % pair for pair in case["args"].items()) for case in cases)
    read, write = os.pipe()
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(text + "\n")
        file.flush()
        env = dict(os.environ, POPCORN_FD=str(write))
        if "KARVE_SEED" in env:
            env["POPCORN_SEED"] = str(int(env["KARVE_SEED"]) % (1 << 20))
        command = [sys.executable, "eval.py", mode, file.name]
        child = subprocess.Popen(command, cwd=os.path.dirname(HERE), env=env, pass_fds=[write])
        os.close(write)
        with os.fdopen(read, errors="replace") as lines:
            said = lines.read(LINES_BYTES_MAX)
        code = child.wait(SECONDS_MAX)
    pairs = [line.split(": ", 1) for line in said.splitlines() if ": " in line]
    return code, dict(pairs)


def main():
    with open(os.path.join(HERE, "task.json")) as file:
        task = json.load(file)
    if sys.argv[1:] == ["test"]:
        code, said = evaluated("test", task["tests"] or task["cases"])
        if code != 0 or said.get("check") != "pass":
            errors = [value for key, value in said.items() if key.endswith(".error")]
            sys.exit("FAIL: eval.py ended with %d: %s" % (code, "; ".join(errors)[:500]))
        return print("PASS")
    if len(sys.argv) != 3 or sys.argv[1] != "bench":
        sys.exit(__doc__)
    cases = [case for case in task["cases"] if case["name"] == sys.argv[2]]
    if not cases:
        sys.exit("there is no case %s in karve/task.json" % sys.argv[2])
    code, said = evaluated("benchmark", cases)
    if code != 0 or said.get("check") != "pass" or "benchmark.0.mean" not in said:
        sys.exit("FAIL: eval.py ended with %d: %s" % (code, said.get("benchmark.0.error", "")))
    time_us = float(said["benchmark.0.mean"]) / 1e3
    print("METRIC time_us=%.9g case=%s check=PASS" % (time_us, sys.argv[2]))


if __name__ == "__main__":
    main()
