"""A small RESP2/RESP3 client that keeps the raw bytes of every reply.

Replies are compared byte for byte, so the raw form is the truth; parse() gives a typed tree for the
tests that look inside. Every RESP type stays apart: a simple string never equals a bulk string, and
the three null forms are three values.
"""

import socket
import time
from dataclasses import dataclass

AGGREGATES = {b"*": 1, b"~": 1, b">": 1, b"%": 2, b"|": 2}
LINES = (b"+", b"-", b":", b",", b"#", b"_", b"(")
BLOBS = (b"$", b"=", b"!")


class ConnectionClosed(Exception):
    """The server closed the connection (or reset it) before a whole reply came."""


class NoReply(Exception):
    """No whole reply within the time limit."""


@dataclass(frozen=True)
class Reply:
    """kind is the RESP type byte as text; value is bytes, or a tuple of Reply, or None for null."""
    kind: str
    value: object

    @property
    def is_error(self):
        return self.kind in "-!"

    def pairs(self):
        """A map, or a flat array that stands for one under RESP2, as a dict by bulk bytes."""
        items = self.value
        return {items[i].value: items[i + 1] for i in range(0, len(items) - 1, 2)}


def encode(args):
    parts = [b"*%d\r\n" % len(args)]
    for arg in args:
        parts.append(b"$%d\r\n%s\r\n" % (len(arg), arg))
    return b"".join(parts)


def to_bytes(arg):
    return arg if isinstance(arg, bytes) else str(arg).encode()


class Client:
    """One connection by TCP (port) or unix socket (path). One thread at a time.

    `source`: this side's address, where the system is not to choose it.
    """

    def __init__(self, port=None, path=None, timeout_s=10.0, host="127.0.0.1", source=None):
        if path is not None:
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.settimeout(timeout_s)
            self.sock.connect(path)
        else:
            self.sock = socket.create_connection((host, port), timeout=timeout_s,
                                                 source_address=source and (source, 0))
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.timeout_s = timeout_s
        self.buffer = bytearray()
        self.at = 0

    def close(self):
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send_raw(self, data):
        try:
            self.sock.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass  # What the server said before it closed is still to be read.
        except socket.timeout:
            raise NoReply("the server takes no more input")

    def send(self, *args):
        self.send_raw(encode([to_bytes(arg) for arg in args]))

    def _fill(self):
        try:
            data = self.sock.recv(1 << 16)
        except socket.timeout:
            raise NoReply("no reply within %.1f s" % self.timeout_s)
        except ConnectionResetError:
            raise ConnectionClosed()
        if not data:
            raise ConnectionClosed()
        if self.at > (1 << 20):
            del self.buffer[:self.at]
            self.at = 0
        self.buffer += data

    def _line(self):
        while True:
            end = self.buffer.find(b"\r\n", self.at)
            if end >= 0:
                line = bytes(self.buffer[self.at:end + 2])
                self.at = end + 2
                return line
            self._fill()

    def _exactly(self, size):
        while len(self.buffer) - self.at < size:
            self._fill()
        data = bytes(self.buffer[self.at:self.at + size])
        self.at += size
        return data

    def _collect(self, out):
        line = self._line()
        out.append(line)
        kind = line[:1]
        if kind in LINES:
            return
        size = int(line[1:-2])
        if kind in BLOBS:
            if size >= 0:
                out.append(self._exactly(size + 2))
        elif kind in AGGREGATES:
            for _ in range(size * AGGREGATES[kind]):
                self._collect(out)
        else:
            raise ValueError("not RESP: %r" % line)

    def read_raw(self):
        """The bytes of the next whole reply."""
        out = []
        self._collect(out)
        return b"".join(out)

    def read_available(self, quiet_s):
        """Everything the server sends until it is quiet for quiet_s or closes: (bytes, closed)."""
        data = bytes(self.buffer[self.at:])
        self.buffer.clear()
        self.at = 0
        closed = False
        deadline = time.monotonic() + self.timeout_s
        self.sock.settimeout(quiet_s)
        try:
            while time.monotonic() < deadline:
                more = self.sock.recv(1 << 16)
                if not more:
                    closed = True
                    break
                data += more
        except socket.timeout:
            pass
        except ConnectionResetError:
            closed = True
        finally:
            self.sock.settimeout(self.timeout_s)
        return data, closed

    def call_raw(self, *args):
        self.send(*args)
        return self.read_raw()

    def call(self, *args):
        return parse(self.call_raw(*args))

    def pipeline(self, commands):
        """Sends all commands at once; the list of parsed replies."""
        self.send_raw(b"".join(encode([to_bytes(arg) for arg in args]) for args in commands))
        return [parse(self.read_raw()) for _ in commands]


def parse(raw):
    """The typed tree of one raw reply."""
    reply, end = _parse_at(raw, 0)
    if end != len(raw):
        raise ValueError("bytes behind the reply: %r" % raw[end:])
    return reply


def _parse_at(raw, at):
    end = raw.index(b"\r\n", at)
    kind, rest = raw[at:at + 1], raw[at + 1:end]
    at = end + 2
    if kind in LINES:
        return Reply(kind.decode(), None if kind == b"_" else bytes(rest)), at
    size = int(rest)
    if size < 0:
        return Reply(kind.decode(), None), at
    if kind in BLOBS:
        return Reply(kind.decode(), raw[at:at + size]), at + size + 2
    items = []
    for _ in range(size * AGGREGATES[kind]):
        item, at = _parse_at(raw, at)
        items.append(item)
    return Reply(kind.decode(), tuple(items)), at


def elements(raw):
    """The raw elements of an aggregate reply (pairs joined for maps), or None for other replies."""
    if raw[:1] not in AGGREGATES:
        return None
    at = raw.index(b"\r\n") + 2
    parts = []
    while at < len(raw):
        _, end = _parse_at(raw, at)
        parts.append(raw[at:end])
        at = end
    step = AGGREGATES[raw[:1]]
    return [b"".join(parts[i:i + step]) for i in range(0, len(parts), step)]
