#!/usr/bin/env python3
"""Checks the rules of the house that a compiler does not.

  house_check.py layout  --root DIR
      who includes whom, file lengths, header guards, forbidden names and words, views that are
      used after a wait; functions and classes that are too long, references that name nothing, old
      words, as far as debts.txt does not list them
  house_check.py debts   --root DIR
      prints what debts.txt has to list today
  house_check.py headers --root DIR --compiler CXX [--include DIR]... [--build DIR]
      every header compiles alone (those left out that a source file includes first); in DIR, through
      ccache if there is one

Prints one line per violation, "path:line: what and what to do", and exits with 1 if there is any.
"""

import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile

import debts
import references
import source_text
import vocabulary

LINES_MAX = 600
# Of what is shipped; longer ones that there are already are debts.
PRODUCTION_LINES_MAX = 500
FUNCTION_LINES_MAX = 70
CLASS_METHODS_MAX = 60
DEBTS = "tests/house/debts.txt"

# What each folder may include beside itself: the folders to its left in the order of the layers.
_BASE = ["client_core/base"]
_CORO = _BASE + ["client_core/coro"]
_LAYOUT = _CORO + ["client_core/layout"]
_FABRIC_CLUSTER = _LAYOUT + ["client_core/fabric", "client_core/cluster"]
_MEMORY = _FABRIC_CLUSTER + ["client_core/tree", "client_core/memory"]
_REPLICATION = _MEMORY + ["client_core/replication"]
_INDEX = _REPLICATION + ["client_core/index"]
_STORE = ["client_core/store"]
_KV_CORE = _INDEX + _STORE + ["client_core/kv/core"]
_KV_FORMS = _KV_CORE + ["client_core/kv/forms"]
_KV_CHORES = _KV_FORMS + ["client_core/kv/chores"]
_KV = _KV_CHORES + ["client_core/kv"]
_REDIS_VALUES = _LAYOUT + ["client_core/tree", "client_core/fabric", "client_core/store", "redis_compat/protocol"]
_REDIS_DISPATCH = _KV + ["redis_compat/protocol", "redis_compat/values", "redis_compat"]
_REDIS_COMMANDS = _REDIS_DISPATCH + ["redis_compat/dispatch"]
# The families of commands, none of which knows another one.
_REDIS_FAMILIES = ["redis_compat/commands/" + family for family in
                   ["strings", "keys", "hyperloglog", "hashes", "lists", "sets", "sorted_sets", "geo", "sort",
                    "transactions", "connection", "server", "cluster"]]
_REDIS = _REDIS_COMMANDS + _REDIS_FAMILIES + ["redis_compat/commands"]
_FRONTEND = _REDIS + ["frontend/metrics", "frontend/storage"]
MAY_INCLUDE = {
    "client_core/base": [],
    "client_core/coro": _BASE,
    "client_core/layout": _CORO,
    "client_core/tree": _LAYOUT,
    "client_core/fabric": _LAYOUT,
    "client_core/cluster": _LAYOUT,
    "client_core/control": _LAYOUT + ["client_core/cluster"],
    "client_core/memory": _FABRIC_CLUSTER + ["client_core/tree"],
    "client_core/replication": _MEMORY,
    "client_core/index": _REPLICATION,
    "client_core/verbs": _LAYOUT + ["client_core/fabric"],
    "client_core/store": _LAYOUT + ["client_core/tree", "client_core/fabric"],
    "client_core/kv/core": _INDEX + _STORE,
    "client_core/kv/forms": _KV_CORE,
    "client_core/kv/chores": _KV_FORMS,
    "client_core/kv": _KV_CHORES,
    "redis_compat/protocol": _LAYOUT,
    "redis_compat/values": _REDIS_VALUES,
    "redis_compat": _REDIS_VALUES + ["redis_compat/values"],
    "redis_compat/dispatch": _REDIS_DISPATCH,
    **{family: _REDIS_COMMANDS for family in _REDIS_FAMILIES},
    "redis_compat/commands": _REDIS_COMMANDS + _REDIS_FAMILIES,
    "frontend/metrics": _REDIS_COMMANDS,
    "frontend/storage": _KV + ["client_core/control", "client_core/verbs"],
    "frontend": _FRONTEND,
    "frontend/admin": _FRONTEND + ["frontend"],
    "memnode": _FABRIC_CLUSTER + ["client_core/control", "client_core/verbs"],
    "master": _LAYOUT + ["client_core/cluster", "client_core/control"],
    "tool": _LAYOUT + ["client_core/cluster", "client_core/control"],
}
# The one place where agent, memory node and master meet.
JOINING_FILE = re.compile(r"^frontend/storage/embedded[^/]*$")
JOINED = ["memnode", "master"]
# Where the agent's process is put together.
AGENT_FILE = "frontend/main.cc"

# Libraries whose headers cost seconds per file, and the only files that may include them.
HEAVY = {
    "spdlog/": re.compile(r"^client_core/base/log\.cc$"),
    "CLI/": re.compile(r"_main\.cc$"),
    "grpc": re.compile(r"\.cc$"),
    "sqlite3": re.compile(r"\.cc$"),
}

UNIT_PREFIXES = ["base", "coro", "layout", "tree", "fabric", "cluster", "control", "master", "memnode",
                 "memory", "replication", "index", "kv", "resp", "redis", "frontend", "tool"]
GENERATED = ["client_core/base/version.h", "client_core/control/control.pb.h",
             "client_core/control/control.grpc.pb.h"]
NAMELESS = re.compile(r"(^|_)(util|utils|common|misc|helper|helpers)$")
SOURCE = re.compile(r"\.(h|cc|py|sh|cmake)$")
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')
# Spelled apart, so that this file passes its own check.
UNFINISHED = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")


def ours(folders, kept=()):
    """The folders to go into: neither a build's output, nor npm's packages, nor hidden ones."""
    return sorted(f for f in folders
                  if f in kept or f not in ("build", "node_modules") and f[0] != ".")


def source_files(root):
    """Paths below root, '/'-separated, of every source file that is ours."""
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = ours(folders, kept=(".ci",))
        for name in names:
            path = os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/")
            if SOURCE.search(name) or name == "CMakeLists.txt" or path.startswith(".ci/"):
                found.append(path)
    return sorted(found)


def page_files(root):
    """Paths below root of every page, and of every other file that a reference may name."""
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = ours(folders)
        for name in names:
            if name.endswith((".md", ".proto", ".toml", ".txt")) and name != "CMakeLists.txt":
                path = os.path.join(folder, name)
                found.append(os.path.relpath(path, root).replace(os.sep, "/"))
    return sorted(found)


def folder_of(path):
    """The innermost folder of MAY_INCLUDE that holds path, or None."""
    holding = [folder for folder in MAY_INCLUDE if path.startswith(folder + "/")]
    return max(holding, key=len, default=None)


def check_include(root, path, quote, target):
    """Says what is wrong with one #include of path, or returns None."""
    for prefix, allowed in HEAVY.items():
        if target.startswith(prefix) and not allowed.search(path):
            return f"<{target}> is heavy; include our own header in front of it"
    if quote == "<":
        return None
    if not os.path.isfile(os.path.join(root, target)) and target not in GENERATED:
        return f'"{target}" is no path from the repository\'s root'
    user, used = folder_of(path), folder_of(target)
    if user is None or used == user:
        return None
    if used is None:
        return f'{user} may not include "{target}", which belongs to no layer'
    if used in MAY_INCLUDE[user] or (used in JOINED and JOINING_FILE.match(path)):
        return None
    if path == AGENT_FILE and used == "frontend/admin":
        return None
    return f"{user} may not include {used}; move the code or turn the dependency round"


def check_header(path, text):
    """Yields (line, what) for rules of headers alone."""
    guard = "ONETRIP_" + re.sub(r"[/.]", "_", path).upper() + "_"
    if f"#ifndef {guard}\n#define {guard}\n" not in text:
        yield 1, f"the include guard must be {guard}"
    if NAMELESS.search(os.path.basename(path)[:-2]):
        yield 1, "name the header after what it holds"
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"\s*using\s+namespace\b", line):
            yield number, "no using-namespace in a header"


def check_views(lines):
    """Yields (line, what) where a reference to a worker's view is used after a wait: the view may
    have been replaced and freed meanwhile (WorkerContext::view)."""
    for begin, line in enumerate(lines):
        taken = re.match(r"( *)const View& (\w+) = .*\bview\(\);", line)
        if not taken:
            continue
        used = re.compile(rf"(?<![.\w>]){taken.group(2)}\b(?!\()")
        waited = False
        for number, later in enumerate(lines[begin + 1:], begin + 2):
            if later.strip() and not later.startswith(taken.group(1)):
                break
            if f"View& {taken.group(2)} =" in later:
                break
            if waited and used.search(later):
                yield number, f"take `{taken.group(2)}` anew after a wait: it may be freed"
                break
            waited |= "co_await" in later


def check_file(root, path):
    """Yields (line, what) for every violation in one file."""
    with open(os.path.join(root, path), encoding="utf-8") as file:
        text = file.read()
    lines = text.splitlines()
    if len(lines) > LINES_MAX:
        yield LINES_MAX, f"{len(lines)} lines; split it, {LINES_MAX} is the limit"
    for number, line in enumerate(lines, 1):
        if UNFINISHED.search(line):
            yield number, "finish it, or open an issue"
    if not path.endswith((".h", ".cc")):
        return
    for number, line in enumerate(lines, 1):
        include = INCLUDE.match(line)
        problem = include and check_include(root, path, include.group(1), include.group(2))
        if problem:
            yield number, problem
        if re.match(r"\s*#\s*define\s+(private|protected)\b", line):
            yield number, "tests reach in through TEST_ methods"
    yield from check_views(lines)
    if path.endswith(".h"):
        yield from check_header(path, text)
    unit = re.match(r"^tests/unit/([^/]+)\.cc$", path)
    if unit and not re.match(rf"^({'|'.join(UNIT_PREFIXES)})(_.*)?_test$", unit.group(1)):
        yield 1, "belongs to no test program; name it FOLDER_*_test.cc (see tests/CMakeLists.txt)"


def find_sizes(path, text):
    """Yields a Finding for every file, function and class of the product that is too long."""
    lines = text.count("\n")
    if lines > PRODUCTION_LINES_MAX:
        yield debts.Finding("file_lines", path, lines, path, PRODUCTION_LINES_MAX,
                            f"{lines} lines; split it, {PRODUCTION_LINES_MAX} is the limit")
    functions, classes = source_text.scan(text)
    for function in functions:
        if function.lines > FUNCTION_LINES_MAX:
            yield debts.Finding(
                "function_lines", f"{path}:{function.name}", function.lines, path, function.line,
                f"{function.name} has {function.lines} lines; {FUNCTION_LINES_MAX} is the limit")
    for item in classes:
        if item.methods > CLASS_METHODS_MAX:
            yield debts.Finding(
                "class_methods", f"{path}:{item.name}", item.methods, path, item.line,
                f"{item.name} has {item.methods} methods; {CLASS_METHODS_MAX} is the limit")


def find_words(path, text):
    """Yields a Finding for every word of a file that the house has replaced."""
    if path.startswith("tests/house/"):
        return
    found = list(vocabulary.check_page_words(text) if path.endswith(".md") else
                 vocabulary.check_words(text))
    if path.endswith((".h", ".cc")):
        for line, words in source_text.comment_starts(text):
            found += vocabulary.check_comment_start(line, words)
    for line, what in found:
        yield debts.Finding("words", path, 1, path, line, what)


def find_debts(root):
    """A Finding for each violation of the rules that may have debts."""
    sources = source_files(root)
    pages = page_files(root)
    checked = references.References(root, sources + pages)
    findings = []
    for path in sources + pages:
        with open(os.path.join(root, path), encoding="utf-8") as file:
            text = file.read()
        if folder_of(path) and path.endswith((".h", ".cc")):
            findings += find_sizes(path, text)
        findings += find_words(path, text)
        if not path.startswith("tests/house/"):
            findings += [debts.Finding("references", path, 1, path, line, what)
                         for line, what in checked.check(path, text)]
    return findings


def check_layout(root):
    violations = [f"{path}:{line}: {what}"
                  for path in source_files(root) for line, what in check_file(root, path)]
    listed = ""
    if os.path.isfile(os.path.join(root, DEBTS)):
        with open(os.path.join(root, DEBTS), encoding="utf-8") as file:
            listed = file.read()
    violations += [f"{path}:{line}: {what}"
                   for path, line, what in debts.unpaid(find_debts(root), listed, DEBTS)]
    return violations


def compile_header(root, header, compiler, includes, build):
    """The compiler's first complaint about a file that includes only header, or None."""
    source = os.path.join(build, header.replace("/", "_") + ".cc")
    with open(source, "w", encoding="utf-8") as file:
        file.write(f'#include "{header}"\n')
    cache = shutil.which("ccache")
    command = ([cache] if cache else []) + [compiler, "-std=c++20", "-Wall", "-Wextra", "-Werror"]
    command += [f"-I{folder}" for folder in [root] + includes]
    # Objects, for ccache keeps nothing else.
    command += ["-c", source, "-o", source[:-len("cc")] + "o"]
    environment = dict(os.environ, CCACHE_BASEDIR=root, CCACHE_NOHASHDIR="1")
    run = subprocess.run(command, text=True, capture_output=True, check=False, cwd=root,
                         env=environment)
    if run.returncode == 0:
        return None
    errors = [line for line in run.stderr.splitlines() if "error:" in line]
    return f"{header}:1: does not compile alone: {(errors or [run.stderr.strip()])[0]}"


def first_include(root, path):
    """What a source file includes before anything else, if that is a header of ours."""
    with open(os.path.join(root, path), encoding="utf-8") as file:
        for line in file:
            found = INCLUDE.match(line)
            if found:
                return found.group(2) if found.group(1) == '"' else None
    return None


def check_headers(root, compiler, includes, build=None):
    """Headers that a source file includes first compile alone as often as that file does."""
    if build is None:
        with tempfile.TemporaryDirectory() as folder:
            return check_headers(root, compiler, includes, folder)
    paths = list(source_files(root))
    built = {first_include(root, path) for path in paths if path.endswith(".cc")}
    headers = [path for path in paths if path.endswith(".h") and path not in built]
    os.makedirs(build, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        answers = pool.map(lambda h: compile_header(root, h, compiler, includes, build), headers)
        return [answer for answer in answers if answer]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("check", choices=["layout", "headers", "debts"])
    parser.add_argument("--root", required=True)
    parser.add_argument("--compiler", default="c++")
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--build")
    arguments = parser.parse_args()
    root = os.path.abspath(arguments.root)
    if arguments.check == "debts":
        print(debts.render(find_debts(root)), end="")
        return 0
    if arguments.check == "layout":
        violations = check_layout(root)
    else:
        violations = check_headers(root, arguments.compiler, arguments.include, arguments.build)
    for violation in violations:
        print(violation)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
