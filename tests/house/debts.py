"""What the house owes: rules that older code does not keep yet, each with the number it has today.

A line of debts.txt is "KIND KEY NUMBER". A number may only shrink: more than is listed fails, and
so does a line that is not needed any more. `house_check.py debts` prints the list as it is now.
"""

import collections

# One finding of a check that may have debts. `count` is what is compared: a size, or 1 for each
# violation, which are added up.
Finding = collections.namedtuple("Finding", "kind key count path line what")

ADDED_UP = ("words", "references")


def totals(findings):
    """{(kind, key): number}."""
    numbers = {}
    for found in findings:
        at = found.kind, found.key
        if found.kind in ADDED_UP:
            numbers[at] = numbers.get(at, 0) + found.count
        else:
            numbers[at] = max(numbers.get(at, 0), found.count)
    return numbers


HEADER = """\
# Rules of the house that older code does not keep yet, and the number that each file, function or
# class has today. Numbers only shrink; a line that is not needed any more has to go. Written by:
#   python3 -B tests/house/house_check.py debts --root . > tests/house/debts.txt
"""


def render(findings):
    """The text of debts.txt that lists just these findings."""
    return HEADER + "".join(f"{kind} {key} {number}\n"
                            for (kind, key), number in sorted(totals(findings).items()))


def parse(text):
    """({(kind, key): (number, line)}, [(line, what)])."""
    listed, problems = {}, []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 3 or not words[2].isdigit():
            problems.append((number, 'a debt is "KIND KEY NUMBER"'))
        elif tuple(words[:2]) in listed:
            problems.append((number, "is listed twice"))
        else:
            listed[tuple(words[:2])] = int(words[2]), number
    return listed, problems


def unpaid(findings, text, path):
    """Yields (path, line, what) for every finding that no debt covers, and every needless debt."""
    listed, problems = parse(text)
    for line, what in problems:
        yield path, line, what
    numbers = totals(findings)
    for found in findings:
        at = found.kind, found.key
        owed = listed.get(at, (0, 0))[0]
        if numbers[at] <= owed:
            continue
        more = f" ({path} allows {owed}, here are {numbers[at]})" if owed else ""
        yield found.path, found.line, found.what + more
    for (kind, key), (number, line) in listed.items():
        if (kind, key) not in numbers:
            yield path, line, f"{kind} {key} {number} is paid; take the line out"
