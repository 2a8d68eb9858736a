#!/usr/bin/env python3
"""Shows where the time of a campaign on a GPU went, from its log.

    testing/gpu-figures.py EVENTS.jsonl
"""

import json
import statistics
import sys


def figures(lines):
    """Rows of a table: what, and how much."""
    begin = lines[0]["at_ms"]
    rows, pairs, settings = [], {}, 0
    for line in lines:
        event = line["event"]
        if event["type"] == "proposed" and not any(name.startswith("to the") for name, _ in rows):
            rows.append(("to the first proposal", "%.1f s" % ((line["at_ms"] - begin) / 1000)))
        if event["type"] == "block_measured":
            # A block of two turns each, of workers that were there already.
            block = event["block"]["pairs"]
            if len(block) == 1 and block[0].get("turns", {}).get("n") == 2 and line["spent_ms"] < 200:
                # The calls of a turn are chosen for the incumbent.
                ratio = block[0]["parent"]["value"] / block[0]["candidate"]["value"]
                if not 0.5 < ratio < 2:
                    continue
                both = block[0]["parent"]["wall_us"] + block[0]["candidate"]["wall_us"]
                call = "of 100 us and more" if block[0]["parent"]["value"] >= 100 else "shorter"
                pairs.setdefault(call, []).append((line["spent_ms"] / 2, both / 1000))
        if event["type"] == "tuned":
            tried = event["tuned"]["settings"] - settings
            settings = event["tuned"]["settings"]
            if tried > 0:
                took = line["spent_ms"] / 1000 / tried
                rows.append(("a setting of the tuner, %d of them" % tried, "%.1f s" % took))
    for call, of_call in sorted(pairs.items()):
        took = statistics.median(took for took, _ in of_call)
        timed = statistics.median(timed for _, timed in of_call)
        rows.append(("a pair, kernels %s, %d of them" % (call, len(of_call)), "%.1f ms" % took))
        rows.append(("  of that in timed calls", "%.1f ms, %.0f%%" % (timed, 100 * timed / took)))
    rows.append(("all of it", "%.0f s" % ((lines[-1]["at_ms"] - begin) / 1000)))
    return rows


with open(sys.argv[1]) as log:
    for name, value in figures([json.loads(line) for line in log]):
        print("%-50s %s" % (name, value))
