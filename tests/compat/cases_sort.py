"""Hand-written and random streams of SORT and SORT_RO over lists, sets and sorted sets."""

import random

from steps import Batch, command

BIG = "9223372036854775807"
NUMBERS = ["3", "1", "2", "10", "-5", "1.5", "1e3", "-0", "0", "0x10", "inf", "-inf", "007"]
WORDS = ["b", "a", "B", "aa", "", "ab", "\xff", "10", "9", " x"]


def batches(steps, size=60):
    return [Batch(tuple(command(step) for step in steps[i:i + size]))
            for i in range(0, len(steps), size)]


def row_cases():
    for name in ("sort", "sort_ro"):
        yield "arity of " + name, [tuple([name] + ["1"] * count) for count in range(4)]
        yield "COMMAND INFO of " + name, [
            ("COMMAND", "INFO", name)] + [tuple(["COMMAND", verb, name] + call.split()) for verb in (
                "GETKEYS", "GETKEYSANDFLAGS") for call in (
                "", "k", "k STORE d", "k BY x STORE d", "k GET STORE STORE d", "k LIMIT 0 1 STORE d",
                "k LIMIT STORE a b", "k STORE a STORE b", "k STORE", "k by store d store e", "k store store",
                "k ALPHA what STORE d", "k GET", "k LIMIT 1")]


def option_cases():
    steps = ["SADD i1 3 1 2 10", "SORT i1 ALPHA DESC STORE l"]
    for options in (
            "", "ASC", "DESC", "desc asc", "ASC DESC", "ALPHA", "alpha DESC", "LIMIT 0 2", "LIMIT 1 2",
            "LIMIT 1 -1", "LIMIT -3 2", "LIMIT 0 0", "LIMIT 5 1", "LIMIT 4 1", "LIMIT 3 5", "LIMIT 0 -5",
            "LIMIT 2 " + BIG, "LIMIT " + BIG + " 1", "LIMIT x 1", "LIMIT 1 x", "LIMIT 1", "LIMIT",
            "LIMIT 0 1 LIMIT 1 2", "BY", "BY nosort", "BY nosort DESC", "BY nosort LIMIT 1 2",
            "BY nosort DESC LIMIT 1 2", "BY nosort DESC LIMIT 3 9", "BY nosort LIMIT 9 9",
            "BY nosort BY w_*", "BY w_* BY nosort", "GET", "GET #", "GET # GET #", "GET nothing",
            "GET # GET w_* GET nothing", "STORE", "STORE d", "what", "ALPHA what", "BY w_* what",
            "LIMIT 1 x STORE d", "STORE d LIMIT 0 0", "STORE d GET # GET w_*", "STORE d STORE e"):
        for name in ("SORT", "SORT_RO"):
            for key in ("i1", "l", "none"):
                steps.append(tuple((name + " " + key + " " + options).split()))
        steps += ["SORT d BY nosort", "TYPE d", "SORT e BY nosort", "SADD d x", "EXPIRE d 100"]
    yield "options of SORT", batches(steps)
    yield "SORT of what cannot be sorted", [
        "SET s v", "SORT s", "SORT s what", "SORT_RO s", "HSET h a 1", "SORT h", "SORT h STORE s",
        "GET s", "SORT s STORE s", "SORT none STORE s", "EXISTS s", "SADD i1 1", "SORT i1 STORE h",
        "TYPE h", "GET i1", "SORT h BY nosort"]
    yield "SORT STORE on its own key", [
        "SADD i1 3 1 2", "EXPIRE i1 100", "SORT i1 STORE i1", "TYPE i1", "TTL i1", "SORT i1 BY nosort",
        "SORT i1 DESC STORE i1", "SORT i1 BY nosort", "SORT i1 BY nosort DESC", "SORT i1 GET w_* STORE i1",
        "SORT i1 BY nosort", "SORT i1", "SORT i1 LIMIT 0 0 STORE i1", "EXISTS i1",
        "SORT i1 STORE i1", "EXISTS i1"]


def value_cases():
    # Not 1e400: behind a number out of range Redis takes others for such, too (it never clears errno).
    steps = []
    for value in NUMBERS + WORDS + ["nan", "1x", "- 1", "1 ", "+5", BIG + "0", "55\x00x"]:
        steps += [("DEL", "t"), ("SADD", "t", value, "5", "4"), "SORT t", "SORT t ALPHA", "SORT t DESC",
                  ("DEL", "n"), ("SET", "w_4", value), "SADD n 4 5", "SET w_5 4.5", "SORT n BY w_*",
                  "SORT n BY w_* ALPHA", "SORT n BY w_* ALPHA STORE d", "SORT d BY nosort",
                  "SORT n BY w_* STORE d", "SORT n GET w_* GET #", "SORT n GET w_* STORE d",
                  "SORT d BY nosort"]
    yield "what is a number", batches(steps)
    steps = [tuple(["SADD", "t"] + WORDS)]
    for options in ("ALPHA", "ALPHA DESC", "ALPHA LIMIT 2 3", "ALPHA STORE d", "ALPHA DESC STORE d"):
        steps += [tuple(("SORT t " + options).split()), "SORT d BY nosort"]
    yield "the order of words", steps
    yield "a NUL byte counts where the order is stored", [
        ("SADD", "t", "a\x00b", "a", "a\x00a", "aa"), "SORT t ALPHA STORE d", "SORT d BY nosort",
        "SORT t ALPHA DESC STORE d", "SORT d BY nosort", "SADD i1 1 2 3", ("SET", "w_1", "a\x00b"),
        "SET w_2 a", ("SET", "w_3", "a\x00a"), "SORT i1 BY w_* ALPHA STORE d", "SORT d BY nosort"]


def pattern_cases():
    setup = ["SADD i1 1 2 3 4", "SET w_1 40", "SET w_2 30", "SET w_3 20", "SET w_4 10", "SET w_1_x 1",
             "SET w_2_x 5", "SET w_3_x 3", "HSET h_1 f 3 g a", "HSET h_2 f 2 g b", "HSET h_3 f 1",
             ("HSET", "h_4", "f", "9", "", "empty"), "HSET h_1->f g odd", "SET h_2-> arrow",
             "HSET w->1 f hash", ("SET", "1", "bare"), "SADD w_s 1"]
    patterns = ["w_*", "w_*_x", "w_*_none", "h_*->f", "h_*->g", "h_*->none", "none_*->f", "w_*->f",
                "h_*->", "h_*", "*", "**", "w_**", "h_*->f->g", "w->*", "w->*->f", "->*", "#", "##",
                "#*", "nothing", "h_1->f", "h_*-", "h_*>f", "w_s*", ""]
    steps = list(setup)
    for pattern in patterns:
        for options in (["GET", pattern], ["GET", "#", "GET", pattern], ["BY", pattern],
                        ["BY", pattern, "ALPHA"], ["BY", pattern, "DESC"],
                        ["BY", pattern, "GET", pattern, "GET", "#", "LIMIT", "1", "2"],
                        ["GET", pattern, "STORE", "d"], ["BY", pattern, "STORE", "d"]):
            steps.append(tuple(["SORT", "i1"] + options))
            if "STORE" in options:
                steps.append("SORT d BY nosort")
            else:
                steps.append(tuple(["SORT_RO", "i1"] + options))
    yield "patterns of BY and GET", batches(steps)
    yield "a set that is stored without an order gets one", [
        "SADD t b a c", "SORT t BY nosort STORE d", "SORT d BY nosort", "SORT t BY nosort DESC STORE d",
        "SORT d BY nosort", "SORT t BY nosort LIMIT 1 1 GET # STORE d", "SORT d BY nosort"]
    yield "equal weights", [
        "SADD i1 5 3 4 1 2", "SORT i1 BY w_*", "SORT i1 BY w_* DESC", "SET w_3 1", "SET w_1 1",
        "SORT i1 BY w_*", "SORT i1 BY w_* DESC", "SORT i1 BY w_* LIMIT 1 2", "SORT i1 BY w_* ALPHA",
        "SORT i1 BY w_* ALPHA DESC"]
    yield "long values", [
        "SADD i1 1 2", ("SET", "w_1", "v" * 100000), ("SET", "w_2", "u" * 3000000), "SORT i1 GET w_*",
        "SORT i1 BY w_* ALPHA GET # GET w_*", "SORT i1 GET w_* STORE d", "SORT d ALPHA LIMIT 1 1"]


def transaction_cases():
    yield "SORT in transactions", [
        "SADD i1 3 1 2", "SET w_1 9", "MULTI", "SORT i1", "SORT i1 BY w_* GET w_*", "SORT i1 STORE d",
        "SORT d BY nosort DESC", "EXEC", "SORT d BY nosort"]


def list_cases():
    yield "SORT of a list", batches([
        "RPUSH l 3 1 2 10 1", "SORT l", "SORT l DESC", "SORT l ALPHA", "SORT l BY nosort",
        "SORT l BY nosort DESC", "SORT l BY nosort LIMIT 1 2", "SORT l BY nosort DESC LIMIT 1 2",
        "SORT l BY nosort DESC LIMIT 4 9", "SORT l BY nosort LIMIT 9 1", "SORT l BY w_*",
        "SET w_1 b", "SET w_2 a", "SORT l BY w_* ALPHA", "SORT l BY w_* ALPHA DESC",
        "SORT l GET # GET w_*", "SORT l STORE d", "LRANGE d 0 -1", "OBJECT ENCODING d",
        "SORT l BY nosort STORE l", "LRANGE l 0 -1", "SORT l DESC STORE l", "LRANGE l 0 -1",
        "RPUSH l x", "SORT l", "SORT l STORE d", "LRANGE d 0 -1", "SORT l ALPHA LIMIT 1 3"])


def sorted_set_cases():
    yield "SORT of a sorted set", batches([
        "ZADD z 5 1 4 2 3 10 2 3", "SORT z", "SORT z DESC", "SORT z ALPHA", "SORT z BY nosort",
        "SORT z BY nosort DESC", "SORT z BY nosort LIMIT 1 2", "SORT z BY nosort DESC LIMIT 1 2",
        "SORT z BY nosort LIMIT 9 1", "SORT z BY nosort DESC LIMIT 3 9", "SET w_1 b", "SET w_2 a",
        "SET w_3 c", "SET w_10 d", "SORT z BY w_* ALPHA", "SORT z BY w_* ALPHA DESC GET w_* GET #",
        "SORT z BY nosort STORE d", "LRANGE d 0 -1", "SORT z DESC STORE d", "LRANGE d 0 -1",
        "SORT z BY nosort GET # STORE z", "TYPE z", "LRANGE z 0 -1"])


def random_stream(seed):
    rng = random.Random(seed)
    pick = rng.choice
    numbers = [str(i) for i in range(rng.choice([5, 40, 300]))] + ["-7", "2.5"]
    steps = []
    for number in numbers:
        if rng.random() < 0.8:
            steps.append(("SET", "w_" + number, pick(numbers)))
        if rng.random() < 0.6:
            steps.append(("HSET", "h_" + number, "f", pick(numbers), "g", pick(WORDS)))
    for _ in range(120):
        key = pick(["t", "u", "d", "e"])
        options = []
        # Which of equal ones come first is chance, in a part of them.
        by = pick([None, None, "w_*", "h_*->f", "nosort" if key in "de" else None])
        options += ["BY", by] if by else []
        options += pick([[], ["DESC"]])
        options += [item for _ in range(pick([0, 0, 1, 2]))
                    for item in ("GET", pick(["#", "w_*", "h_*->g", "h_*->f"]))]
        options += pick([[], ["LIMIT", str(rng.randint(-1, 6)), str(rng.randint(-1, 9))]])
        options += ["ALPHA"] if by is None and rng.random() < 0.4 else []
        stored = pick([[], [], ["STORE", pick(["d", "e"])]])
        steps += [tuple(["SADD", pick(["t", "u"])] + [pick(numbers) for _ in range(pick([1, 3, 20]))]),
                  tuple(["SORT", key] + options + stored)]
        if stored:
            steps += ["SORT %s BY nosort" % stored[1], "TYPE " + stored[1]]
    return steps


def random_cases():
    for seed in range(10):
        yield "random sorting %d" % seed, batches(random_stream(seed), 25)


def cases():
    for make in (row_cases, option_cases, value_cases, pattern_cases, transaction_cases, list_cases,
                 sorted_set_cases, random_cases):
        yield from make()
