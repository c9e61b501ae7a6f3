"""The registry of tests on clusters of processes.

A test is a function of a Context, registered by @test(name); it fails by an AssertionError. What
was written for several workers of one agent runs here on several agents, over every fabric.
"""

import functools

import live_threads
from local_cluster import LocalCluster

FABRICS = ("shm", "tcp", "mixed")

_REGISTRY = []
_ALONE = set()

# Cases that live_threads has for workers of one process, by function.
SHARED = (live_threads.increments, live_threads.mixed_sums, live_threads.whole_values,
          live_threads.appends, live_threads.single_winners, live_threads.delete_and_set,
          live_threads.expiry, live_threads.flush_amid_writes,
          live_threads.swap_amid_increments)


class Context:
    """Where the programs are, and how a test starts a cluster of its own."""

    def __init__(self, bin_dir):
        self.bin_dir = bin_dir

    def cluster(self, **options):
        """A cluster that is not started yet; use it with `with`."""
        return LocalCluster(self.bin_dir, **options)


class InsteadOfAnAgent:
    """A Context for tests that start one agent: they get a cluster of two."""

    def __init__(self, context, fabric):
        self.context = context
        self.fabric = fabric

    def agent(self, *_):
        return self.context.cluster(fabric=self.fabric)


def test(name, alone=False):
    """`alone`: it says how soon something is done, and takes the whole machine for that."""
    def register(function):
        _REGISTRY.append((name, function))
        if alone:
            _ALONE.add(name)
        return function
    return register


def is_alone(name):
    return name in _ALONE


def _shared(function, fabric, context):
    function(InsteadOfAnAgent(context, fabric))


def tests():
    # Importing a module registers its tests.
    import accept_loss  # pylint: disable=unused-import,import-outside-toplevel
    import backing_damaged  # pylint: disable=unused-import,import-outside-toplevel
    import command_line  # pylint: disable=unused-import,import-outside-toplevel
    import cuts  # pylint: disable=unused-import,import-outside-toplevel
    import expelled  # pylint: disable=unused-import,import-outside-toplevel
    import full_pool  # pylint: disable=unused-import,import-outside-toplevel
    import growth  # pylint: disable=unused-import,import-outside-toplevel
    import hosts  # pylint: disable=unused-import,import-outside-toplevel
    import impostors  # pylint: disable=unused-import,import-outside-toplevel
    import list_moves  # pylint: disable=unused-import,import-outside-toplevel
    import many_agents  # pylint: disable=unused-import,import-outside-toplevel
    import node_lost  # pylint: disable=unused-import,import-outside-toplevel
    import agent_memory  # pylint: disable=unused-import,import-outside-toplevel
    import memory_wear  # pylint: disable=unused-import,import-outside-toplevel
    import node_joins  # pylint: disable=unused-import,import-outside-toplevel
    import pipelines  # pylint: disable=unused-import,import-outside-toplevel
    import node_moves  # pylint: disable=unused-import,import-outside-toplevel
    import node_replaced  # pylint: disable=unused-import,import-outside-toplevel
    import master_restart  # pylint: disable=unused-import,import-outside-toplevel
    import old_state  # pylint: disable=unused-import,import-outside-toplevel
    import refusals  # pylint: disable=unused-import,import-outside-toplevel
    import several_agents  # pylint: disable=unused-import,import-outside-toplevel
    import start_failures  # pylint: disable=unused-import,import-outside-toplevel
    import tool  # pylint: disable=unused-import,import-outside-toplevel
    import tool_directory  # pylint: disable=unused-import,import-outside-toplevel
    import used_memory  # pylint: disable=unused-import,import-outside-toplevel
    import watch  # pylint: disable=unused-import,import-outside-toplevel
    shared = [("%s: %s, two agents" % (fabric, function.__name__.replace("_", " ")),
               functools.partial(_shared, function, fabric))
              for fabric in FABRICS for function in SHARED]
    return shared + list(_REGISTRY)
