#!/usr/bin/env python3
"""Writes docs/COMPATIBILITY.md from differences.toml; --check fails when it is out of date."""

import os
import sys

import rules

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TARGET = os.path.join(ROOT, "docs/COMPATIBILITY.md")

HEAD = """# Compatibility with Redis

<!-- Written by tests/compat/render_differences.py from tests/compat/differences.toml. -->

The agent's replies and error texts are those of Redis 7.0, byte for byte, in RESP2 and RESP3.
`tests/compat/run.py` sends the same streams - hand-written ones with the edges of every command,
random ones from seeds - to redis-server and to the agent and compares every reply. What may differ
is listed here; anything else that differs fails the tests.
"""


def cell(text):
    return " ".join(text.split()).replace("|", "\\|")


def table(heading, text, entries):
    """`entries` are pairs of a name and its reason."""
    lines = ["", "## " + heading, "", text, "", "| where | why |", "|---|---|"]
    lines += ["| %s | %s |" % (cell(name), cell(reason)) for name, reason in entries]
    return "\n".join(lines) + "\n"


def render():
    loaded = rules.load()
    by_kind = {kind: [(rule.name, rule.reason) for rule in loaded if rule.kind == kind]
               for kind in ("difference", "normalise", "tolerance")}
    out = HEAD
    if by_kind["difference"]:
        out += table("Differences on purpose", "Commands that answer otherwise than Redis.",
                     by_kind["difference"])
    out += table("Differences that replies do not show", "What else an application may notice.",
                 rules.statements())
    out += table("Values that no two servers share",
                 "Both replies are freed of these values, then compared.",
                 by_kind["normalise"] + by_kind["tolerance"])
    return out


def main():
    text = render()
    if "--check" in sys.argv[1:]:
        with open(TARGET) as current:
            if current.read() != text:
                print("docs/COMPATIBILITY.md is out of date; tests/compat/render_differences.py "
                      "writes it")
                return 1
        return 0
    with open(TARGET, "w") as out:
        out.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
