"""Hand-written streams over MULTI, EXEC, DISCARD, WATCH and UNWATCH."""

from steps import Raw, Sleep, batch, on


def queueing_cases():
    yield "COMMAND INFO of transactions", [
        "COMMAND INFO multi exec discard watch unwatch", "COMMAND GETKEYS WATCH a b"]
    yield "MULTI and EXEC", [
        "EXEC", "DISCARD", "UNWATCH", "MULTI", "EXEC", "MULTI", "SET k v", "GET k", "EXEC", "GET k",
        "MULTI", "PING", "PING x", "ECHO y", "EXEC", "MULTI", "INCR n", "INCR n", "INCR m", "EXEC",
        "MGET n m", "multi", "get n", "exec", "MULTI x", "EXEC x", "EXEC", "DISCARD x",
        "WATCH", "UNWATCH x"]
    yield "DISCARD drops the queue", [
        "SET k 1", "MULTI", "INCR k", "DISCARD", "GET k", "EXEC", "MULTI", "INCR k", "EXEC", "GET k",
        "MULTI", "NOSUCH", "DISCARD", "MULTI", "INCR k", "EXEC"]
    yield "what cannot be queued aborts", [
        "MULTI", "SET k v", "NOSUCH a b", "SET k w", "EXEC", "GET k", "MULTI", "SET k", "EXEC",
        "MULTI", "CLIENT NOSUCH", "PING", "EXEC", "MULTI", "EXEC x", "EXEC", "MULTI", "MULTI x",
        "EXEC", "MULTI", "WATCH", "EXEC", "EXEC"]
    yield "nested MULTI and WATCH inside are errors that abort nothing", [
        "MULTI", "MULTI", "SET k v", "EXEC", "MULTI", "WATCH k", "SET k w", "EXEC", "GET k"]
    yield "writes that change nothing do not touch watched keys", [
        "SET a 1", "WATCH a", on(1, "SETBIT a 1 0"), on(1, "BITFIELD a SET u8 0 49"),
        on(1, "BITFIELD a OVERFLOW FAIL INCRBY u8 0 300"), on(1, "BITFIELD a INCRBY u8 0 0"), "MULTI",
        "GET a", "EXEC", "WATCH a", on(1, "SETBIT a 1 1"), "MULTI", "GET a", "EXEC", "WATCH a",
        on(1, "BITFIELD a SET u8 8 0"), "MULTI", "GET a", "EXEC", "WATCH a", on(1, "SETBIT a 100 0"),
        "MULTI", "GET a", "EXEC", "WATCH none", on(1, "SETBIT none 3 0"), "MULTI", "GET none", "EXEC"]
    yield "errors while it runs stop nothing", [
        "SET s text", "MULTI", "INCR s", "SET t 1", "INCRBY t x", "INCR t", "SET s v EX 0",
        "SELECT 99", "EXEC", "MGET s t", "MULTI", "INCR s", "APPEND s x", "EXEC", "GET s",
        "MULTI", "INCR s", "EXEC"]
    yield "every kind of command inside", [
        "MULTI", "SELECT 3", "SET k three", "SELECT 0", "GET k", "CLIENT SETNAME me",
        "CLIENT GETNAME", "GET none", "FLUSHALL", "DBSIZE", "UNWATCH", "COMMAND INFO get",
        "CONFIG GET save", "EXEC", "GET k", "SELECT 3", "GET k"]
    yield "RESET and QUIT inside", [
        "MULTI", "SET k v", "RESET", "EXEC", "GET k", "MULTI", "SET k v", "QUIT", "PING",
        on(1, "GET k")]
    yield "a transaction ends with its connection", [
        on(1, "MULTI"), on(1, "SET k v"), on(1, "QUIT"), "GET k", "MULTI", "GET k", "EXEC"]
    yield "transactions in pipelines", [
        batch("MULTI", "SET k 1", "INCR k", "GET k", "EXEC", "GET k", "MULTI", "NOSUCH", "EXEC",
              "MULTI", "INCR k", "INCR other", "EXEC", "MULTI", "DISCARD", "EXEC", "PING"),
        Raw(b"MULTI\r\nSET a 'x y'\r\nGET a\r\nEXEC\r\n")]
    yield "CLIENT REPLY and transactions", [
        Raw(b"MULTI\r\nCLIENT REPLY SKIP\r\nPING\r\nEXEC\r\n"), "PING", "PING",
        Raw(b"CLIENT REPLY SKIP\r\nMULTI\r\nSET k v\r\nEXEC\r\n"), "GET k",
        Raw(b"CLIENT REPLY OFF\r\nMULTI\r\nSET k w\r\nEXEC\r\n"), "CLIENT REPLY ON", "GET k"]
    yield "CLIENT REPLY inside transactions", [
        batch("MULTI", "PING", "CLIENT REPLY SKIP", "PING", "EXEC"), "PING", "PING",
        Raw(b"MULTI\r\nPING\r\nCLIENT REPLY OFF\r\nPING\r\nEXEC\r\nPING\r\nCLIENT REPLY ON\r\n"),
        Raw(b"MULTI\r\nSET k 1\r\nCLIENT REPLY OFF\r\nINCR k\r\nCLIENT REPLY ON\r\nGET k\r\nEXEC\r\n"),
        "GET k"]
    yield "CLIENT REPLY and RESET", [
        Raw(b"CLIENT REPLY SKIP\r\nRESET\r\nPING\r\n"), Raw(b"CLIENT REPLY OFF\r\nRESET\r\nPING\r\n"),
        Raw(b"CLIENT REPLY OFF\r\nMONITOR\r\nPING\r\nRESET\r\nPING\r\n")]
    yield "CLIENT LIST shows a transaction", [
        Sleep(60), "CLIENT INFO", on(1, "MULTI"), on(1, "PING"), on(1, "PING"), "CLIENT LIST",
        on(1, "EXEC"), "CLIENT LIST"]
    yield "a thousand commands in a transaction", [
        batch(*(["MULTI"] + ["INCR k"] * 500 + ["APPEND k 0"] * 4 + ["GET k", "EXEC"])), "GET k",
        batch(*(["MULTI"] + ["INCR k%d" % (i % 7) for i in range(500)] + ["EXEC"])),
        "MGET k0 k1 k2"]


def one_key_cases():
    """Commands of one key run on a copy of it first."""
    states = ["DEL k", "SET k 10", "SET k text EX 1000", ("SET", "k", b"x" * 5000), "INCR k"]
    bodies = [
        ["GET k", "SET k 5", "GET k", "INCR k", "GET k"],
        ["SETNX k 7", "GET k", "DEL k", "GET k", "EXISTS k", "SETNX k 8", "GET k"],
        ["APPEND k abc", "STRLEN k", "SETRANGE k 2 zz", "GETRANGE k 0 8", "GETDEL k", "GET k"],
        ["EXPIRE k 100", "TTL k", "PERSIST k", "TTL k", "SET k v KEEPTTL", "TTL k"],
        ["SET k v PX 100000", "GETEX k PERSIST", "TTL k", "EXPIRE k -1", "GET k", "TTL k"],
        ["SET k v EXAT 1", "GET k", "EXISTS k k", "SET k 1", "DECRBY k 5", "GETSET k w", "GET k"],
        ["SETBIT k 100 1", "BITCOUNT k", "BITOP NOT k k", "BITFIELD k INCRBY u8 0 9", "TYPE k"],
        ["MGET k k", "MSET k 1 k 2", "UNLINK k k", "DEL k"],
        [("SET", "k", b"v" * (1 << 20)), ("APPEND", "k", "x"), "STRLEN k", "SET k small", "GET k"],
        ["GET k", "TTL k", "STRLEN k", "EXISTS k"],
    ]
    for number, body in enumerate(bodies):
        steps = []
        for state in states:
            steps += [state, "MULTI"] + body + ["EXEC", "GET k", "TTL k", "WATCH k", "MULTI"]
            steps += body + ["EXEC", "GET k", "TTL k", "DBSIZE"]
        yield "transaction on one key %d" % number, steps
    yield "one key of another database", [
        "SELECT 2", "SET k two", "MULTI", "APPEND k x", "GET k", "EXEC", "SELECT 0", "GET k",
        "SET k zero", "WATCH k", "SELECT 2", "MULTI", "SET k y", "EXEC", "SET k y", "SELECT 0",
        "GET k"]
    yield "a deadline that passes inside a watch", [
        "SET k v PX 40", "WATCH k", Sleep(80), "MULTI", "SET k w", "EXEC", "GET k",
        "SET k v PX 40", Sleep(80), "WATCH k", "MULTI", "SET k w", "EXEC", "GET k"]


def watch_cases():
    forms = {"set": ["SET k 1"], "counted": ["DEL k", "INCR k"], "missing": ["DEL k"]}
    changes = ["SET k 2", "INCR k", "APPEND k x", "SETRANGE k 0 9", "SETNX k 3", "MSET k 5",
               "SET k 1 EX 100", "SETBIT k 5 1", "GETSET k 1"]
    changes_of_there = ["DEL k", "EXPIRE k 100", "GETDEL k", "UNLINK k", "FLUSHALL", "FLUSHDB",
                        "EXPIRE k -1"]
    harmless = ["GET k", "EXISTS k", "TTL k", "SET other 1", "STRLEN k", "SET k 9 XX GET NX",
                "GETRANGE k 0 1", "PERSIST k", "TYPE k"]
    for form, steps in forms.items():
        for body in (["SET k mine", "GET k"], ["SET k mine", "PING"], ["PING"]):
            stream = []
            choices = changes + harmless + (changes_of_there if form != "missing" else ["DEL k"])
            for change in choices:
                stream += steps + ["WATCH k", on(1, change), "MULTI"] + body + ["EXEC", "GET k"]
            yield "WATCH of a key %s, then %s" % (form, " ".join(body)), stream
    for here in ("SET k 1", "INCR k", "DEL k"):
        for there in ("SET k 1", "SET k 2", "DEL k"):
            fill = ["DEL k", here, "SELECT 1", "DEL k", there, "SELECT 0"]
            yield "WATCH, then SWAPDB: %s here, %s there" % (here, there), fill + [
                "WATCH k", on(1, "SWAPDB 0 1"), "MULTI", "SET k mine", "EXEC", "GET k"] + fill + [
                "WATCH k", on(1, "SWAPDB 2 3"), "MULTI", "SET k mine", "PING", "EXEC",
                "GET k"] + fill + [
                "WATCH k", on(1, "SWAPDB 0 1"), on(1, "SWAPDB 0 1"), "MULTI", "SET k mine", "EXEC"]
    yield "WATCH and one's own changes", [
        "SET k 1", "WATCH k", "SET k 2", "MULTI", "GET k", "EXEC", "WATCH k", "GET k", "MULTI",
        "INCR k", "EXEC", "MULTI", "INCR k", "EXEC", "GET k"]
    yield "UNWATCH, DISCARD, EXEC and RESET forget watches", [
        step for end in (["UNWATCH"], ["MULTI", "DISCARD"], ["MULTI", "EXEC"], ["RESET"],
                         ["MULTI", "NOSUCH", "EXEC"], ["MULTI", "UNWATCH", "EXEC"])
        for step in ["SET k 1", "WATCH k"] + end + [
            on(1, "SET k 2"), "MULTI", "SET k 3", "EXEC", "GET k"]]
    yield "UNWATCH inside is too late", [
        "SET k 1", "WATCH k", on(1, "SET k 2"), "MULTI", "UNWATCH", "SET k 3", "EXEC", "GET k"]
    yield "WATCH of several keys", [
        "MSET a 1 b 2", "WATCH a b a nosuch", on(1, "SET b 3"), "MULTI", "SET a 9", "EXEC", "GET a",
        "WATCH a", "WATCH b", on(1, "SET a 4"), "MULTI", "SET b 9", "EXEC", "GET b",
        "WATCH a b nosuch", "MULTI", "SET a 5", "SET b 6", "EXEC", "MSET a 5 b 6",
        "WATCH a", on(1, "SET nosuch 1"), "MULTI", "SET nosuch 2", "EXEC", "SET nosuch 2",
        "WATCH a", "MULTI", "SET a 1", "DBSIZE", "EXEC", "SET a 1", "SET c 1", "WATCH a", "MULTI", "COPY a c",
        "EXEC", "DEL c", "WATCH a b", on(1, "SET b 4"), "UNWATCH", "MULTI", "SET a 2", "SET b 2", "EXEC",
        "MGET a b", "WATCH a b", "MULTI", "DISCARD", "MULTI", "MGET a b", "EXEC"]
    yield "WATCH of one key and commands without keys", [
        "SET k 1", "WATCH k", "MULTI", "PING", "INCR k", "ECHO x", "GET k", "EXEC", "WATCH k", "MULTI",
        "PING", "EXEC", "WATCH k", on(1, "SET k 7"), "MULTI", "CLIENT SETNAME me", "INCR k", "EXEC",
        "CLIENT GETNAME", "GET k", "WATCH k", "MULTI", "EXEC", "WATCH none", "MULTI", "EXEC"]
    yield "WATCH of one key and SELECT inside", [
        "WATCH k", "SELECT 3", "MULTI", "SELECT 0", "SELECT 99", "SET k 1", "SELECT 5", "EXEC",
        "GET k", "SELECT 0", "GET k", "SELECT 1", "WATCH k", "SELECT 0", on(1, "SELECT 1"),
        on(1, "SET k 2"), "MULTI", "SELECT 1", "SET k 3", "EXEC", "GET k", "SELECT 1", "GET k"]
    yield "watched and aborted", [
        "SET k 1", "WATCH k", on(1, "SET k 2"), "MULTI", "NOSUCH", "EXEC"]
    yield "the first WATCH of a key counts", [
        "SET k 1", "WATCH k", on(1, "SET k 2"), "WATCH k", "MULTI", "PING", "EXEC"]
    yield "WATCH across databases", [
        "SELECT 1", "SET k 1", "WATCH k", "SELECT 0", on(1, "SET k 5"), "MULTI", "SET k 2", "EXEC",
        "SET k 2", "SELECT 1", "WATCH k", on(1, "SELECT 1"), on(1, "SET k 3"), "SELECT 0", "MULTI",
        "SET k 9", "EXEC", "GET k"]
    yield "a watched key that came and went", [
        "DEL k", "WATCH k", on(1, "SET k 1"), on(1, "DEL k"), "MULTI", "SET k back", "EXEC"]


def cases():
    for family in (queueing_cases, one_key_cases, watch_cases):
        yield from family()
