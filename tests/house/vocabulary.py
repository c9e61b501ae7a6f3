"""Words that the house has replaced: one word for each thing, so that a reader can search for it.

Only words are here that a pattern tells reliably: `hold` as a noun, but not the verb; `AtOnce` and
`Slowly` at the end of the name of an operation, but not "at once" in a sentence.
"""

import re

from source_text import Lines

# A row per old word: a string that stands in it, its pattern, the word, and the new word.
OLD_WORDS = [
    ("old", r"\b(?:[Aa]|[Tt]he|[Ee]ach|[Ee]very|[Nn]o|[Aa]nother) hold\b|\bunder hold\b"
            r"|\bholds? of (?:all|slots|everything)\b|\bViewHold\b",
     "hold", "quiesce"),
    ("resence", r"(?<![Ii]n the )\bpresences?_?\b|\bPresence(?![a-z])|[a-z]Presence(?![a-z])",
     "presence", "in-flight guard"),
    ("oor", r"\bdoors?_?\b|Doors?(?![a-z])", "door", "mailbox"),
    ("state", r"\bestates?_?\b|Estates?(?![a-z])", "estate", "orphan inventory"),
    ("side", r"(?:\b[Ll]eav(?:e|es|ing)|\b[Ll]eft)(?: (?:it|them|a node|the node|nodes|[A-Z]))? "
             r"aside\b|\b(?:Leave|Left|leave_|left_|leaves_)[aA]side",
     "leave aside", "evict, readmit"),
    ("AtOnce", r"\b(?:Try)?(?:Get|Set|Read|Write|Delete|Ping|Echo|Apply)AtOnce\b",
     "AtOnce", "fast path"),
    ("_at_once", r"\b(?:get|set|read|write|delete|safe_guess|snapshot)_at_once\b",
     "at_once", "fast path"),
    ("Slowly", r"\b(?:Get|Set|Read|Write|Delete)Slowly\b", "Slowly", "slow path"),
    ("Turn", r"\bMemoryBudget::Turn\b|\bclass Turn\b", "turn", "ticket"),
    ("books", r"\bbooks\b", "books", "accounting"),
    ("body", r"(?<![\w-])(?:[Nn]obody|[Ss]omebody)\b", "nobody, somebody",
     "name the process or thread"),
    ("o many", r"\b[Ss]o many\b", "so many", "tell the number, or what limits it"),
    ("h", r"\b(?:he|him|his)\b", "he", "a process is \"it\""),
]
OLD_WORDS = [(hint, re.compile(pattern), old, new) for hint, pattern, old, new in OLD_WORDS]

# Words that begin a comment without a subject.
FIRST_WORDS = re.compile(r"(what|whether|of)\b", re.I)

_FENCE = re.compile(r"^```.*?^```", re.M | re.S)
_CODE = re.compile(r"`[^`\n]*`")


def check_words(text):
    """Yields (line, what) for every old word of a source file."""
    lines = Lines(text)
    for hint, pattern, old, new in OLD_WORDS:
        if hint in text:
            for found in pattern.finditer(text):
                yield lines.of(found.start()), f'"{old}" is an old word: {new}'


def check_page_words(text):
    """The same for a page, of which code and names in `` are left out."""
    text = _FENCE.sub(lambda found: "\n" * found.group(0).count("\n"), text)
    return check_words(_CODE.sub("``", text))


def check_comment_start(line, words):
    """Yields (line, what) if a comment that starts with these words has no subject."""
    found = FIRST_WORDS.match(words)
    if found:
        yield line, f'a comment does not begin with "{found.group(1)}": subject, verb, object'
