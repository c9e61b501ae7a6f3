#!/usr/bin/env python3
"""Prints the compilation database of a build in which files are compiled in batches, as if each was compiled alone.

tidy_database.py BUILD

A file's options are those of its batch. BUILD/compile_commands.json names only the batches, and clang-tidy would
guess the options of what is in one from some file with a like name, which may be of another library.
"""
import json
import os
import re
import sys


def files_of(entry, root):
    """What `entry` compiles: the files that a batch includes, or the file itself."""
    if "/unity/" not in entry["file"]:
        return [entry["file"]]
    with open(entry["file"], encoding="utf-8") as batch:
        return [os.path.join(root, name) for name in re.findall(r'^#include "([^"]+)"', batch.read(), re.MULTILINE)]


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with open(os.path.join(sys.argv[1], "compile_commands.json"), encoding="utf-8") as database:
        entries = json.load(database)
    json.dump([{"directory": entry["directory"], "file": path,
                "command": entry["command"].replace(entry["file"], path)}
               for entry in entries for path in files_of(entry, root)], sys.stdout, indent=1)


if __name__ == "__main__":
    main()
