"""A cluster of processes under measurement: `onetrip up`, what its processes cost, which pages its
memory has, and the host's reserve of huge pages."""

import contextlib
import json
import os
import shutil
import subprocess
import time

from compare_servers import BenchError, Client, Server, free_port

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
RESERVE = "/proc/sys/vm/nr_hugepages"
MIB = 1 << 20


def cpu_of(pid):
    """Seconds of CPU that all threads of the process have used."""
    total_ns = 0
    try:
        for task in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/schedstat" % (pid, task)) as file:
                total_ns += int(file.read().split()[0])
        return total_ns / 1e9
    except OSError:  # a kernel that does not count it by nanoseconds
        with open("/proc/%d/stat" % pid) as stat:
            fields = stat.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def wakeups_of(pid):
    """How often threads of the process have gone to sleep."""
    total = 0
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/status" % (pid, task)) as status:
            for line in status:
                if line.startswith("voluntary_ctxt_switches"):
                    total += int(line.split()[1])
    return total


def mappings(pid):
    """[(name, bytes, {field: bytes})] of a process, as smaps has them."""
    result = []
    with open("/proc/%d/smaps" % pid) as file:
        for line in file:
            words = line.split()
            if words[0].endswith(":"):
                if words[-1] == "kB":
                    result[-1][2][words[0][:-1]] = int(words[1]) * 1024
            else:
                begin, end = (int(part, 16) for part in words[0].split("-"))
                result.append((" ".join(words[5:]), end - begin, {}))
    return result


def is_pool(name, size, pool_bytes):
    # Private pools have no name, and neighbours of one process are one mapping.
    return "onetrip-memory" in name or name.endswith(".img") or (not name and size >= pool_bytes)


def memory_of(pid, pool_bytes):
    """Resident bytes, and those of them that are the pool's."""
    rest, pool = 0, 0
    for name, size, fields in mappings(pid):
        if is_pool(name, size, pool_bytes):
            pool += fields["Rss"]
        else:
            rest += fields["Rss"]
    return rest + pool, pool


def pages_of(pid, pool_bytes):
    """What the pool's pages are, in a few words: from the mappings themselves."""
    kinds = {}
    for name, size, fields in mappings(pid):
        if not is_pool(name, size, pool_bytes):
            continue
        if fields["KernelPageSize"] >= MIB:
            kind = "%d MiB, reserved" % (fields["KernelPageSize"] / MIB)
        else:
            huge = sum(fields.get(field, 0)
                       for field in ("AnonHugePages", "ShmemPmdMapped", "FilePmdMapped"))
            share = 100.0 * huge / fields["Rss"] if fields["Rss"] else 0.0
            kind = "%d KiB, %.0f %% of them joined to 2 MiB" % (
                fields["KernelPageSize"] / 1024, share)
        kinds[kind] = kinds.get(kind, 0) + 1
    return "; ".join("%s (%d)" % pair for pair in sorted(kinds.items())) or "no pool"


def size_bytes(text):
    """Of "512MiB", as the programs read it, for the units that people use."""
    digits = text.rstrip("kKmMgGiIbB")
    unit = text[len(digits):].lower()[:1]
    return int(digits) << {"": 0, "b": 0, "k": 10, "m": 20, "g": 30}[unit]


@contextlib.contextmanager
def reserved_huge_pages(wanted_bytes):
    """Raises the host's reserve by what `wanted_bytes` take for the time of a `with`, and puts it
    back, also after a failure."""
    with open("/proc/meminfo") as file:
        meminfo = {line.split(":")[0]: int(line.split()[1]) for line in file}
    pages = -(-wanted_bytes // (meminfo["Hugepagesize"] * 1024))
    with open(RESERVE) as file:
        before = int(file.read())

    def reserve(count):
        with open(RESERVE, "w") as file:
            file.write("%d\n" % count)
        with open(RESERVE) as file:
            return int(file.read())

    try:
        got = reserve(before + pages)
    except PermissionError as error:
        raise BenchError("raising vm.nr_hugepages takes root: %s" % error) from error
    try:
        if got < before + pages:
            raise BenchError("the host has memory in one piece for %d of %d huge pages; free some "
                             "(sync; echo 3 > /proc/sys/vm/drop_caches) or take a smaller --memory"
                             % (got - before, pages))
        print("vm.nr_hugepages: %d for the time of this run, %d before" % (got, before))
        yield
    finally:
        reserve(before)


class Cluster(Server):
    """`onetrip up` with one agent or more; as a Server it is its first agent. Port 0: a free one."""

    def __init__(self, name, bin_dir, fabric, memory, agents=1, port=0):
        super().__init__(name, [], port)
        self.free_port = port == 0
        self.tool = os.path.join(bin_dir, "onetrip")
        self.path = os.path.join(self.directory, "c")
        self.flags = ["--fabric", fabric, "--memory", memory, "--agents", str(agents)]
        self.pool_bytes = size_bytes(memory)
        self.start_s = 0.0
        self.record = None

    def start(self, ready_within_s=60):
        if self.free_port:
            self.port = free_port()
        started = time.monotonic()
        done = subprocess.run([self.tool, "up", "--dir", self.path, "--port", str(self.port)]
                              + self.flags, capture_output=True, check=False, text=True)
        if done.returncode != 0:
            raise BenchError("onetrip up: " + done.stderr)
        client = Client(self.port)
        client.call("SET", "first", "1")
        client.close()
        self.start_s = time.monotonic() - started
        with open(os.path.join(self.path, "cluster.json")) as file:
            self.record = json.load(file)

        class Process:
            pid = self.record["agents"][0]["pid"]
        self.process = Process

    def log_tail(self):
        with open(self.record["agents"][0]["log"], errors="replace") as log:
            return log.read()[-400:].strip()

    def pids(self):
        return {process["name"]: process["pid"] for process in
                [self.record["master"]] + self.record["memnodes"] + self.record["agents"]}

    def memnode_cpu_s(self):
        return sum(cpu_of(node["pid"]) for node in self.record["memnodes"])

    def stop(self):
        if self.record is not None:
            subprocess.run([self.tool, "down", "--dir", self.path], capture_output=True,
                           check=False)
        shutil.rmtree(self.directory, ignore_errors=True)
