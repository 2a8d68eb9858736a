"""Takes evidence for entries: builds both versions, checks them, benches them, writes the record.

See run.sh, which starts it.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[3]
ENTRIES = ROOT / "crates/karve/knowledge"
SCRIPT = "crates/karve/benches/evidence/run.sh"
# A bench that could not tell is taken again, so often at most.
TRIES = 3
# What karve says then. Such readings are no evidence.
UNDECIDED = "could_not_tell"


def head_of(source):
    """The fields in the comment at the top of a kernel, such as "flags: -O3"."""
    text = source.read_text().split("*/")[0]
    fields = {}
    for line in text.splitlines():
        found = re.match(r"[ /*!]*(workload|flags|before|after|compilers): (.*?)\s*$", line)
        if found:
            fields[found[1]] = found[2]
    fields.setdefault("before", fields.get("flags", ""))
    fields.setdefault("after", fields.get("flags", ""))
    return fields


def run(command, **more):
    return subprocess.run(command, check=True, capture_output=True, text=True, **more).stdout


def version_of(compiler):
    first = run([compiler, "--version"]).splitlines()[0]
    number = re.search(r"\d+\.\d+\.\d+", first)
    return f"{compiler} {number[0] if number else first}"


def build(source, compiler, flags, after, target):
    """Builds one version of a kernel; with -fprofile-use after a run that made the profile."""
    if compiler == "rustc":
        after = ["--cfg", "after"] if after else []
        run(["rustc", "--edition", "2024", *flags.split(), *after, "-o", target, source])
        return
    parts = [source, *sorted(source.parent.glob(source.stem + ".part.c"))]
    define = ["-DAFTER"] if after else []
    steps = [flags]
    if "-fprofile-use" in flags:
        steps.insert(0, flags.replace("-fprofile-use", "-fprofile-generate"))
    for step in steps:
        if step != steps[0]:
            run([target])
        # GCC names a profile after the object, so it is compiled in the directory of the target.
        command = [compiler, "-std=gnu11", *step.split(), *define, "-o", target, *parts, "-lm"]
        run(command, cwd=target.parent)


def bench(karve, before, after):
    """What "karve bench" finds, as it prints it in JSON."""
    for attempt in range(TRIES):
        limits = ["--pairs", str(300 * (attempt + 1)), "--time", f"{30 * (attempt + 1)}s"]
        clocks = ["--metric", "time_ms", "--clocks", "metric"]
        command = [karve, "bench", *clocks, *limits, "--json", "--", before, after]
        found = json.loads(run([str(word) for word in command]))
        if found["finding"]["finding"] != UNDECIDED:
            break
    return found


def device():
    """The model of the CPU, and its numbers where the name says little."""
    facts = {}
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        facts.setdefault(name.strip(), value.strip())
    model = facts.get("model name", "a CPU")
    if "cpu family" in facts:
        model += f", family {facts['cpu family']} model {facts.get('model', '?')}"
    return model


def record_of(found, fields, name, compiler):
    """The lines of a piece of evidence."""
    case = found["cases"][0]
    estimate = case["estimate"]
    flags = fields["before"]
    if fields["after"] != flags:
        flags = f"{flags or 'no flags'}; {fields['after']}"
    chosen = f"--compiler {compiler} " if compiler == "clang" else ""
    said = {
        "metric": "time_ms",
        "before": short(case["a_median"]),
        "after": short(case["b_median"]),
        "ratio": short(estimate["ratio"]),
        "low": short(min(estimate["low"], estimate["ratio"])),
        "high": short(max(estimate["high"], estimate["ratio"])),
        "device": quoted(device()),
        "workload": quoted(fields["workload"]),
        "run": quoted(f"{SCRIPT} {chosen}{name}"),
        "date": datetime.date.today().isoformat(),
        "toolchain": quoted(f"{version_of(compiler)}, {flags}"),
        "n": found["pairs"],
    }
    finding = found["finding"]["finding"]
    if finding not in ("faster", "slower"):
        said["note"] = quoted(finding.replace("_", " "))
    lines = [f"    {key}: {value}" for key, value in said.items()]
    lines[0] = "  - " + lines[0].lstrip()
    return lines


def failed_record(fields, name, compiler, why):
    """The lines of evidence that a change gives wrong results."""
    chosen = f"--compiler {compiler} " if compiler == "clang" else ""
    return [
        "  - metric: time_ms",
        "    before: 0.0",
        "    after: 0.0",
        "    ratio: 0.0",
        f"    device: {quoted(device())}",
        f"    workload: {quoted(fields['workload'])}",
        f"    run: {quoted(f'{SCRIPT} {chosen}{name}')}",
        f"    date: {datetime.date.today().isoformat()}",
        f"    toolchain: {quoted(version_of(compiler) + ', ' + fields['after'])}",
        "    n: 1",
        f"    note: {quoted(why)}",
        "    failed: true",
    ]


def short(number):
    """Five digits: a reading has no more that mean anything."""
    return float(f"{number:.5g}")


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def write(path, lines):
    """Puts evidence into an entry, in place of what the same run has said before."""
    text = path.read_text()
    _, head, body = text.split("---\n", 2)
    same = next(line for line in lines if line.startswith("    run: "))
    kept, items, block = [], [], False
    for line in head.splitlines():
        if line.startswith("evidence:"):
            block = True
        elif block and line.startswith("  - "):
            items.append([line])
        elif block and line.startswith("    "):
            items[-1].append(line)
        else:
            block = False
            kept.append(line)
    items = [item for item in items if same not in item] + [lines]
    at = next(i for i, line in enumerate(kept) if re.match(r"interactions:|date:", line))
    evidence = ["evidence:", *(line for item in items for line in item)]
    head = "\n".join([*kept[:at], *evidence, *kept[at:]]) + "\n"
    head = re.sub(r"(?m)^basis: .*$", "basis: measured", head)
    path.write_text(f"---\n{head}---\n{body}")


def take(name, options):
    """Takes the evidence of one entry. Says in a line what was found."""
    source = next(s for s in (HERE / f"kernels/{name}.c", HERE / f"kernels/{name}.rs") if s.exists())
    fields = head_of(source)
    compiler = "rustc" if source.suffix == ".rs" else options.compiler
    if compiler == "clang" and fields.get("compilers", "clang") != "clang":
        return f"{name}: not for {compiler}"
    with tempfile.TemporaryDirectory() as place:
        before, after = pathlib.Path(place, "before"), pathlib.Path(place, "after")
        build(source, compiler, fields["before"], False, before)
        build(source, compiler, fields["after"], True, after)
        run([before, "check"])
        if subprocess.run([after, "check"], check=False).returncode:
            lines, words = failed_record(fields, name, compiler, "the result is wrong"), "wrong"
        else:
            found = bench(options.karve, before, after)
            if found["finding"]["finding"] == UNDECIDED:
                return f"{name} ({compiler}): {found['words']}; nothing is written"
            lines = record_of(found, fields, name, compiler)
            words = found["words"]
    if not options.dry_run:
        write(ENTRIES / f"{name}.md", lines)
    return f"{name} ({compiler}): {words}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compiler", choices=["gcc", "clang"], default="gcc")
    parser.add_argument("--dry-run", action="store_true", help="write nothing")
    parser.add_argument("ids", nargs="*", metavar="ID")
    options = parser.parse_args()
    options.karve = os.environ.get("KARVE", ROOT / "target/release/karve")
    kernels = (HERE / "kernels").iterdir()
    known = sorted(path.stem for path in kernels if not path.stem.endswith(".part"))
    for name in options.ids or known:
        if name not in known:
            sys.exit(f"there is no kernel for {name}; kernels/ has: {' '.join(known)}")
        try:
            print(take(name, options), flush=True)
        except subprocess.CalledProcessError as error:
            print(f"{name}: {error}\n{error.stderr}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
