"""Hand-written streams over connection and server commands, inline commands and broken protocol."""

from steps import Raw, Sleep, batch, on

MIB = 1 << 20


def connection_cases():
    yield "PING and ECHO", [
        "PING", "ping", "PiNg", "PING hello", ("PING", ""), ("PING", b"\x00\r\n"), "PING a b",
        "ECHO hello", ("ECHO", ""), ("ECHO", bytes(range(256))), "ECHO", "ECHO a b", "echo x"]
    yield "QUIT closes", ["PING", "QUIT", "PING"]
    yield "QUIT with arguments", ["QUIT now", "PING"]
    yield "QUIT inside a pipeline", [
        Raw(b"PING\r\nSET a 1\r\nQUIT\r\nSET a 2\r\nPING\r\n"), on(1, "GET a")]
    yield "RESET", [
        "SELECT 3", "CLIENT SETNAME me", "SET k three", "RESET", "CLIENT GETNAME", "GET k",
        "SELECT 3", "GET k", "RESET x", "CLIENT REPLY ON", "RESET"]
    yield "HELLO", [
        "HELLO", "HELLO 2", "HELLO 3", "HELLO", "HELLO 2", "HELLO 1", "HELLO 4", "HELLO 0",
        "HELLO -1", "HELLO abc", ("HELLO", ""), "HELLO 99999999999999999999", "HELLO 3 SETNAME",
        ("HELLO", "2", "SETNAME", "a b", "BOGUS"), ("HELLO", "2", "BOGUS", "SETNAME", "a b"),
        "HELLO 3 SETNAME me", "CLIENT GETNAME", ("HELLO", "3", "SETNAME", "a b"), "CLIENT GETNAME",
        ("HELLO", "2", "SETNAME", ""), "CLIENT GETNAME", "HELLO 3 AUTH", "HELLO 3 AUTH default",
        "HELLO 3 AUTH default x", "HELLO 3 AUTH nobody x", "HELLO 3 BOGUS",
        "HELLO 3 SETNAME a BOGUS", "hello 3 setname b", "HELLO 2 AUTH default x SETNAME c",
        "CLIENT GETNAME", "HELLO 3", "GET missing", "HELLO 2", "GET missing",
        "HELLO 3 SETNAME d AUTH default y", "CLIENT GETNAME", "HELLO 2 2"]
    yield "AUTH without a password set", [
        "AUTH x", "AUTH default x", "AUTH nobody x", "AUTH", "AUTH a b c", ("AUTH", ""), "PING"]
    yield "null, missing and flat maps by protocol", [
        "HELLO 2", "GET no", "MGET no no", "GETDEL no", "SET k v GET", "CONFIG GET save",
        "COMMAND INFO nosuch", "CONFIG GET nosuch", "HELLO 3", "GET no", "MGET no no", "GETDEL no2",
        "SET k2 v GET", "CONFIG GET save", "COMMAND INFO nosuch", "CONFIG GET nosuch"]


def client_cases():
    yield "CLIENT names", [
        "CLIENT GETNAME", "CLIENT SETNAME abc", "CLIENT GETNAME", ("CLIENT", "SETNAME", "a b"),
        ("CLIENT", "SETNAME", "a\n"), ("CLIENT", "SETNAME", b"\xff"), "CLIENT GETNAME",
        ("CLIENT", "SETNAME", ""), "CLIENT GETNAME", "CLIENT SETNAME", "CLIENT SETNAME a b",
        "CLIENT GETNAME x", ("CLIENT", "SETNAME", "!~"), "client getname", "Client SetName x",
        "CLIENT GETNAME"]
    yield "CLIENT ID, INFO and LIST", [
        Sleep(60), "CLIENT ID", "CLIENT ID x", "CLIENT INFO", "CLIENT INFO x", "CLIENT LIST",
        "CLIENT SETNAME me", "SELECT 2", "CLIENT INFO", "CLIENT LIST TYPE normal",
        "CLIENT LIST TYPE pubsub", "CLIENT LIST TYPE replica", "CLIENT LIST TYPE bogus",
        "CLIENT LIST TYPE", "CLIENT LIST ID", "CLIENT LIST ID abc", "CLIENT LIST ID 999999999",
        "CLIENT LIST ID 0", "CLIENT LIST ID -1", "CLIENT LIST bogus", "CLIENT LIST TYPE normal x",
        "CLIENT LIST ID 999999998 999999999"]
    yield "CLIENT KILL errors", [
        "CLIENT KILL", "CLIENT KILL 1.2.3.4:5", "CLIENT KILL abc", "CLIENT KILL ID",
        "CLIENT KILL ID abc", "CLIENT KILL ID 0", "CLIENT KILL ID -1", "CLIENT KILL ID 999999999",
        "CLIENT KILL TYPE bogus", "CLIENT KILL TYPE pubsub", "CLIENT KILL TYPE replica",
        "CLIENT KILL USER nobody", "CLIENT KILL USER default SKIPME", "CLIENT KILL SKIPME maybe",
        "CLIENT KILL BOGUS 1", "CLIENT KILL ADDR 1.2.3.4:5", "CLIENT KILL LADDR 1.2.3.4:5",
        "CLIENT KILL ID 1 TYPE", "CLIENT KILL ID 999999999 SKIPME yes",
        "CLIENT KILL ADDR 1.2.3.4:5 SKIPME no", "PING",
        "CLIENT KILL ID 999999999 ADDR 1.2.3.4:5 TYPE normal USER default SKIPME yes"]
    yield "CLIENT KILL of others", [
        Sleep(60), on(1, "PING"), on(2, "PING"), "CLIENT KILL TYPE pubsub", on(1, "PING"),
        "CLIENT KILL TYPE normal SKIPME yes", "PING", on(1, "PING"), on(2, "PING")]
    yield "CLIENT KILL of oneself", [Sleep(60), "PING", "CLIENT KILL TYPE normal SKIPME no", "PING"]
    yield "CLIENT REPLY", [
        "CLIENT REPLY", "CLIENT REPLY BOGUS", "CLIENT REPLY ON", "PING",
        Raw(b"CLIENT REPLY SKIP\r\nPING one\r\nPING two\r\n"),
        Raw(b"CLIENT REPLY OFF\r\nPING three\r\nSET k v\r\n"), Raw(b"PING four\r\n"),
        Raw(b"CLIENT REPLY SKIP\r\nPING five\r\nPING six\r\n"), Raw(b"NOSUCH\r\n"),
        "CLIENT REPLY ON", "PING seven", "GET k",
        Raw(b"CLIENT REPLY SKIP\r\nNOSUCH\r\nNOSUCH\r\nPING\r\n"),
        Raw(b"CLIENT REPLY SKIP\r\nCLIENT REPLY SKIP\r\nPING a\r\nPING b\r\n"),
        Raw(b"CLIENT REPLY SKIP\r\nCLIENT REPLY ON\r\nPING a\r\nPING b\r\n")]
    yield "CLIENT NO-EVICT and unknown subcommands", [
        "CLIENT NO-EVICT ON", "CLIENT NO-EVICT off", "CLIENT NO-EVICT", "CLIENT NO-EVICT maybe",
        "CLIENT NO-EVICT on off", "CLIENT", "CLIENT BOGUS", "CLIENT BOGUS a b", ("CLIENT", ""),
        "client bogus", "CLIENT HELP x", "PING"]
    yield "CLIENT SETINFO", [
        "CLIENT SETINFO LIB-NAME redis-py", "CLIENT SETINFO LIB-VER 1.2", "CLIENT SETINFO BOGUS x"]


def server_cases():
    yield "COMMAND", [
        "COMMAND COUNT", "COMMAND COUNT x", "COMMAND INFO get", "COMMAND INFO GET set nosuch",
        "COMMAND INFO nosuch", "COMMAND INFO mset", "COMMAND INFO mget", "COMMAND INFO del",
        "COMMAND INFO incr", "COMMAND INFO ping", "COMMAND INFO getrange", "COMMAND INFO setrange",
        "COMMAND INFO append", "COMMAND INFO ttl", "COMMAND INFO flushall", "COMMAND INFO hello",
        "COMMAND INFO select", "COMMAND INFO auth", "COMMAND INFO exists", "COMMAND INFO type",
        "COMMAND INFO incrbyfloat", "COMMAND INFO getdel", "COMMAND INFO getset",
        "COMMAND INFO setnx", "COMMAND INFO strlen", "COMMAND INFO echo", "COMMAND INFO dbsize",
        "COMMAND INFO time", "COMMAND INFO reset", "COMMAND INFO quit", "COMMAND INFO unlink",
        "COMMAND INFO info", "COMMAND INFO decr", "COMMAND INFO decrby", "COMMAND INFO incrby",
        "COMMAND INFO pttl", "COMMAND INFO flushdb", "COMMAND INFO config|get",
        "COMMAND INFO client|id", "COMMAND INFO config|nosuch", "COMMAND BOGUS", "COMMAND bogus x",
        "COMMAND HELP x"]
    yield "COMMAND GETKEYS", [
        "COMMAND GETKEYS", "COMMAND GETKEYS GET", "COMMAND GETKEYS GET a",
        "COMMAND GETKEYS get a b", "COMMAND GETKEYS MSET a b c d", "COMMAND GETKEYS MSET a b c",
        "COMMAND GETKEYS MGET a b c", "COMMAND GETKEYS DEL a b a", "COMMAND GETKEYS PING",
        "COMMAND GETKEYS NOSUCH a", "COMMAND GETKEYS SET a b EX 10", "COMMAND GETKEYS CONFIG GET a",
        "COMMAND GETKEYS CLIENT ID", "COMMAND GETKEYS SET", "COMMAND GETKEYSANDFLAGS GET a",
        "COMMAND GETKEYSANDFLAGS SET a b", "COMMAND GETKEYSANDFLAGS MSET a 1 b 2",
        "COMMAND GETKEYSANDFLAGS PING", "COMMAND GETKEYSANDFLAGS DEL a b",
        "COMMAND GETKEYSANDFLAGS INCR a", "COMMAND GETKEYSANDFLAGS NOSUCH",
        "COMMAND GETKEYSANDFLAGS"]
    yield "COMMAND LIST and DOCS", [
        "COMMAND LIST FILTERBY PATTERN getr*", "COMMAND LIST FILTERBY PATTERN nosuch*",
        "COMMAND LIST FILTERBY MODULE none", "COMMAND LIST FILTERBY",
        "COMMAND LIST FILTERBY BOGUS x", "COMMAND LIST FILTERBY ACLCAT nosuch",
        "COMMAND LIST BOGUS", "COMMAND LIST FILTERBY PATTERN", "COMMAND DOCS nosuch",
        "COMMAND LIST FILTERBY PATTERN a b"]
    yield "CONFIG", [
        "CONFIG", "CONFIG BOGUS", "CONFIG bogus x y", "CONFIG GET", "CONFIG GET nosuch",
        "CONFIG GET save", "CONFIG GET SAVE", "CONFIG GET appendonly", "CONFIG GET databases",
        "CONFIG GET timeout", "CONFIG GET maxclients", "CONFIG GET proto-max-bulk-len",
        "CONFIG GET client-query-buffer-limit", "CONFIG GET notify-keyspace-events",
        "CONFIG GET lua-time-limit", "CONFIG GET tracking-table-max-keys",
        "CONFIG GET sanitize-dump-payload", "CONFIG GET slowlog-max-len",
        "CONFIG GET slowlog-log-slower-than", "CONFIG GET latency-monitor-threshold",
        "CONFIG GET maxmemory-policy", "CONFIG GET hash-max-*", "CONFIG GET zset-max-*",
        "CONFIG GET set-max-*", "CONFIG GET list-*", "CONFIG GET hash-max-listpack-entries",
        "CONFIG GET nosuch save", "CONFIG GET save save", "CONFIG GET sav?", "CONFIG GET [st]ave",
        "CONFIG GET requirepass", "CONFIG GET slowlog-* timeout", "CONFIG GET tcp-keepalive",
        "CONFIG RESETSTAT", "CONFIG RESETSTAT x", "CONFIG HELP x"]
    yield "CONFIG SET", [
        "CONFIG SET", "CONFIG SET timeout", "CONFIG SET nosuch 1", "CONFIG SET timeout 10",
        "CONFIG GET timeout", "CONFIG SET timeout abc", "CONFIG SET timeout -1",
        "CONFIG GET timeout", "CONFIG SET timeout 0", "CONFIG SET databases 5",
        "CONFIG SET port abc", "CONFIG SET bind 127.0.0.1", "CONFIG SET activedefrag no",
        "CONFIG REWRITE", "CONFIG REWRITE x", "CONFIG GET *of", "CONFIG SET replicaof x",
        "CONFIG SET timeout 5 nosuch 1", "CONFIG GET timeout",
        "CONFIG SET timeout 1 timeout 2", "CONFIG SET TIMEOUT 0",
        "CONFIG SET slowlog-max-len 100 timeout 0", "CONFIG GET slowlog-max-len",
        "CONFIG SET slowlog-max-len 128", "CONFIG SET timeout 1 slowlog-max-len",
        "CONFIG SET maxmemory-policy bogus", "CONFIG SET notify-keyspace-events KEA",
        "CONFIG GET notify-keyspace-events", "CONFIG SET notify-keyspace-events bogus!",
        ("CONFIG", "SET", "notify-keyspace-events", ""), "CONFIG SET hash-max-listpack-entries 100",
        "CONFIG GET hash-max-listpack-entries", "CONFIG SET hash-max-ziplist-entries 128",
        "CONFIG GET hash-max-listpack-entries", "CONFIG SET appendonly maybe",
        "CONFIG SET latency-monitor-threshold 5", "CONFIG GET latency-monitor-threshold",
        "CONFIG SET latency-monitor-threshold 0", "CONFIG SET lua-time-limit 1000",
        "CONFIG SET lua-time-limit 5000", "CONFIG SET tracking-table-max-keys 10",
        "CONFIG SET tracking-table-max-keys 1000000"]
    yield "CONFIG SET at the edges", [
        "CONFIG SET maxmemory-samples 127", "CONFIG GET maxmemory-samples",
        "CONFIG SET maxmemory-samples 0", "CONFIG SET maxmemory-samples 5", "CONFIG SET hz 0",
        "CONFIG GET hz", "CONFIG SET hz 1000", "CONFIG GET hz", "CONFIG SET hz -1", "CONFIG SET hz 10",
        ("CONFIG", "SET", "hash-max-listpack-value", ""), "CONFIG GET hash-max-listpack-value",
        "CONFIG SET hash-max-listpack-value kb", "CONFIG SET hash-max-listpack-value x",
        "CONFIG SET hash-max-listpack-value -1", "CONFIG SET hash-max-listpack-value 64",
        ("CONFIG", "SET", "client-query-buffer-limit", ""), ("CONFIG", "SET", "maxmemory-clients", "")]
    limits = "client-output-buffer-limit"
    yield "CONFIG SET of output buffer limits", [
        ("CONFIG", "SET", limits, "normal 0 0 0"), ("CONFIG", "GET", limits),
        ("CONFIG", "SET", limits, "normal 100mb 50mb 10"), ("CONFIG", "GET", limits),
        ("CONFIG", "SET", limits, "REPLICA 1mb 500k 1 pubsub 2gb 3gb 4"), ("CONFIG", "GET", limits),
        ("CONFIG", "SET", limits, "bogus 1 2 3"), ("CONFIG", "SET", limits, "normal 1 2"),
        ("CONFIG", "SET", limits, "normal 1 x 3"), ("CONFIG", "SET", limits, "normal 1 2 -3"),
        ("CONFIG", "SET", limits, ""), ("CONFIG", "GET", limits),
        ("CONFIG", "SET", limits, "normal 0 0 0 slave 268435456 67108864 60"),
        ("CONFIG", "SET", limits, "pubsub 33554432 8388608 60"), ("CONFIG", "GET", limits)]
    yield "TIME, DBSIZE and INFO", [
        "TIME", "TIME x", "DBSIZE", "DBSIZE x", "INFO", "INFO server", "INFO SERVER clients",
        "INFO nosuch", "INFO everything", "INFO default"]
    yield "unknown commands", [
        "foo", "FOO bar", "foo bar baz", ("foo", "a" * 200), ("foo", "a" * 100, "b" * 100, "c"),
        ("f" * 200, "x"), ("foo",) + ("arg",) * 50, ("foo", ""), ("", "x"), ("",),
        ("foo", b"\r\n\x00'\""), ("get\x00", "k"), ("foo", "\u00e9"), "get1 k", "GETX k", "ge k",
        ("foo", "a" * 127, "b"), ("foo", "a" * 128, "b"), ("foo", "a" * 120, "b" * 10),
        ("foo\nbar", "b"), ("foo\tbar",), "PING"]
    yield "commands that come later", ["PUBLISH channel message", "EXPIRE k 10", "SUBSTR k 1 3"]


def inline_cases():
    lines = [b"PING", b"  PING  ", b"PING\thello", b"SET k v", b"GET k",
    b'SET k "hello world"', b"GET k",
             b"SET k 'single quoted'", b"GET k", b'SET k "esc \\x41\\n\\r\\t\\b\\a\\\\ \\" end"',
             b"GET k", b"SET k 'it\\'s'", b"GET k", b"SET k 'no \\n escape \\x41'", b"GET k",
             b'SET k ""', b"GET k", b"SET k ''", b"STRLEN k", b"", b"   ", b"ping", b"GET",
             b"nosuch a b", b"SET k \\x41", b"GET k", b'SET k "\\xzz"', b"GET k",
             b'SET k "\\q"', b"GET k", b"ECHO a'b'", b'ECHO "\\x00\\xff"',
             b"ECHO *1", b"ECHO $1"]
    yield "inline commands", [
        step for line in lines for step in (Raw(line + b"\r\n"),)] + ["PING"]
    yield "inline commands ended by a bare newline", [
        Raw(b"PING\nPING a\n\n\nECHO b\n"), Raw(b"SET k v\nGET k\n"), "PING"]
    yield "inline in pieces", [Raw(b"PI"), Raw(b"NG\r"), Raw(b"\nEC"), Raw(b"HO x\r\n"), "PING"]
    yield "NUL byte in an inline command", [Raw(b"ECHO a\x00b\r\nPING\r\n"), on(1, "PING")]
    for name, line in {"double": b'SET k "abc', "single": b"SET k 'abc", "after": b'SET k "a"b',
                       "after single": b"SET k 'a'b", "escape at the end": b'SET k "abc\\'}.items():
        yield "unbalanced quotes: " + name, [Raw(line + b"\r\n"), "PING"]
    yield "inline and arrays mixed", [
        Raw(b"PING\r\n*1\r\n$4\r\nPING\r\nECHO hi\r\n*2\r\n$4\r\nECHO\r\n$2\r\nyo\r\n")]
    yield "inline line too long", [Raw(b"ECHO " + b"x" * 70000), on(1, "PING")]
    yield "inline line of 60000 bytes", [Raw(b"ECHO " + b"x" * 60000 + b"\r\n"), "PING"]


def protocol_cases():
    broken = {
        "multibulk length not a number": b"*abc\r\n",
        "multibulk length empty": b"*\r\n",
        "multibulk length with junk": b"*3x\r\n$3\r\nGET\r\n",
        "multibulk length too large": b"*1048577\r\n",
        "multibulk length beyond int": b"*2147483648\r\n",
        "multibulk length beyond long": b"*99999999999999999999\r\n",
        "multibulk count string too big": b"*" + b"1" * 70000,
        "bulk without dollar": b"*1\r\n4\r\nPING\r\n",
        "bulk with colon": b"*1\r\n:4\r\n",
        "bulk with binary": b"*1\r\n\x01\r\n",
        "bulk length not a number": b"*1\r\n$abc\r\n",
        "bulk length empty": b"*1\r\n$\r\n",
        "bulk length negative": b"*1\r\n$-1\r\n",
        "bulk length too large": b"*2\r\n$3\r\nGET\r\n$1048577\r\n",
        "bulk length huge": b"*1\r\n$99999999999999999999\r\n",
        "bulk length with space": b"*1\r\n$ 4\r\nPING\r\n",
        "bulk count string too big": b"*1\r\n$" + b"1" * 70000,
        "second command broken": b"*1\r\n$4\r\nPING\r\n*1\r\n$x\r\nPING\r\n",
        "POST": b"POST / HTTP/1.1\r\nHost: x\r\n\r\n",
        "post in lower case": b"post / HTTP/1.1\r\n",
        "Host:": b"Host: localhost\r\nPING\r\n",
        "GET of http": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "POST as an array": b"*1\r\n$4\r\nPOST\r\n",
        "HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    }
    for name, data in broken.items():
        yield "protocol error: " + name, [Raw(data), on(1, "PING")]
    tolerated = {
        "negative multibulk": b"*-1\r\n*1\r\n$4\r\nPING\r\n",
        "very negative multibulk": b"*-100\r\nPING\r\n",
        "empty multibulk": b"*0\r\n*1\r\n$4\r\nPING\r\n",
        "many empty multibulks": b"*0\r\n" * 100 + b"PING\r\n",
        "empty lines": b"\r\n\r\n\r\nPING\r\n",
        "bulk end not checked": b"*1\r\n$4\r\nPINGxxPING\r\n",
        "empty command name": b"*1\r\n$0\r\n\r\nPING\r\n",
        "plus sign in multibulk length": b"*+1\r\n$4\r\nPING\r\n",
        "zeros in multibulk length": b"*01\r\n$4\r\nPING\r\n",
        "zeros in bulk length": b"*1\r\n$04\r\nPING\r\n",
        "minus zero": b"*-0\r\nPING\r\n",
    }
    for name, data in tolerated.items():
        yield "protocol: " + name, [Raw(data), on(1, "PING")]
    whole = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nhello\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\nPING\r\n"
    for cut in (1, 2, 3, 5, 9, 14, 20, 21, 27, 30, 36, 40, 60):
        yield "protocol: cut at byte %d" % cut, [Raw(whole[:cut]), Raw(whole[cut:]), "GET k"]


def pipeline_cases():
    yield "pipeline of a thousand", [
        batch(*(["SET k 0"] + ["INCR k"] * 998 + ["GET k"])), "GET k"]
    yield "pipeline over many keys", [
        batch(*[("SET", "k%d" % (i % 97), str(i)) for i in range(1000)]),
        batch(*[("GET", "k%d" % (i % 131)) for i in range(1000)])]
    yield "pipeline with errors inside", [
        batch("SET k abc", "INCR k", "GET", "NOSUCH x", "GET k", "SET k v EX 0", "GET k",
              "SELECT 99",
              "GET k", ("SET", "k", b"x" * 100000), "STRLEN k", "GET k", "DEL k", "GET k")]
    yield "pipeline with selects", [
        batch("SET k 0", "SELECT 1", "SET k 1", "SELECT 2", "SET k 2", "SELECT 0", "GET k",
              "SELECT 1",
              "GET k", "SELECT 2", "GET k", "FLUSHDB", "GET k", "SELECT 1", "GET k")]
    yield "one key written and read in a pipeline", [
        batch(*[item for i in range(200) for item in (
            "SET k v%d" % i, "GET k", "APPEND k x", "GET k", "DEL k", "GET k", "SETNX k n",
            "INCR n")])]
    yield "large values in a pipeline", [
        batch(*[item for i in range(12) for item in (
            ("SET", "k%d" % i, bytes([65 + i]) * 200000), ("GET", "k%d" % i))])]


def password_cases():
    """These run on servers that want the password `secret`; connections start unauthenticated."""
    yield "commands before AUTH", [
        "PING", "GET k", "SET k v", "NOSUCH", "GET", "ECHO x", "AUTH wrong", "AUTH nobody secret",
        "AUTH default wrong", "AUTH", "AUTH a b c", "PING", "CLIENT ID", "COMMAND COUNT",
        "SELECT 1", "HELLO", "HELLO 2", "HELLO 3", "HELLO 9", "HELLO 3 AUTH default wrong", "RESET",
        "CONFIG GET save", "AUTH secret", "PING", "GET k", "AUTH wrong", "PING",
        "AUTH default secret", "RESET", "PING", "HELLO 3 AUTH default secret SETNAME me", "PING",
        "CLIENT GETNAME", "CONFIG GET requirepass"]
    yield "QUIT before AUTH", ["QUIT", "PING"]
    yield "protocol limits before AUTH: multibulk", [Raw(b"*11\r\n$4\r\nPING\r\n"), on(1, "PING")]
    yield "protocol limits before AUTH: bulk", [Raw(b"*2\r\n$4\r\nECHO\r\n$16385\r\n"), on(1,
        "PING")]
    yield "protocol limits before AUTH: allowed", [
        Raw(b"*10\r\n$4\r\nPING\r\n"), on(1, ("ECHO", "x" * 16384)), on(2, "PING")]


def cases():
    for family in (connection_cases, client_cases, server_cases, inline_cases, protocol_cases,
                   pipeline_cases):
        yield from family()
