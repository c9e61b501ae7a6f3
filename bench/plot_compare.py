#!/usr/bin/env python3
"""Draws the results of compare_redis.py as one SVG: rates above, CPU time per request below.

Used by compare_redis.py; by hand: bench/plot_compare.py RESULT.json > picture.svg
"""

import json
import sys
from xml.sax.saxutils import escape

COLORS = {"redis": "#b5651d", "agent": "#1f6f8b", "null": "#b8b8b8"}
LABELS = {"redis": "redis-server", "agent": "onetrip-agent", "null": "null server (floor)"}
PANEL_WIDTH, PANEL_HEIGHT = 460, 230
LEFT, TOP, GAP_X, GAP_Y = 70, 70, 80, 70


def nice_ceiling(value):
    """The next round number at or above value, for the axis."""
    power = 1.0
    while power * 10 <= value:
        power *= 10
    while power > value:
        power /= 10
    for step in (1, 1.5, 2, 3, 4, 5, 6, 8, 10):
        if step * power >= value:
            return step * power
    return 10 * power


def format_axis(value):
    if value >= 1e6:
        return "%.3gM" % (value / 1e6)
    return "%.3gk" % (value / 1e3) if value >= 1e3 else "%.3g" % value


def text(x, y, content, size=11, anchor="middle", weight="normal"):
    return ('<text x="%.1f" y="%.1f" font-size="%d" text-anchor="%s" font-weight="%s">%s</text>'
            % (x, y, size, anchor, weight, escape(content)))


def panel(x, y, title, rows, value_of, spread_of, ratio):
    """One bar chart: a group of bars per test, one bar per server, whiskers from min to max.

    `ratio` names the row's agent/redis figure that is printed below the group.
    """
    parts = [text(x, y - 12, title, 13, "start", "bold")]
    tallest = max([spread_of(f)[1] for row in rows for f in row["servers"].values()] + [1e-9])
    top = nice_ceiling(tallest)
    for tick in range(5):
        level = y + PANEL_HEIGHT * (1 - tick / 4)
        parts.append('<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#ddd"/>'
                     % (x, level, x + PANEL_WIDTH, level))
        parts.append(text(x - 6, level + 4, format_axis(top * tick / 4), 10, "end"))
    group_width = PANEL_WIDTH / len(rows)
    for index, row in enumerate(rows):
        bar_width = group_width * 0.8 / len(row["servers"])
        for place, (name, figures) in enumerate(row["servers"].items()):
            left = x + group_width * (index + 0.1) + bar_width * place
            height = PANEL_HEIGHT * value_of(figures) / top
            parts.append('<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>'
                         % (left, y + PANEL_HEIGHT - height, bar_width * 0.92, height,
                            COLORS[name]))
            low, high = (y + PANEL_HEIGHT * (1 - v / top) for v in spread_of(figures))
            middle = left + bar_width * 0.46
            parts.append('<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#222"/>'
                         % (middle, low, middle, high))
        center = x + group_width * (index + 0.5)
        parts.append(text(center, y + PANEL_HEIGHT + 16, row["test"].upper()))
        if ratio in row:
            parts.append(text(center, y + PANEL_HEIGHT + 30, "%.2fx" % row[ratio], 10))
    return parts


def cpu_spread(figures):
    values = [run["cpu_us_per_request"] for run in figures["runs"]]
    return min(values), max(values)


def render(machine, table):
    """The whole picture as SVG text. `machine` and `table` as compare_redis.py writes them."""
    depths = sorted({row["pipeline"] for row in table})
    width = LEFT + len(depths) * (PANEL_WIDTH + GAP_X)
    height = TOP + 2 * (PANEL_HEIGHT + GAP_Y) + 30
    parts = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" '
             'font-family="sans-serif">' % (width, height),
             '<rect width="100%" height="100%" fill="white"/>']
    for place, name in enumerate(LABELS):
        parts.append('<rect x="%d" y="14" width="12" height="12" fill="%s"/>'
                     % (LEFT + 170 * place, COLORS[name]))
        parts.append(text(LEFT + 170 * place + 18, 24, LABELS[name], 12, "start"))
    for column, depth in enumerate(depths):
        rows = [row for row in table if row["pipeline"] == depth]
        x = LEFT + column * (PANEL_WIDTH + GAP_X)
        parts += panel(x, TOP, "requests per second, -P %d" % depth, rows,
                       lambda f: f["median_rps"], lambda f: (f["min_rps"], f["max_rps"]),
                       "ratio_rps")
        parts += panel(x, TOP + PANEL_HEIGHT + GAP_Y, "CPU us per request, -P %d" % depth, rows,
                       lambda f: f["cpu_us_per_request"], cpu_spread, "ratio_cpu")
    parts.append(text(LEFT, height - 12, "%s, %d cores; %s; redis-benchmark --threads %d -c %d "
                      "-d %d -r %d, medians of %d rounds; agent/redis below each group" % (
                          machine["cpu"], machine["cores"], machine["redis"],
                          machine["client_threads"], machine["clients"], machine["value_bytes"],
                          machine["keys"], machine["rounds"]), 10, "start"))
    parts.append("</svg>\n")
    return "\n".join(parts)


if __name__ == "__main__":
    with open(sys.argv[1]) as source:
        data = json.load(source)
    sys.stdout.write(render(data["machine"], data["results"]))
