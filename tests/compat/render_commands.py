#!/usr/bin/env python3
"""Writes docs/COMMANDS.md: what becomes of every command of Redis 7.0; --check fails when the page,
or a statement of commands.toml, is out of date."""

import glob
import os
import re
import sys
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TARGET = os.path.join(ROOT, "docs/COMMANDS.md")

HEAD = """# Commands

<!-- Written by tests/compat/render_commands.py from the command table (redis_compat/commands),
     tests/compat/redis_commands.txt and tests/compat/commands.toml. -->

Every command of Redis 7.0, and what an agent does with it. What works answers as redis-server does,
byte for byte; [COMPATIBILITY.md](COMPATIBILITY.md) lists replies that may differ. Commands over
several keys are atomic for each key, not for all of them together.
"""


def table_rows():
    """Names in the command table."""
    names = set()
    for path in glob.glob(os.path.join(ROOT, "redis_compat/commands/*/*_rows.h")):
        with open(path) as source:
            names |= set(re.findall(r'\{\.name = "([^"]+)"', source.read()))
    return names


def redis_commands():
    """(group, name) of every command of redis-server 7.0."""
    with open(os.path.join(HERE, "redis_commands.txt")) as source:
        return [tuple(line.split()) for line in source if not line.startswith("#")]


class Statements:
    def __init__(self):
        with open(os.path.join(HERE, "commands.toml"), "rb") as source:
            data = tomllib.load(source)
        self.different, self.absent = data["different"], data["absent"]
        self.used = []

    def about(self, group, name, entries):
        for entry in entries:
            if (re.fullmatch(entry.get("command", ".*"), name)
                    and re.fullmatch(entry.get("group", ".*"), group)):
                self.used.append(entry)
                return entry
        return None

    def stale(self):
        return [entry.get("command", entry.get("group")) for entry in self.different + self.absent
                if entry not in self.used]


STATES = ("works", "works, with a difference", "not yet", "never")


def state_of(group, name, present, statements):
    if name in present:
        entry = statements.about(group, name, statements.different)
        if entry is None:
            return STATES[0], ""
        return STATES[3] if entry.get("kind") == "never" else STATES[1], entry["why"]
    entry = statements.about(group, name, statements.absent)
    if entry and entry["kind"] == "never":
        return STATES[3], entry["why"]
    return STATES[2], entry["why"] if entry else ""


def render():
    """The page, and the statements that are about no command."""
    present, statements = table_rows(), Statements()
    by_group = {}
    counts = dict.fromkeys(STATES, 0)
    commands = redis_commands()
    for group, name in commands:
        state, why = state_of(group, name, present, statements)
        counts[state] += 1
        by_group.setdefault(group, []).append((name, state, why))
    out = HEAD + "\n| | commands |\n|---|---|\n"
    out += "".join("| %s | %d |\n" % (state, counts[state]) for state in STATES)
    for group in sorted(by_group):
        out += "\n## %s\n\n| command | | |\n|---|---|---|\n" % group
        for name, state, why in sorted(by_group[group]):
            out += "| %s | %s | %s |\n" % (name.replace("|", " ").upper(), state,
                                            " ".join(why.split()).replace("|", "\\|"))
    later = sorted(present - {name for _, name in commands})
    out += "\n## Of later versions of Redis\n\n"
    out += ", ".join(name.replace("|", " ").upper() for name in later) + "\n"
    return out, statements.stale()


def main():
    text, stale = render()
    for command in stale:
        print("commands.toml: %r is about no command" % command)
    if "--check" in sys.argv[1:]:
        with open(TARGET) as current:
            if current.read() != text:
                print("docs/COMMANDS.md is out of date; tests/compat/render_commands.py writes it")
                return 1
        return 1 if stale else 0
    with open(TARGET, "w") as out:
        out.write(text)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
