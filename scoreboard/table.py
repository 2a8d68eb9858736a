#!/usr/bin/env python3
"""Writes the table of README.md from results/*.json, between the two marks there."""

import json
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
BEGIN, END = "<!-- table -->\n", "<!-- end of table -->\n"
NAMES = ["eager", "compile", "max-autotune", "channels_last", "dense"]


def ms(value):
    return f"{value:.4f}" if value < 0.1 else f"{value:.3f}"


def cell(one):
    if one is None:
        return ""
    if "ms" not in one:
        return one.get("failure", "failed").split(":")[0]
    return ms(one["ms"][0])


def line(row):
    contenders = row["contenders"]
    ours, fastest = contenders["ours"], row["fastest_baseline"]
    cells = [row["task"], row["case"].replace(",", " "), row["dtype"]]
    for name in NAMES:
        text = cell(contenders.get(name))
        cells.append(f"**{text}**" if name == fastest else text)
    middle, low, high = ours["ms"]
    cells.append(f"{ms(middle)} ({ms(low)} to {ms(high)})")
    ratio, low, high = row["speedup"]
    cells.append(f"{ratio:.3f}x ({low:.3f} to {high:.3f})")
    cells.append(f"{100 * row['of_copy'][0]:.0f}%")
    cells.append(f"{ours['error']['largest']:.2g} ({contenders[fastest]['error']['largest']:.2g})")
    return "| " + " | ".join(cells) + " |"


def main():
    results = [json.loads(path.read_text()) for path in sorted((HERE / "results").glob("*.json"))]
    first = results[0]
    head = ["task", "case", "type", *NAMES, "ours (95%)", "over the fastest (95%)", "of a copy"]
    head.append("largest error: ours (fastest)")
    lines = [
        f"Measured on {', '.join(sorted({one['date'] for one in results}))}: {first['device']}, "
        f"driver {first['nvidia_smi'].split(', ')[1]}, PyTorch {first['torch']}, "
        f"Triton {first['triton']}, CUDA {first['cuda']}, cuDNN {first['cudnn']}. "
        "Times are in milliseconds; the fastest correct baseline is bold.",
        "",
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
    ]
    lines += [line(row) for one in results for row in one["rows"] if "speedup" in row]
    path = HERE / "README.md"
    text = path.read_text()
    before, _, rest = text.partition(BEGIN)
    path.write_text(before + BEGIN + "\n".join(lines) + "\n" + END + rest.partition(END)[2])


if __name__ == "__main__":
    main()
