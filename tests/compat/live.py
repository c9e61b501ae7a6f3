"""The registry of tests against a live agent, and what they share.

A test is a function of a Context, registered by @test(name); it fails by an AssertionError.
"""

import os
import shutil
import subprocess
import tempfile

import servers

_REGISTRY = []


class Skip(Exception):
    """Raised by a test that cannot run here; the text says why."""


class Context:
    """Where the binaries are, and how a test starts an agent of its own."""

    def __init__(self, agent_binary, redis_binary):
        self.agent_binary = agent_binary
        self.redis_binary = redis_binary

    @property
    def is_redis(self):
        return "redis-server" in os.path.basename(self.agent_binary)

    def agent(self, *extra):
        """An agent that is not started yet; use it with `with`."""
        return servers.agent(self.agent_binary, extra=extra)

    def tool(self, name):
        """A program built beside the agent."""
        path = os.path.join(os.path.dirname(self.agent_binary), name)
        if not os.access(path, os.X_OK):
            raise Skip("%s is not built" % name)
        return path


def test(name, on_redis_too=False):
    """Registers a test. on_redis_too: it must pass with redis-server in the agent's place."""
    def register(function):
        function.on_redis_too = on_redis_too
        _REGISTRY.append((name, function))
        return function
    return register


def tests():
    # Importing a module registers its tests.
    import live_bad_input  # pylint: disable=unused-import,import-outside-toplevel
    import live_clients  # pylint: disable=unused-import,import-outside-toplevel
    import live_connections  # pylint: disable=unused-import,import-outside-toplevel
    import live_dump  # pylint: disable=unused-import,import-outside-toplevel
    import live_info  # pylint: disable=unused-import,import-outside-toplevel
    import live_full_pool  # pylint: disable=unused-import,import-outside-toplevel
    import live_memory  # pylint: disable=unused-import,import-outside-toplevel
    import live_sets  # pylint: disable=unused-import,import-outside-toplevel
    import live_service  # pylint: disable=unused-import,import-outside-toplevel
    import live_values_move  # pylint: disable=unused-import,import-outside-toplevel
    import live_threads  # pylint: disable=unused-import,import-outside-toplevel
    import selftest  # pylint: disable=unused-import,import-outside-toplevel
    return list(_REGISTRY)


def run_program(command, stdin=b"", timeout_s=120):
    """Runs a program to its end: (exit code, stdout, stderr)."""
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=timeout_s, check=False)
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(
        errors="replace")


class ScratchDirectory:
    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="onetrip_compat.")
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)
