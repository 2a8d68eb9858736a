#!/usr/bin/env python3
"""Writes what gpu-entries.py measured into the entries of the library.

    testing/entries/enter.py RESULTS.jsonl...

The figures replace those of the same run in crates/karve/knowledge/ID.md, whether they speak for the entry or
against it. Pairs whose results did not agree are left out. Then: KARVE_BLESS=1 cargo test -p karve --lib catalog
"""

import json
import os
import re
import sys
import time

KNOWLEDGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../crates/karve/knowledge")

# Pairs that say something, but not whether the entry holds.
NO_EVIDENCE = {"triton-eviction-policy": "nothing is read again in a plain stream"}


def evidence(result, date):
    """A measurement, as the front matter of an entry has it."""
    rows = [
        ("metric", "time_us"),
        ("before", result["before_us"]),
        ("after", result["after_us"]),
        ("ratio", result["ratio"]),
        ("low", result["low"]),
        ("high", result["high"]),
        ("device", result["device"]),
        ("workload", "'%s'" % result["shape"] if re.search(r"[:,#]", result["shape"]) else result["shape"]),
        ("run", "testing/gpu-entries.py %s" % result["entry"]),
        ("date", date),
        ("toolchain", "'%s'" % result["toolchain"]),
        ("n", result["n"]),
    ]
    text = "\n    ".join("%s: %s" % row for row in rows)
    return "  - %s\n" % text


def main(paths):
    date = time.strftime("%Y-%m-%d", time.gmtime())
    lines = [json.loads(line) for path in paths for line in open(path) if line.startswith("{")]
    for result in lines:
        path = os.path.join(KNOWLEDGE, result["entry"] + ".md")
        if result["entry"] in NO_EVIDENCE:
            print("left out: %s (%s)" % (result["entry"], NO_EVIDENCE[result["entry"]]))
            continue
        if not result["agrees"] or not os.path.exists(path):
            print("left out: %s (error %s)" % (result["entry"], result["error"]))
            continue
        text = open(path).read()
        head, body = text[4:].split("\n---\n", 1)
        head += "\n"
        own = re.compile(r"  - metric: time_us\n(?:    .*\n)*?    run: testing/gpu-entries.py .*\n(?:    .*\n)*")
        head = re.sub(r"^evidence:\n(?=\S|\Z)", "", own.sub("", head), flags=re.M)
        made = evidence(result, date)
        if re.search(r"^evidence:\n", head, re.M):
            head = re.sub(r"^evidence:\n((?:  .*\n)*)", lambda m: m.group(0) + made, head, count=1, flags=re.M)
        else:
            place = re.search(r"^(?:interactions|date):", head, re.M).start()
            head = head[:place] + "evidence:\n" + made + head[place:]
        open(path, "w").write("---\n" + head + "---\n" + body)
        print("%-28s %s" % (result["entry"], result["ratio"]))


if __name__ == "__main__":
    main(sys.argv[1:])
