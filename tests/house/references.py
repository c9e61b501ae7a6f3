"""References that name a page, a heading or a file: each must exist.

  PROTOCOLS, "The reserve"       a heading of client_core/PROTOCOLS.md, or the bold words that open
  PROTOCOLS.md, "Open blocks"    a paragraph or an item; more may follow: and "Compaction"
  docs/MASTER.md                 a path from the repository's root
  memory/orphan_blocks.h         the end of the path of some file; orphan_blocks.* is at least one
  [text](MASTER.md#forming)      in a page: a path from the page's folder, an anchor of that page

A number behind the name of a page names nothing, for headings have no numbers.
"""

import fnmatch
import os
import re

from source_text import Flow

_BARE = {"PROTOCOLS", "MEMORY_LAYOUT"}  # pages that comments name without ".md"
_PAGE = re.compile(r"(?<![\w/.])(?P<dir>(?:[\w.-]+/)*)(?P<name>[A-Z][A-Z_]+)(?P<md>\.md)?\b"
                   r"(?![\w*])"
                   r"(?:\]\([^)]*\))?"
                   r'(?:(?P<number>,?\s+\d+(?:\.\d+)*\b)|(?P<headings>,?\s+"[^"]+"'
                   r'(?:(?:,|,? and|,? or)\s+"[^"]+")*))?')
_HEADING = re.compile(r"^#+\s+(.*?)\s*$", re.M)
_OPENING = re.compile(r"^\s*(?:[-*]\s+|\d+\.\s+)?\*\*(.+?)\*\*", re.M | re.S)
_LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]*))?\)")
_LINK_TARGET = re.compile(r"\]\([^)\n]*\)")
_FENCE = re.compile(r"^```.*?^```", re.M | re.S)
_FILE = re.compile(r"(?<![\w/.<*$}{-])((?:[\w-]+/)*[a-z][\w-]+\.(?:cc|h|py|proto|toml|\*))"
                   r"(?!\.?[\w*/>{}-])")
_COMMENT = re.compile(r"^\s*(//|#|--)")
_INCLUDE = re.compile(r"^\s*#\s*include")
_SLUG = re.compile(r"[^\w\- ]")


def headings_of(text):
    """What a reference may name in a page."""
    names = set()
    for heading in _HEADING.findall(_FENCE.sub("", text)):
        names.add(heading)
        names.add(re.split(r": | \(", heading)[0])
    for opening in _OPENING.findall(text):
        names.add(" ".join(opening.split()).rstrip(".,:;"))
    return names


def anchors_of(text):
    return {_SLUG.sub("", heading.lower()).replace(" ", "-")
            for heading in _HEADING.findall(_FENCE.sub("", text))}


class References:
    """Checks the files of one tree. `paths` are all of its files."""

    def __init__(self, root, paths):
        self._root, self._paths = root, set(paths)
        self._names = {os.path.basename(path) for path in paths}
        self._pages = {}
        for path in sorted(paths):
            name = os.path.basename(path)
            if name.endswith(".md") and name != "README.md":
                self._pages.setdefault(name[:-len(".md")], path)
        self._headings = {}

    def _page(self, path):
        if path not in self._headings:
            with open(os.path.join(self._root, path), encoding="utf-8") as file:
                text = file.read()
            self._headings[path] = headings_of(text), anchors_of(text)
        return self._headings[path]

    def _resolve(self, path, folder, name):
        """The path of the page that a file at `path` calls folder + name, or None."""
        if not folder:
            if name != "README":
                return self._pages.get(name)
            folder = os.path.dirname(path)
        for base in ("", os.path.dirname(path)):
            found = os.path.normpath(os.path.join(base, folder, name + ".md"))
            if found in self._paths:
                return found
        return None

    def check(self, path, text):
        """Yields (line, what) for every reference of one file that names nothing."""
        is_page = path.endswith(".md")
        if is_page:
            text = _FENCE.sub(lambda found: "\n" * found.group(0).count("\n"), text)
        flow = Flow(_LINK_TARGET.sub(
            lambda found: "](" + " " * (len(found.group(0)) - 3) + ")", text))
        for found in _PAGE.finditer(flow.text):
            yield from self._check_page(path, flow, found)
        for number, line in enumerate(text.splitlines(), 1):
            if is_page:
                for target, anchor in _LINK.findall(line):
                    yield from self._check_link(path, number, target, anchor)
            if is_page or (_COMMENT.match(line) and not _INCLUDE.match(line)):
                for name in _FILE.findall(re.sub(r"\]\([^)]*\)", "]", line)):
                    if not self._has_file(name):
                        yield number, f"{name} is no file of ours"

    def _check_page(self, path, flow, found):
        name, folder = found.group("name"), found.group("dir")
        if not found.group("md") and (folder or name not in _BARE):
            return
        line = flow.line(found.start())
        page = self._resolve(path, folder, name)
        if page is None:
            if found.group("md"):
                yield line, f"there is no page {folder}{name}.md"
            return
        if found.group("number"):
            yield line, f"{name}.md has no numbered sections; name the heading"
        for heading in re.findall(r'"([^"]+)"', found.group("headings") or ""):
            if heading.rstrip(".,") not in self._page(page)[0]:
                yield line, f'{name}.md has no heading "{heading}"'

    def _check_link(self, path, line, target, anchor):
        page = os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path
        if not os.path.exists(os.path.join(self._root, page)):
            yield line, f"the link to {target} leads nowhere"
        elif anchor and page.endswith(".md") and anchor not in self._page(page)[1]:
            yield line, f"{page} has no anchor #{anchor}"

    def _has_file(self, name):
        if name.endswith(".*"):
            return any(fnmatch.fnmatch("/" + path, "*/" + name) for path in self._paths)
        if "/" not in name:
            return name in self._names
        return name in self._paths or any(path.endswith("/" + name) for path in self._paths)
