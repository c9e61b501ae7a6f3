#!/usr/bin/env python3
"""Draws the results of compare_redis.py by gnuplot as one SVG: rates above, CPU time per request
below, a column per depth of the pipeline; whiskers from the smallest to the largest round.

Used by compare_redis.py; by hand: bench/plot_compare.py RESULT.json > picture.svg
"""

import json
import subprocess
import sys

SERVERS = [("redis", "redis-server", "#b5651d"), ("agent", "onetrip-agent", "#1f6f8b"),
           ("null", "null server (floor)", "#b8b8b8")]
HEAD = """set terminal svg size %d,%d font "sans-serif,12" background "white"
set multiplot layout 2,%d columnsfirst margins 0.07,0.98,0.16,0.88 spacing 0.07,0.18 \\
  title "%s" font ",11"
set border 3 lc rgb "#555555"
set tics nomirror
set grid ytics lc rgb "#dddddd" lt 1
set style data histograms
set style histogram errorbars gap 1 lw 1
set style fill solid 1.0 noborder
set errorbars front linecolor rgb "#222222"
set key at screen 0.5,0.03 center bottom horizontal
set yrange [0:*]
"""


def cpu_spread(figures):
    values = [run["cpu_us_per_request"] for run in figures["runs"]]
    return min(values), max(values)


def panel(name, title, axis_format, rows, value_of, spread_of, ratio):
    """One chart: a group of bars per test, a bar per server. `ratio` is the row's agent/redis
    figure that stands below its group."""
    lines = []
    shown = [one for one in SERVERS if any(one[0] in row["servers"] for row in rows)]
    for row in rows:
        below = "\\n%.2fx" % row[ratio] if ratio in row else ""
        cells = ['"%s%s"' % (row["test"].upper(), below)]
        for server, _, _ in shown:
            figures = row["servers"].get(server)
            cells += ["%g" % v for v in (value_of(figures), *spread_of(figures))] if figures \
                else ["NaN"] * 3
        lines.append(" ".join(cells))
    bars = ", ".join(
        '$%s using %d:%d:%d:xtic(1) title "%s" lc rgb "%s"' % (
            name, 3 * i + 2, 3 * i + 3, 3 * i + 4, label, color)
        for i, (_, label, color) in enumerate(shown))
    return '$%s << EOD\n%s\nEOD\nset title "%s"\nset format y "%s"\nplot %s\n' % (
        name, "\n".join(lines), title, axis_format, bars)


def render(machine, table):
    """The whole picture as SVG text. `machine` and `table` as compare_redis.py writes them."""
    depths = sorted({row["pipeline"] for row in table})
    title = "%s, %d cores; %s; redis-benchmark --threads %d -c %d -d %d -r %d, medians of %d " \
        "rounds;\\nwhiskers: smallest and largest round; below each group: agent/redis" % (
            machine["cpu"], machine["cores"], machine["redis"], machine["client_threads"],
            machine["clients"], machine["value_bytes"], machine["keys"], machine["rounds"])
    script = HEAD % (80 + 540 * len(depths), 680, len(depths), title.replace('"', "'"))
    for depth in depths:
        rows = [row for row in table if row["pipeline"] == depth]
        script += panel("rates%d" % depth, "requests per second, -P %d" % depth, "%.1s%c", rows,
                        lambda f: f["median_rps"], lambda f: (f["min_rps"], f["max_rps"]),
                        "ratio_rps")
        script += panel("cpu%d" % depth, "CPU us per request, -P %d" % depth, "%g", rows,
                        lambda f: f["cpu_us_per_request"], cpu_spread, "ratio_cpu")
    return subprocess.run(["gnuplot"], input=script + "unset multiplot\n", text=True, check=True,
                          capture_output=True).stdout


if __name__ == "__main__":
    with open(sys.argv[1]) as source:
        data = json.load(source)
    sys.stdout.write(render(data["machine"], data["results"]))
