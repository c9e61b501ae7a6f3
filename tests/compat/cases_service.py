"""Hand-written streams over the commands by which people look at a server and run it."""

from steps import Raw, Sleep, on


def client_cases():
    yield "CLIENT PAUSE, UNPAUSE and UNBLOCK", [
        "CLIENT PAUSE", "CLIENT PAUSE abc", "CLIENT PAUSE -1", "CLIENT PAUSE 1 BOGUS",
        "CLIENT PAUSE 1 WRITE x", "CLIENT UNPAUSE", "CLIENT UNPAUSE x", "CLIENT PAUSE 30 ALL",
        "PING", "CLIENT PAUSE 9223372036854775807", "SET k v", "CLIENT PAUSE 0",
        "CLIENT PAUSE 100000 WRITE", "PING", "GET k",
        on(1, "CLIENT UNPAUSE"), "SET k v", "GET k", "CLIENT PAUSE 50 write", "SET k w", "GET k",
        "CLIENT PAUSE 99999999999999999999", "CLIENT UNBLOCK", "CLIENT UNBLOCK 999999",
        "CLIENT UNBLOCK 999999 TIMEOUT", "CLIENT UNBLOCK 999999 error", "CLIENT UNBLOCK 1 BOGUS",
        "CLIENT UNBLOCK abc", "CLIENT UNBLOCK 1 ERROR x"]
    yield "CLIENT GETREDIR and TRACKINGINFO", [
        "CLIENT GETREDIR", "CLIENT GETREDIR x", "CLIENT TRACKINGINFO", "CLIENT TRACKINGINFO x"]
    yield "CLIENT NO-TOUCH and MAXAGE", [
        "CLIENT NO-TOUCH ON", "CLIENT NO-TOUCH off", "CLIENT KILL MAXAGE 100000"]


def error_cases():
    yield "errors that repeat an argument with a NUL byte", [
        *[tuple(call.split(" ")) for call in [
            "EXPIRE k 10 a\0b", "FUNCTION LIST a\0b", "HELLO 2 a\0b", "LATENCY GRAPH a\0b",
            "ACL CAT a\0b", "CONFIG SET a\0b 1", "CLIENT KILL TYPE a\0b", "CLIENT KILL USER a\0b",
            "CLIENT LIST TYPE a\0b", "DEBUG a\0b", "MEMORY a\0b", "A\0B x\0y"]],
        "PFADD h a", ("PFDEBUG", "a\0b", "h")]


def observation_cases():
    yield "SLOWLOG", [
        "CONFIG SET slowlog-log-slower-than 0 slowlog-max-len 128", "SLOWLOG RESET", "SLOWLOG",
        "SLOWLOG BOGUS", "SLOWLOG GET abc", "SLOWLOG GET -2", "SLOWLOG GET 1 2", "SLOWLOG LEN x",
        "SLOWLOG RESET", "PING", "SET k v", ("SET", "long", b"x" * 200),
        ("MGET",) + tuple("k%d" % i for i in range(40)), "SLOWLOG LEN", "SLOWLOG GET 0",
        "SLOWLOG GET 3", "SLOWLOG GET -1", "SLOWLOG GET", "MULTI", "GET k", "EXEC",
        "SLOWLOG GET 3", "AUTH default word", "HELLO 2 AUTH default hush", "SLOWLOG GET 3",
        "CONFIG SET slowlog-max-len 2", "PING", "PING", "PING", "SLOWLOG LEN",
        "CONFIG SET slowlog-log-slower-than -1", "SLOWLOG RESET", "PING", "SLOWLOG LEN",
        "CONFIG SET slowlog-log-slower-than 10000 slowlog-max-len 128"]
    yield "LATENCY without samples", [
        "LATENCY", "LATENCY BOGUS", "LATENCY LATEST", "LATENCY LATEST x", "LATENCY HISTORY",
        "LATENCY HISTORY command", "LATENCY GRAPH command", "LATENCY RESET", "LATENCY RESET a b",
        "LATENCY DOCTOR", "LATENCY HISTOGRAM nosuch", "CONFIG SET latency-monitor-threshold 1000",
        "LATENCY DOCTOR", "CONFIG SET latency-monitor-threshold 0"]
    yield "LATENCY with samples", [
        "CONFIG SET latency-monitor-threshold 20", "DEBUG SLEEP 0.03", "LATENCY HISTORY command",
        "LATENCY LATEST", "LATENCY RESET command", "LATENCY LATEST",
        "CONFIG SET latency-monitor-threshold 0"]
    yield "MONITOR", [
        "MONITOR x", "MULTI", "MONITOR", "EXEC", on(1, "PING"), "MONITOR", on(1, "SELECT 3"),
        Raw(b""), on(1, ("SET", "k", b"a\"b\\c\n\r\t\x07\x08\x00\xff")), Raw(b""),
        on(1, "CONFIG GET save"), on(1, "NOSUCH"), on(1, "GET"), Raw(b""),
        on(1, "MULTI"), on(1, "GET k"), on(1, "EXEC"), Raw(b""), on(1, "AUTH a b"), Raw(b""),
        Raw(b"PING\r\n"), Raw(b"GET k\r\nGET\r\nDBSIZE\r\n"), Raw(b"RESET\r\n"), on(1, "PING"), Raw(b""), "PING"]
    yield "DEBUG", [
        "DEBUG", "DEBUG BOGUS", "DEBUG SLEEP 0", "DEBUG SLEEP 0.01", "DEBUG SLEEP",
        "DEBUG JMAP", "DEBUG SET-ACTIVE-EXPIRE 0", "DEBUG SET-ACTIVE-EXPIRE 1", "DEBUG OBJECT no",
        "SET k v", "DEBUG RELOAD", "DEBUG RELOAD x", "DEBUG RELOAD merge", "GET k",
        ("DEBUG", "ERROR", "MYWORD text")] + [
            "DEBUG PROTOCOL " + kind for kind in (
                "string", "integer", "double", "null", "array", "set", "map", "verbatim",
                "bignum", "true", "false", "bogus", "push")]


def service_cases():
    yield "COMMAND INFO of service commands", [
        "COMMAND INFO " + name for name in (
            "role save bgrewriteaof lastsave shutdown wait lolwut debug monitor", "bgsave",
            "slowlog|len slowlog|reset slowlog|help", "latency|latest latency|graph latency|help",
            "latency|history latency|reset latency|doctor latency|histogram",
            "function|stats function|flush function|dump function|kill function|help",
            "function|list function|delete", "cluster|info cluster|nodes cluster|keyslot",
            "cluster|setslot cluster|reset cluster|bumpepoch cluster|help",
            "acl|whoami acl|users acl|cat acl|help", "client|pause client|unpause",
            "client|unblock client|getredir client|trackinginfo")]
    yield "WAIT", ["WAIT", "WAIT abc 0", "WAIT 0 abc", "WAIT 0 -1", "WAIT -1 0", "SET k v",
                   "WAIT 0 0", "WAIT 1 10"]
    yield "ROLE and saving", [
        "ROLE", "ROLE x", "SAVE x", "BGSAVE BOGUS", "BGSAVE SCHEDULE x", "LASTSAVE", "LASTSAVE x",
        "BGREWRITEAOF x", "SAVE", "LASTSAVE", "CONFIG SET appendonly no",
        "CONFIG SET appendonly yes", "CONFIG SET appendonly no",
        ("CONFIG", "SET", "save", ""), ("CONFIG", "SET", "save", "900 1"), ("CONFIG", "SET", "save", "")]
    yield "SHUTDOWN that does not", [
        "SHUTDOWN ABORT", "SHUTDOWN BOGUS", "SHUTDOWN SAVE NOSAVE", "SHUTDOWN ABORT NOW",
        "SHUTDOWN NOW BOGUS", "MULTI", "SHUTDOWN", "SAVE", "EXEC", "PING"]
    yield "LOLWUT", ["LOLWUT", "LOLWUT VERSION abc"]
    yield "CLUSTER", [
        "CLUSTER", "CLUSTER INFO", "CLUSTER NODES", "CLUSTER SLOTS", "CLUSTER SHARDS",
        "CLUSTER MYID", "CLUSTER KEYSLOT k", "CLUSTER KEYSLOT", "CLUSTER NODES x", "CLUSTER HELP",
        "CLUSTER BOGUS", "CLUSTER COUNTKEYSINSLOT 1", "cluster reset hard"]
    yield "FUNCTION without libraries", [
        "FUNCTION", "FUNCTION BOGUS", "FUNCTION LIST", "FUNCTION LIST WITHCODE",
        "FUNCTION LIST WITHCODE WITHCODE", "FUNCTION LIST LIBRARYNAME x LIBRARYNAME y",
        "FUNCTION LIST WITHCODE LIBRARYNAME WITHCODE WITHCODE",
        "FUNCTION LIST LIBRARYNAME x", "FUNCTION LIST LIBRARYNAME", "FUNCTION LIST BOGUS",
        "FUNCTION LIST WITHCODE LIBRARYNAME x", "FUNCTION STATS", "FUNCTION STATS x",
        "FUNCTION FLUSH", "FUNCTION FLUSH ASYNC", "FUNCTION FLUSH sync", "FUNCTION FLUSH BOGUS",
        "FUNCTION FLUSH SYNC x", "FUNCTION DUMP", "FUNCTION DUMP x", "FUNCTION KILL",
        "FUNCTION DELETE x", "FUNCTION DELETE"]
    yield "ACL", [
        "ACL", "ACL BOGUS", "ACL WHOAMI", "ACL WHOAMI x", "ACL USERS", "ACL CAT bogus",
        "ACL CAT", "ACL CAT transaction", "ACL CAT a b", "ACL CAT set", "ACL CAT sortedset", "ACL CAT list",
        "ACL CAT hash", "ACL CAT geo", "ACL CAT stream", "ACL CAT pubsub", "ACL CAT blocking",
        "ACL CAT scripting"]


def cases():
    for family in (client_cases, error_cases, observation_cases, service_cases):
        yield from family()
