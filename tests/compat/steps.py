"""The parts of a stream: steps that are sent alike to both servers, and their outcomes."""

from dataclasses import dataclass

from resp_client import ConnectionClosed, NoReply, encode, to_bytes

QUIET_S = 0.06
PATIENCE_S = 1.0


@dataclass(frozen=True)
class Command:
    """One command on connection `on`; one reply."""
    args: tuple
    on: int = 0


@dataclass(frozen=True)
class Batch:
    """Commands sent in one piece; as many replies."""
    commands: tuple
    on: int = 0


@dataclass(frozen=True)
class Raw:
    """Bytes sent as they are; everything that comes back until the server is quiet or closes."""
    data: bytes
    on: int = 0


@dataclass(frozen=True)
class Walk:
    """SCAN with these arguments behind the cursor, until it is back at 0; the keys met, in order. Or HSCAN of the
    key that is the first argument."""
    args: tuple
    on: int = 0
    by: str = "SCAN"


@dataclass(frozen=True)
class Sleep:
    ms: int


@dataclass(frozen=True)
class Outcome:
    """The outcome at a server. `raw` is compared; the flags say how it ended."""
    raw: bytes = b""
    closed: bool = False
    silent: bool = False

    def describe(self):
        if self.silent:
            return "NO REPLY"
        text = show_bytes(self.raw)
        return text + (" [closed]" if self.closed else "")


def show_bytes(data, limit=600):
    text = repr(data)[1:]
    return text if len(text) <= limit else "%s... (%d bytes)" % (text[:limit], len(data))


def command(text_or_args, on=0):
    """'SET k v' is split at spaces; a tuple may hold any bytes."""
    if isinstance(text_or_args, str):
        text_or_args = tuple(text_or_args.split(" "))
    return Command(tuple(to_bytes(arg) for arg in text_or_args), on)


def batch(*items, on=0):
    return Batch(tuple(command(item) for item in items), on)


def walk(text="", on=0):
    return Walk(tuple(to_bytes(arg) for arg in text.split(" ") if arg), on)


def on(connection, item):
    return command(item, connection)


def as_step(item):
    return command(item) if isinstance(item, (str, tuple)) else item


def title(step):
    """The command as text; rules match on this. Bytes that are not printable are escaped."""
    if isinstance(step, Raw):
        return "RAW " + show_bytes(step.data, 160)
    if isinstance(step, Walk):
        return "walk " + b" ".join(step.args).decode("latin-1")
    if isinstance(step, Sleep):
        return "sleep %d ms" % step.ms
    return " ".join(arg.decode("latin-1").encode("unicode_escape").decode("ascii")
                    for arg in step.args)


class Peer:
    """The connections of one stream to one server, opened when first used."""

    def __init__(self, server, protocol, authenticated=True, timeout_s=5.0):
        self.server = server
        self.protocol = protocol
        self.authenticated = authenticated
        self.timeout_s = timeout_s
        self.clients = {}

    def client(self, number):
        if number not in self.clients:
            client = self.server.connect(self.timeout_s, self.authenticated)
            if self.protocol == 3:
                client.call("HELLO", "3")
            self.clients[number] = client
        return self.clients[number]

    def send(self, step):
        client = self.client(step.on)
        try:
            if isinstance(step, Walk):
                return
            if isinstance(step, Raw):
                client.send_raw(step.data)
            elif isinstance(step, Batch):
                client.send_raw(b"".join(encode(item.args) for item in step.commands))
            else:
                client.send_raw(encode(step.args))
        except NoReply:
            pass  # The outcome shows it: there will be no reply.

    def receive(self, step):
        """The outcomes of a step: one, or one for each command of a batch."""
        client = self.client(step.on)
        if isinstance(step, Raw):
            raw, closed = client.read_available(QUIET_S)
            return [Outcome(raw, closed)]
        if isinstance(step, Walk):
            return [self._walk(client, step)]
        count = len(step.commands) if isinstance(step, Batch) else 1
        return [self._one(client) for _ in range(count)]

    def receive_more(self, step, outcome):
        """The outcome of a raw step when the server gets more time."""
        if outcome.closed:
            return [outcome]
        raw, closed = self.client(step.on).read_available(PATIENCE_S)
        return [Outcome(outcome.raw + raw, closed)]

    @staticmethod
    def _walk(client, step):
        cursor, keys = b"0", set()
        of_key = step.args[:1] if step.by == "HSCAN" else ()
        steps_left = 100_000
        while steps_left > 0:
            steps_left -= 1
            reply = client.call(step.by, *of_key, cursor, *step.args[len(of_key):])
            if reply.is_error:
                return Outcome(reply.value)
            cursor = reply.value[0].value
            keys |= {key.value for key in reply.value[1].value}
            if cursor == b"0":
                return Outcome(repr(sorted(keys)).encode())

    @staticmethod
    def _one(client):
        try:
            return Outcome(client.read_raw())
        except ConnectionClosed:
            return Outcome(bytes(client.buffer[client.at:]), closed=True)
        except NoReply:
            return Outcome(silent=True)
        except ValueError as error:
            return Outcome(b"NOT RESP: " + str(error).encode())

    def close(self):
        for client in self.clients.values():
            client.close()
