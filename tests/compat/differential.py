"""Runs streams against redis-server and the agent and compares every reply byte for byte."""

import time

from resp_client import ConnectionClosed
from servers import StartFailed
from steps import Batch, Peer, Raw, Sleep, as_step, title


class Mismatch(Exception):
    """The first reply of a stream that differs; the text says what to look at."""

    def __init__(self, position, step_title, redis, agent):
        super().__init__("step %d: %s\n    redis: %s\n    agent: %s" % (
            position, step_title[:300], redis.describe(), agent.describe()))
        self.position = position


class Pair:
    """redis-server and the agent, started with alike options; restarted when one has died."""

    def __init__(self, redis, agent, judge, authenticated=True):
        self.redis = redis
        self.agent = agent
        self.judge = judge
        self.authenticated = authenticated
        self.restarts = 0

    def start(self):
        self.redis.start()
        self.agent.start()
        return self

    def stop(self):
        self.redis.stop()
        return self.agent.stop()

    def ensure_alive(self):
        for server in (self.redis, self.agent):
            if not server.alive():
                self.restarts += 1
                if self.restarts > 20:
                    raise StartFailed("%s died more than 20 times" % server.name)
                server.start()

    def clear(self):
        """Both servers empty, whatever the stream before did."""
        for server in (self.redis, self.agent):
            with server.connect() as client:
                reply = client.call("FLUSHALL")
                if reply.is_error:
                    raise StartFailed("%s: FLUSHALL answered %r" % (server.name, reply.value))

    def run(self, items, protocol):
        """Sends the steps to both; raises Mismatch at the first difference.

        Both get a step before either answer is read, so that clocks stand alike.
        """
        self.clear()
        peers = [Peer(server, protocol, self.authenticated)
                 for server in (self.redis, self.agent)]
        try:
            for position, item in enumerate(items):
                step = as_step(item)
                if isinstance(step, Sleep):
                    time.sleep(step.ms / 1000)
                    continue
                for peer in peers:
                    peer.send(step)
                outcomes = [peer.receive(step) for peer in peers]
                if isinstance(step, Raw) and outcomes[0] != outcomes[1]:
                    # One of them may only be slow: wait longer before calling it a difference.
                    outcomes = [peer.receive_more(step, outcome[0])
                                for peer, outcome in zip(peers, outcomes)]
                self._compare(position, step, *outcomes)
        finally:
            for peer in peers:
                peer.close()

    def _compare(self, position, step, redis, agent):
        parts = step.commands if isinstance(step, Batch) else [step]
        for part, left, right in zip(parts, redis, agent):
            text = title(part)
            if not self.judge.equal(text, left, right):
                raise Mismatch(position, text, left, right)

    def shrink(self, items, protocol, within_s=15.0):
        """A shorter stream that still differs, by leaving out ever smaller pieces."""
        deadline = time.monotonic() + within_s

        def differs(candidate):
            try:
                self.ensure_alive()
                self.run(candidate, protocol)
            except Mismatch as mismatch:
                return candidate[:mismatch.position + 1]
            except (ConnectionClosed, OSError):
                pass  # It is just dying.
            return None

        current = differs(items) or items
        single = [part for item in current
                  for part in (item.commands if isinstance(item, Batch) else [item])]
        current = differs(single) or current
        piece = max(1, len(current) // 2)
        while time.monotonic() < deadline:
            start = 0
            while start < len(current) - 1 and time.monotonic() < deadline:
                shorter = differs(current[:start] + current[start + piece:])
                if shorter is not None and len(shorter) < len(current):
                    current = shorter
                else:
                    start += piece
            if piece == 1:
                break
            piece //= 2
        return current
