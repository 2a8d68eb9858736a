#!/usr/bin/env python3
"""Measures tasks of the scoreboard on this machine's GPU: our kernel beside every baseline.

    scoreboard/measure.py NAME... [--rounds N] [--out DIR] [--only CONTENDER,CONTENDER]

All of them run in this process, one batch each in every round, in a random order, on inputs that are drawn
again for every round. Before a batch the L2 cache is overwritten by reads; inputs that would fit there are
rotated. Kernels shorter than GRAPH_MS are captured in CUDA graphs, ours and baselines alike, so that no
launch is timed. Times are medians over the rounds, with 95% intervals from the order statistics; ratios are
medians of ratios within a round. Errors are measured against the reference in float64. A copy of 2 GiB in the
same rounds gives the roofline of a memory-bound task: the time in which it would move the bytes of the task.
"""

import argparse
import datetime
import gc
import importlib.util
import json
import math
import pathlib
import random
import statistics
import subprocess
import sys
import time
import tomllib

import torch
import triton

HERE = pathlib.Path(__file__).resolve().parent
TYPES = {
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "bool": torch.bool,
}
# How far an element may be off, relative to itself and to the root mean square of all.
TOLERANCES = {torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 2e-2}
BATCH_MS = 6.0
GRAPH_MS = 0.4
ROTATED_BYTES = 256 << 20
SETS_MAX = 512
FLUSHED_BYTES = 256 << 20
COPIED_BYTES = 2 << 30


def load(path):
    spec = importlib.util.spec_from_file_location(path.parent.name.replace("-", "_") + path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build(place, config):
    command = config.get("commands", {}).get("build")
    if command:
        subprocess.run(["sh", "-c", "set -e\n" + command], cwd=place, check=True)


class Task:
    """The inputs of one case."""

    def __init__(self, config, case):
        sizes = {name: int(value) for name, value in (part.split("=") for part in case.split(","))}
        self.case, self.args = case, []
        for arg in config["contract"]["args"]:
            shape = [eval(extent, {"__builtins__": {}}, sizes) for extent in arg["shape"]]
            self.args.append((arg, shape, TYPES[arg["dtype"]]))
        self.dtype = next(of for arg, _, of in self.args if arg["kind"] == "output")

    def bytes(self, kinds=("input", "output")):
        return sum(math.prod(s) * of.itemsize for a, s, of in self.args if a["kind"] in kinds)

    def new(self):
        of_inputs = [(s, of) for a, s, of in self.args if a["kind"] == "input"]
        return tuple(torch.empty(s, device="cuda", dtype=of) for s, of in of_inputs)


def draw(inputs):
    for tensor in inputs:
        if tensor.dtype == torch.bool:
            tensor.random_(0, 2)
        else:
            tensor.normal_()


class Contender:
    def __init__(self, name, function, convert=None):
        self.name, self.function, self.convert = name, function, convert
        self.times, self.graph, self.error, self.failure = [], None, None, None

    def inputs(self, given):
        return self.convert(*given) if self.convert else given


def contenders_of(place):
    reference = load(place / "reference.py").reference_fn
    # Of one function, each call of torch.compile would share what the first one compiled.
    default = torch.compile(load(place / "reference.py").reference_fn)
    tuned = torch.compile(
        load(place / "reference.py").reference_fn, mode="max-autotune-no-cudagraphs"
    )
    found = [
        Contender("eager", reference),
        Contender("compile", default),
        Contender("max-autotune", tuned),
    ]
    path = place / "baselines.py"
    if path.exists():
        module = load(path)
        for name, function in vars(module).items():
            if callable(function) and not name.startswith("inputs_of_"):
                found.append(Contender(name, function, getattr(module, "inputs_of_" + name, None)))
    found.append(Contender("ours", load(place / "kernel.py").kernel_fn))
    return found


def milliseconds(work):
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    work()
    last.record()
    torch.cuda.synchronize()
    return first.elapsed_time(last)


def errors(found, truth):
    """The largest error, the same relative to the tolerance, and the root mean square, by parts."""
    tolerance = TOLERANCES[found.dtype]
    found, truth = found.reshape(-1), truth.reshape(-1)
    if not found.numel() == truth.numel():
        raise ValueError("another shape")
    step = 1 << 28
    parts = [slice(at, at + step) for at in range(0, truth.numel(), step)]
    scale = math.sqrt(sum(truth[p].square().sum().item() for p in parts) / truth.numel())
    largest = squares = beyond = 0.0
    for p in parts:
        off = (found[p].double() - truth[p]).abs_()
        squares += off.square().sum().item()
        largest = max(largest, torch.nan_to_num(off, nan=math.inf).max().item())
        off /= truth[p].abs().add_(scale).mul_(tolerance)
        beyond = max(beyond, torch.nan_to_num(off, nan=math.inf).max().item())
    rms = math.sqrt(squares / truth.numel()) / max(scale, 1e-300)
    return {"largest": largest, "of_tolerance": beyond, "relative_rms": rms}


def check(contenders, task, reference):
    """Errors on inputs that are drawn once."""
    inputs = task.new()
    draw(inputs)
    wide = tuple(t.double() if t.is_floating_point() else t for t in inputs)
    truth = reference(*wide)
    del wide
    for contender in contenders:
        gc.collect()
        torch.cuda.empty_cache()
        try:
            begun = time.time()
            result = contender.function(*contender.inputs(inputs))
            torch.cuda.synchronize()
            contender.first_s = time.time() - begun
            contender.error = errors(result, truth)
            del result
            if not contender.error["of_tolerance"] <= 1:
                contender.failure = "wrong"
        except Exception as error:
            contender.failure = f"{type(error).__name__}: {str(error)[:200]}"
            torch.cuda.synchronize()
    del truth, inputs
    gc.collect()
    torch.cuda.empty_cache()


def interval(values):
    """The median, and a 95% interval of it from order statistics."""
    ordered, n = sorted(values), len(values)
    reach, low = 0.0, 0
    while low < (n - 1) // 2:
        reach += math.comb(n, low) / 2**n
        if reach > 0.025:
            break
        low += 1
    low = max(low - 1, 0)
    return [statistics.median(ordered), ordered[low], ordered[n - 1 - low]]


def measure(contenders, task, rounds):
    input_bytes = task.bytes(("input",))
    n_sets = min(SETS_MAX, math.ceil(ROTATED_BYTES / input_bytes))
    sets = [task.new() for _ in range(n_sets)]
    flushed = torch.zeros(FLUSHED_BYTES // 4, device="cuda", dtype=torch.int32)
    there, here = (torch.empty(COPIED_BYTES, device="cuda", dtype=torch.int8) for _ in range(2))
    copy = Contender("copy", lambda: here.copy_(there))
    for inputs in sets:
        draw(inputs)
    racing = [one for one in contenders if one.failure is None] + [copy]
    for one in racing:
        given = [() if one is copy else one.inputs(inputs) for inputs in sets[: 1 if one.convert else None]]
        # One that needs another layout gets one set of inputs, converted again for every round.
        one.given = given
        one.function(*given[0])
        once = min(milliseconds(lambda: one.function(*given[0])) for _ in range(3))
        one.calls = max(1, math.ceil(BATCH_MS / max(once, 0.002)))
        one.calls = min(2048, max(one.calls, len(given)))
        one.once = once

        def batch(one=one):
            for call in range(one.calls):
                one.function(*one.given[call % len(one.given)])

        one.batch = batch
        if once < GRAPH_MS:
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                one.function(*given[0])
            torch.cuda.current_stream().wait_stream(stream)
            one.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(one.graph):
                batch()
            one.batch = one.graph.replay
            one.batch()
    torch.cuda.synchronize()
    for _ in range(rounds):
        for inputs in sets:
            draw(inputs)
        for one in racing:
            if one.convert:
                for to, of in zip(one.given[0], one.inputs(sets[0])):
                    to.copy_(of)
        for one in random.sample(racing, len(racing)):
            flushed.sum()
            torch.cuda.synchronize()
            one.times.append(milliseconds(one.batch) / one.calls)
    # As long as a copy of as many bytes as the task has.
    copy.times = [ms * task.bytes() / (2 * COPIED_BYTES) for ms in copy.times]
    return copy


def row(name, case, contenders, copy, task):
    ours = next(one for one in contenders if one.name == "ours")
    others = [one for one in contenders if one is not ours]
    found = {
        "task": name,
        "case": case,
        "dtype": str(task.dtype).removeprefix("torch."),
        "bytes": task.bytes(),
        "rounds": len(copy.times),
        "copy_ms": interval(copy.times),
        "contenders": {},
    }
    for one in contenders:
        kept = {"error": one.error} | ({"failure": one.failure} if one.failure else {})
        if one.times:
            kept |= {"ms": interval(one.times), "calls": one.calls, "graph": one.graph is not None}
        found["contenders"][one.name] = kept
    if ours.times:
        fastest = min((one for one in others if one.times), key=lambda one: statistics.median(one.times))
        found["fastest_baseline"] = fastest.name
        found["speedup"] = interval([b / o for b, o in zip(fastest.times, ours.times)])
        found["of_copy"] = interval([c / o for c, o in zip(copy.times, ours.times)])
    return found


def machine():
    query = "--query-gpu=name,driver_version,clocks.max.sm,power.limit"
    said = subprocess.run(
        ["nvidia-smi", query, "--format=csv,noheader"], capture_output=True, text=True, check=False
    ).stdout.strip()
    return {
        "date": datetime.date.today().isoformat(),
        "device": torch.cuda.get_device_name(0),
        "nvidia_smi": said,
        "torch": torch.__version__,
        "triton": triton.__version__,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
        "python": sys.version.split()[0],
    }


def show(found):
    print(f"{found['task']} {found['case']} {found['dtype']}", flush=True)
    print("  %-14s %9.4f ms (%.4f to %.4f)" % ("copy", *found["copy_ms"]))
    for name, one in found["contenders"].items():
        ms = "%9.4f ms (%.4f to %.4f)" % tuple(one["ms"]) if "ms" in one else " " * 9
        error = one["error"] and "largest error %.3g, rms %.2g" % (
            one["error"]["largest"], one["error"]["relative_rms"]
        )
        print("  %-14s %s  %s  %s" % (name, ms, error, one.get("failure", "")))
    if "speedup" in found:
        print("  %.3fx (%.3f to %.3f) over %s, %.1f%% of a copy" % (
            *found["speedup"], found["fastest_baseline"], 100 * found["of_copy"][0]), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="+")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--only", default="", help="contenders, by name")
    options = parser.parse_args()
    torch.set_grad_enabled(False)
    torch.manual_seed(time.time_ns() % 2**31)
    for name in options.names:
        measure_task(name, options)


def measure_task(name, options):
    place = HERE / name
    config = tomllib.loads((place / "karve.toml").read_text())
    build(place, config)
    results = machine() | {"rows": []}
    for case in config["cases"]["list"]:
        torch._dynamo.reset()
        task = Task(config, case)
        contenders = contenders_of(place)
        if options.only:
            contenders = [c for c in contenders if c.name in options.only.split(",")]
        check(contenders, task, load(place / "reference.py").reference_fn)
        copy = measure(contenders, task, options.rounds)
        results["rows"].append(row(name, case, contenders, copy, task))
        show(results["rows"][-1])
        del contenders, copy
        gc.collect()
        torch.cuda.empty_cache()
        if options.out:
            text = json.dumps(results, indent=1) + "\n"
            (options.out / f"{name}.json").write_text(text)


if __name__ == "__main__":
    main()
