#!/usr/bin/env python3
"""Puts source files into batches that are compiled as one file each.

unity_batches.py --root DIR --out DIR [--lines N] FILE...

Half of what a file costs is its headers, and the templates and inline functions of them that every file
instantiates again; files of one batch share both. A file whose own names (those in an anonymous namespace, such
as constants) are declared by another file, or by a header that another includes, goes to another batch than that
one. The batches are DIR/1.cc, DIR/2.cc and so on; they include their files by the path from the root, so that
checkouts in different places share what ccache keeps. Prints what to compile, one file a line: a batch, or a
source file itself that is alone in one.
"""
import argparse
import functools
import os
import re
import sys

# How many batches wait for more at a time: files that stand near each other by name include the same headers.
OPEN_BATCHES = 4

COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|R"\w*\(.*?\)\w*"|"(?:\\.|[^"\\\n])*"', re.DOTALL)
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
NO_NAME = re.compile(r"(?:TEST|TYPED_TEST|INSTANTIATE|FRIEND|namespace\b|static_assert\b|extern\b|template\b)")
TYPE = re.compile(r"(?:class|struct|union|enum(?:\s+(?:class|struct))?)\s+(?:alignas\(\w+\)\s+)?(\w+)")
ALIAS = re.compile(r"using\s+(\w+)\s*=")
MATCHER = re.compile(r"(?:MATCHER|ACTION)\w*\((\w+)")
MACRO = re.compile(r"#define\s+(\w+)")
# Up to what may follow a name that is declared; a member of a class of some header is none.
OTHER = re.compile(r"(?:[^(={;\[]*[^(={;\[:\w])?(\w+)\s*[(={;\[]")


def declared_names(text):
    """(all, own): the names that a file declares outside of functions and classes, and those of them that are in
    an anonymous namespace, as far as lines tell: clang-format begins these lines in the first column, and no
    others."""
    names = set()
    own = set()
    anonymous = False
    # The comment after a closing brace tells which namespace it ends.
    text = text.replace("}  // namespace\n", "}ANONYMOUS\n")
    for line in COMMENT_OR_TEXT.sub(" ", text).splitlines():
        if line.startswith(("namespace {", "}ANONYMOUS")):
            anonymous = line.startswith("n")
        found = MACRO.match(line)
        if not found and re.match(r"[A-Za-z_]", line) and not NO_NAME.match(line):
            found = TYPE.match(line) or ALIAS.match(line) or MATCHER.match(line)
            if not found and not line.startswith("using"):
                # What is between angle brackets has brackets and names of its own.
                flat, before = line, None
                while flat != before:
                    before, flat = flat, re.sub(r"<[^<>]*>", "", flat)
                found = OTHER.match(flat)
        if found:
            names.add(found.group(1))
            if anonymous or MACRO.match(line):
                own.add(found.group(1))
    return names, own


@functools.lru_cache(maxsize=None)
def read(path):
    with open(path, encoding="utf-8") as source:
        return source.read()


@functools.lru_cache(maxsize=None)
def header_names(root, path):
    return frozenset(declared_names(read(os.path.join(root, path)))[0])


def names_seen(root, text):
    """The names that the headers declare which a file of this text includes, and which these include."""
    headers = set()
    wanted = INCLUDE.findall(text)
    while wanted:
        header = wanted.pop()
        # What is not below the root is generated, and has names of no other kind.
        if header not in headers and os.path.exists(os.path.join(root, header)):
            headers.add(header)
            wanted += INCLUDE.findall(read(os.path.join(root, header)))
    return set().union(*(header_names(root, header) for header in headers))


class Batch:
    def __init__(self):
        self.files = []
        self.lines = 0
        self.names = set()
        self.own = set()
        self.seen = set()

    def has_room_for(self, other, limit):
        return (self.lines + other.lines <= limit and not self.names & other.names
                and not self.own & other.seen and not other.own & self.seen)

    def add(self, other):
        self.files += other.files
        self.lines += other.lines
        self.names |= other.names
        self.own |= other.own
        self.seen |= other.seen


def batches_of(root, files, limit):
    """Lists of files; each a batch."""
    batches = []
    for path in files:
        text = read(path)
        one = Batch()
        one.files = [path]
        one.lines = text.count("\n")
        one.names, one.own = declared_names(text)
        one.seen = names_seen(root, text)
        for batch in batches[-OPEN_BATCHES:]:
            if batch.has_room_for(one, limit):
                batch.add(one)
                break
        else:
            batches.append(one)
    return [batch.files for batch in batches]


def write_if_changed(path, text):
    if not os.path.exists(path) or read(path) != text:
        with open(path, "w", encoding="utf-8") as new:
            new.write(text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--lines", type=int, default=3000)
    parser.add_argument("files", nargs="+")
    arguments = parser.parse_args()

    os.makedirs(arguments.out, exist_ok=True)
    batches = batches_of(arguments.root, sorted(arguments.files), arguments.lines)
    for number, files in enumerate(batches, 1):
        if len(files) == 1:
            print(files[0])
            continue
        path = os.path.join(arguments.out, f"{number}.cc")
        write_if_changed(path, "".join(f'#include "{os.path.relpath(one, arguments.root)}"\n' for one in files))
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
