"""Reads C++ well enough to count: text without comments and literals, functions, classes.

No parser. It matches braces over text in which comments, strings and preprocessor lines are blank,
and tells what a brace opens by what stands before it.
"""

import bisect
import re

_BLANKED = re.compile(
    r"//[^\n]*|/\*.*?\*/"
    r'|R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"'
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|(?<![0-9a-zA-Z_])'(?:[^'\\\n]|\\.)+'"
    r"|^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.S | re.M)
_LITERAL = re.compile(r"[\"']")


def without_comments(text):
    """text with comments, literals and preprocessor lines blank, of the same length and lines."""
    def blank(found):
        matched = found.group(0)
        inner = re.sub(r"[^\n]", " ", matched)
        # A literal stays an operand, so that what follows it is not taken for the start of one.
        return "0" + inner[1:] if _LITERAL.match(matched.lstrip("R")) else inner
    return _BLANKED.sub(blank, text)


class Lines:
    """The line number of an offset."""

    def __init__(self, text):
        self._ends = [found.start() for found in re.finditer("\n", text)]

    def of(self, offset):
        return bisect.bisect_left(self._ends, offset) + 1


_NAMESPACE = re.compile(r'^(inline\s+)?namespace\b|^extern\s+0?\s*$')
_CLASS = re.compile(r"(?:^|\s)(?:class|struct|union)\s+(?:\[\[.*?\]\]\s*|[A-Z_]+\(.*?\)\s*)*"
                    r"(?P<name>[\w:]+(?:<.*>)?)?[^()=]*$", re.S)
_INITIALIZER = re.compile(r"(?:[:,]\s*)[\w:]+(?:<[^()]*>)?\s*$", re.S)
_FUNCTION_NAME = re.compile(r"((?:[\w~]+(?:<[^()]*?>)?::)*(?:operator\s*(?:\(\)|[^\s(\w]+|[\w:]+)"
                            r"|~?\w+))\s*\(", re.S)
_TEMPLATE = re.compile(r"^template\s*<")
_ALL_CAPS = re.compile(r"^[A-Z][A-Z0-9]*_[A-Z0-9_]+$")


def _without_template(head):
    """head behind its leading template<...>."""
    while _TEMPLATE.match(head):
        depth = 0
        for position, char in enumerate(head):
            depth += (char == "<") - (char == ">")
            if char == ">" and depth == 0:
                head = head[position + 1:].lstrip()
                break
        else:
            return head
    return head


def _without_angles(text):
    """text with what stands in <...> gone, as far as it looks like arguments of a template."""
    text = re.sub(r"operator\s*(<=>|<<|>>|<=|>=|<|>|->)", "operator_", text)
    text = text.replace("->", "  ")
    before = None
    while before != text:
        before = text
        text = re.sub(r"(?<=\w)\s*<[^<>;{}]*>", "", text)
    return text


def _function_name(head):
    for found in _FUNCTION_NAME.finditer(_without_angles(head)):
        name = re.sub(r"\s+", "", found.group(1))
        if not _ALL_CAPS.match(name) and name not in ("decltype", "alignas", "requires", "noexcept",
                                                      "explicit"):
            return name
    return None


class Function:
    def __init__(self, name, line, lines):
        self.name, self.line, self.lines = name, line, lines


class Class:
    def __init__(self, name, line, methods):
        self.name, self.line, self.methods = name, line, methods


def _opens(head, scope):
    """What a brace behind head opens, in a scope of that kind: (kind, name)."""
    head = _without_template(re.sub(r"\b(public|private|protected)\s*:(?!:)", " ", head).strip())
    if _NAMESPACE.match(head):
        return "namespace", ""
    if re.search(r"(?:^|\s)enum\b", head):
        return "other", ""
    found = _CLASS.search(head)
    if found:
        return "class", (found.group("name") or "").split("<")[0]
    if scope in ("namespace", "class") and "(" in head and not re.search(
            r"(?<![=!<>])=(?!=)", re.sub(r"operator\s*=+|\(.*\)", "", _without_angles(head),
                                         flags=re.S)):
        behind = head[head.rindex(")") + 1:] if ")" in head else ""
        if re.search(r"\)\s*(noexcept\s*)?:(?!:)", head) and _INITIALIZER.search(head) and \
                not re.search(r"->\s*[\w:]+\s*$", behind):
            return "initializer", ""
        name = _function_name(head)
        if name:
            return "function", name
    return "other", ""


def _is_method(member):
    """Says if a member of a class, up to its ';' or body, declares a function that has code."""
    member = _without_template(member.strip())
    if re.search(r"=\s*(default|delete)\s*$", member):
        return False
    if re.match(r"(using|typedef|friend|static_assert|enum|class|struct|union)\b", member):
        return False
    member = re.sub(r"\[\[.*?\]\]", " ", member, flags=re.S)
    plain = _without_angles(member)
    # ABSL_GUARDED_BY(mutex_)
    plain = re.sub(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\s*\([^()]*\)", " ", plain)
    plain = re.sub(r"\b(alignas|decltype|explicit)\s*\([^()]*\)", " ", plain)
    at = plain.find("(")
    if at < 0 or re.match(r"\(\s*[*&]", plain[at:]):
        return False
    before = re.sub(r"operator\s*(\(\s*\)|[^\s\w(]+)", "operator_", plain[:at + 2])
    return "=" not in before.split("(")[0]


def scan(text):
    """(functions with bodies, classes with bodies) of one file, in order of their ends."""
    plain = without_comments(text)
    lines = Lines(plain)
    functions, classes = [], []
    stack = [["namespace", "", 0, 0, []]]  # kind, name, start of the head, offset of '{', members
    head = 0
    depth = 0  # of parentheses, in the innermost scope
    depths = []
    for found in re.finditer(r"[{}();]", plain):
        char, at = found.group(0), found.start()
        top = stack[-1]
        if char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
        elif char == ";":
            if depth <= 0:
                if top[0] == "class":
                    top[4].append(plain[head:at])
                head, depth = at + 1, 0
        elif char == "{":
            kind, name = ("other", "") if depth > 0 else _opens(plain[head:at], top[0])
            if kind in ("function", "class") and top[0] == "class" and top[1]:
                name = f"{top[1]}::{name}"
            stack.append([kind, name, head, at, []])
            depths.append(depth)
            depth = 0
            if kind in ("namespace", "class", "function"):
                head = at + 1
            elif top[0] not in ("namespace", "class"):
                head = at + 1
        elif len(stack) > 1:
            kind, name, start, opened, members = stack.pop()
            depth = depths.pop()
            if kind == "function":
                functions.append(Function(name, lines.of(opened),
                                          lines.of(at) - lines.of(opened) + 1))
                if stack[-1][0] == "class":
                    stack[-1][4].append(plain[start:opened])
                head = at + 1
            elif kind == "class":
                methods = sum(_is_method(re.sub(r"\b(public|private|protected)\s*:(?!:)", " ", m))
                              for m in members)
                classes.append(Class(name, lines.of(opened), methods))
                head = at + 1
            elif kind == "namespace":
                head = at + 1
            elif stack[-1][0] not in ("namespace", "class"):
                head = at + 1
    return functions, classes


# What begins a line of a comment, and what a script's or a page's line has instead.
_MARKER = re.compile(r"^\s*(//+|#+(?!\w)|\*|>)?\s?")


class Flow:
    """The lines of a file as running text, without the marks of comments."""

    def __init__(self, text):
        self._starts, parts, length = [], [], 0
        for line in text.splitlines():
            line = _MARKER.sub("", line, count=1).rstrip()
            self._starts.append(length)
            parts.append(line)
            length += len(line) + 1
        self.text = " ".join(parts)

    def line(self, offset):
        return bisect.bisect_right(self._starts, offset)


def comment_starts(text):
    """Yields (line, words) of every comment of a C++ file, but not of its further lines."""
    plain = _BLANKED.sub(lambda found: found.group(0) if found.group(0).startswith("//")
                         else re.sub(r"[^\n]", "0", found.group(0)), text)
    before = False
    for number, line in enumerate(plain.splitlines(), 1):
        code, mark, words = line.partition("//")
        if mark and (code.strip() or not before):
            yield number, words.strip()
        before = bool(mark)
