"""The rules of differences.toml: which replies may differ, how, and why.

Three kinds. A normalisation rewrites both replies before they are compared (process ids, clocks); a
tolerance lets one number differ a little; a difference accepts one pair of replies that differ on
purpose. Every rule counts its uses: one that was never used in a full run is stale.
"""

import os
import re
import tomllib

from resp_client import elements

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "differences.toml")


class Rule:
    def __init__(self, kind, entry):
        self.kind = kind
        self.name = entry["name"]
        self.reason = entry["reason"]
        self.command = re.compile(entry["command"], re.I | re.S)
        self.replace = [(re.compile(pattern, re.S), text)
                        for pattern, text in entry.get("replace", [])]
        self.unordered = entry.get("unordered", False)
        self.within = entry.get("within", 0)
        self.redis = re.compile(entry.get("redis", ""), re.S)
        self.agent = re.compile(entry.get("agent", ""), re.S)
        self.uses = 0

    def normalised(self, text):
        if self.unordered:
            text = sort_elements(text)
        for pattern, replacement in self.replace:
            text = pattern.sub(replacement, text)
        return text


def sort_elements(text):
    """An aggregate's elements in byte order, nested ones too, for sets and maps without order."""
    raw = text.encode("latin-1")
    try:
        return _sorted(raw).decode("latin-1")
    except (ValueError, IndexError, KeyError):
        return text


def _sorted(raw):
    parts = elements(raw)
    if parts is None:
        return raw
    head = raw[:raw.index(b"\r\n") + 2]
    return head + b"".join(sorted(_sorted(part) for part in parts))


def load(path=PATH):
    with open(path, "rb") as source:
        data = tomllib.load(source)
    return [Rule(kind, entry) for kind in ("normalise", "tolerance", "difference")
            for entry in data.get(kind, [])]


def statements(path=PATH):
    """(name, reason) of what is only documented."""
    with open(path, "rb") as source:
        data = tomllib.load(source)
    return [(entry["name"], entry["reason"]) for entry in data.get("statement", [])]


class Judge:
    """Decides whether two outcomes of one step are equal under the rules."""

    def __init__(self, rules):
        self.rules = rules

    def equal(self, title, redis, agent):
        rules = [rule for rule in self.rules if rule.command.search(title)]
        left, right = redis.raw.decode("latin-1"), agent.raw.decode("latin-1")
        same_end = (redis.closed, redis.silent) == (agent.closed, agent.silent)
        for rule in rules:
            if rule.kind == "normalise":
                rule.uses += 1
                left, right = rule.normalised(left), rule.normalised(right)
            elif rule.kind == "tolerance":
                rule.uses += 1
        if same_end and (left == right or self._tolerated(rules, left, right)):
            return True
        for rule in rules:
            if (rule.kind == "difference" and rule.redis.search(left)
                    and rule.agent.search(right)):
                rule.uses += 1
                return True
        return False

    @staticmethod
    def _tolerated(rules, left, right):
        """Integer replies of the same sign that differ by at most the rule's `within`."""
        numbers = [re.fullmatch(r":(\d+)\r\n", text) for text in (left, right)]
        if not all(numbers):
            return False
        gap = abs(int(numbers[0].group(1)) - int(numbers[1].group(1)))
        return any(rule.kind == "tolerance" and gap <= rule.within for rule in rules)

    def stale(self):
        return [rule for rule in self.rules if rule.uses == 0]
