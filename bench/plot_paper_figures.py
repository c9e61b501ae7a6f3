#!/usr/bin/env python3
"""Draws the results of paper_figures beside the paper's (SWARM, figures 5, 12 and 13), by gnuplot.

  build/release/bin/paper_figures --json RESULT.json
  bench/plot_paper_figures.py RESULT.json DIRECTORY     # figure5.png, figure12.png, figure13.png
"""

import json
import os
import subprocess
import sys

# Of the paper, in microseconds and percent.
MEDIANS = {"RAW": (1.9, 1.6), "swarm": (2.4, 3.1), "abd": (4.3, 4.9), "snapshot": (2.9, 8.5)}
SYSTEMS = [("RAW", "RAW", "#7f7f7f"), ("swarm", "swarm (SWARM-KV)", "#1f6f8b"),
           ("abd", "abd (DM-ABD)", "#b5651d"), ("snapshot", "snapshot (FUSEE)", "#7a4fa3")]
TWELVE = {"get": [14, 8, 78, 0], "update": [73, 7, 14, 6]}
THIRTEEN = {"A": [2, 11, 39, 99], "B": [23, 57, 86, 99]}
THIRTEEN_US = {"get": [3.1, 3.2, 3.3, 3.6], "update": [3.6, 3.9, 4.0, 4.3]}
LANES = ["1", "4", "16", "64"]

HEAD = """set terminal pngcairo size %d,%d font "DejaVu Sans,10" background "white"
set output "%s"
set border 3 lc rgb "#555555"
set tics nomirror
set grid ytics lc rgb "#dddddd" lt 1
"""


def block(name, rows):
    """Rows as a named data block."""
    return "$%s << EOD\n%s\nEOD\n" % (
        name, "\n".join(" ".join(str(cell) for cell in row) for row in rows))


def draw(text):
    subprocess.run(["gnuplot"], input=text, text=True, check=True)


def figure5(data, path):
    text = HEAD % (980, 430, path)
    for system, _, _ in SYSTEMS:
        for op in ("get", "update"):
            text += block("%s_%s" % (system, op), data[system]["B"][op]["cdf"])
    text += "set multiplot layout 1,2\nset yrange [0:100]\nset xlabel 'latency, us'\n"
    for place, (op, right) in enumerate((("get", 6), ("update", 12))):
        text += "set title '%s, YCSB B; dotted: medians of the paper'\n" % op
        text += "set xrange [1:%d]\nset key below\n" % right
        text += "set ylabel '%s'\nunset arrow\n" % ("percent of the operations" if not place else "")
        for system, _, color in SYSTEMS:
            at = MEDIANS[system][place]
            text += ("set arrow from %s,0 to %s,100 nohead lc rgb '%s' dt 3 lw 1.6\n"
                     % (at, at, color))
        text += "plot " + ", ".join(
            "$%s_%s using 1:2 with lines lw 2 lc rgb '%s' title '%s'" % (system, op, color, label)
            for system, label, color in SYSTEMS) + "\n"
    draw(text + "unset multiplot\n")


def shares(result):
    """Percent of one, two, three, four, and five round trips or more."""
    share = result["share"]
    return share[:4] + [share[4] + share[5]]


def figure12(data, path):
    text = HEAD % (980, 380, path)
    text += "set multiplot layout 1,2\nset xlabel '16 clients on one key, YCSB A'\nset style data histograms\nset style histogram rowstacked\n"
    text += "set style fill solid 0.9 noborder\nset boxwidth 0.6\nset yrange [0:100]\n"
    text += "set key outside right top reverse Left\n"
    colors = ["#1f6f8b", "#6fb1c4", "#e3c77b", "#d08b4b", "#a8443b"]
    for op in ("get", "update"):
        rows = [['"paper"'] + TWELVE[op] + [0],
                ['"swarm"'] + shares(data["swarm"]["16"][op]),
                ['"abd"'] + shares(data["abd"]["16"][op])]
        text += block(op, rows)
        text += "set title '%s%s'\n" % (op, " (paper: 3 or more in one)" if op == "get" else "")
        text += "set ylabel '%s'\n" % ("percent of the operations" if op == "get" else "")
        text += "plot " + ", ".join(
            "$%s using %d:xtic(1) lc rgb '%s' title '%s'"
            % (op, i + 2, colors[i], ["1 round trip", "2", "3", "4", "5 or more"][i])
            for i in range(5)) + "\n"
    draw(text + "unset multiplot\n")


def figure13(data, path):
    text = HEAD % (980, 380, path)
    text += "set multiplot layout 1,2\nset xrange [-0.5:3.5]\nset xlabel 'lanes of a register'\n"
    text += "set xtics (%s)\n" % ", ".join("'%s' %d" % (n, i) for i, n in enumerate(LANES))
    rows = []
    for i, lanes in enumerate(LANES):
        here = data[lanes]
        rows.append([i, here["A"]["update"]["share"][0], here["B"]["update"]["share"][0],
                     THIRTEEN["A"][i], THIRTEEN["B"][i],
                     here["B"]["get"]["us"]["p50"],
                     here["B"]["update"]["us"]["p50_of_one_round_trip"],
                     THIRTEEN_US["get"][i], THIRTEEN_US["update"][i]])
    text += block("rows", rows)
    text += "set style fill solid 0.9 noborder\nset boxwidth 0.3\nset key top left reverse Left\n"
    text += "set title 'updates in one round trip, 64 clients'\nset yrange [0:125]\n"
    text += "set ytics 0,20,100\nset ylabel 'percent of the updates'\n"
    text += ("plot $rows using ($1-0.16):2 with boxes lc rgb '#6fb1c4' title 'YCSB A', "
             "$rows using ($1+0.16):3 with boxes lc rgb '#1f6f8b' title 'YCSB B', "
             "$rows using ($1-0.16):4 with points pt 2 ps 1.6 lw 2 lc rgb '#a8443b' "
             "title 'the paper', "
             "$rows using ($1+0.16):5 with points pt 2 ps 1.6 lw 2 lc rgb '#a8443b' notitle\n")
    text += "set title 'medians, YCSB B, 64 clients'\nset yrange [0:6]\nset ytics autofreq\n"
    text += "set ylabel 'us'\n"
    text += ("plot $rows using 1:6 with linespoints pt 7 lw 2 lc rgb '#1f6f8b' title 'get', "
             "$rows using 1:7 with linespoints pt 5 lw 2 lc rgb '#b5651d' "
             "title 'update in one round trip', "
             "$rows using 1:8 with linespoints pt 6 dt 3 lw 2 lc rgb '#1f6f8b' "
             "title 'get, the paper', "
             "$rows using 1:9 with linespoints pt 4 dt 3 lw 2 lc rgb '#b5651d' "
             "title 'update, the paper'\n")
    draw(text + "unset multiplot\n")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as result:
        data = json.load(result)
    os.makedirs(sys.argv[2], exist_ok=True)
    for name, function in (("figure5", figure5), ("figure12", figure12), ("figure13", figure13)):
        if name in data:
            function(data[name], os.path.join(sys.argv[2], name + ".png"))


if __name__ == "__main__":
    main()
