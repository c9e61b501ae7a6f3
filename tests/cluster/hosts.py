"""Three network namespaces joined by veth, as three hosts: one memory node and one agent each."""

import os
import shutil
import subprocess
import tempfile

from live import Skip
from local_cluster import wait_until
from registry import test
from refusals import write_secret

HOSTS = 3


def ip(*arguments):
    done = subprocess.run(["ip"] + list(arguments), capture_output=True, check=False, text=True)
    # A container may keep even root from it.
    if "Operation not permitted" in done.stderr:
        raise Skip("this host does not let network namespaces be made: " + done.stderr.strip())
    assert done.returncode == 0, "ip %s: %s" % (" ".join(arguments), done.stderr)


class Network:
    """A bridge with namespaces on it; each has a disk of its own as far as paths go."""

    def __init__(self, hosts=HOSTS):
        self.hosts = hosts
        self.tag = "ot%d" % os.getpid()
        self.directory = tempfile.mkdtemp(prefix="onetrip_hosts.")
        self.processes = []

    def __enter__(self):
        if os.geteuid() != 0:
            raise Skip("making network namespaces takes root")
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _make(self):
        ip("link", "add", self.tag, "type", "bridge")
        ip("link", "set", self.tag, "up")
        for host in range(self.hosts):
            space, near, far = self.space(host), "%sa%d" % (self.tag, host), "%sb%d" % (self.tag,
                                                                                     host)
            ip("netns", "add", space)
            ip("link", "add", near, "type", "veth", "peer", "name", far)
            ip("link", "set", far, "netns", space)
            ip("link", "set", near, "master", self.tag)
            ip("link", "set", near, "up")
            ip("-n", space, "addr", "add", self.address(host) + "/24", "dev", far)
            ip("-n", space, "link", "set", far, "up")
            ip("-n", space, "link", "set", "lo", "up")

    def space(self, host):
        return "%s-%d" % (self.tag, host)

    @staticmethod
    def address(host):
        return "10.77.13.%d" % (host + 1)

    def start(self, host, name, command):
        log = open(os.path.join(self.directory, name + ".log"), "wb")
        with log:
            process = subprocess.Popen(["ip", "netns", "exec", self.space(host)] + command,
                                       stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.processes.append(process)
        return process

    def log(self, name):
        with open(os.path.join(self.directory, name + ".log"), errors="replace") as file:
            return file.read()

    def await_ready(self, name, process):
        def ready():
            assert process.poll() is None, "%s ended: %s" % (name, self.log(name))
            return " is ready: " in self.log(name)
        wait_until(ready, name + " is ready")

    def call(self, host, port, commands):
        """redis-cli in the namespace: its output lines, of which there are none if the connection breaks."""
        done = subprocess.run(["ip", "netns", "exec", self.space(host), "redis-cli", "-p",
                               str(port)], input=b"".join(commands), capture_output=True,
                              timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode().splitlines()

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                process.kill()
        for host in range(self.hosts):
            subprocess.run(["ip", "netns", "del", self.space(host)], capture_output=True,
                           check=False)
        subprocess.run(["ip", "link", "del", self.tag], capture_output=True, check=False)
        shutil.rmtree(self.directory, ignore_errors=True)


@test("three hosts: one memory node and one agent each, one keyspace")
def three_hosts(context):
    with Network() as network:
        secret = write_secret(os.path.join(network.directory, "secret"),
                              "the secret of three hosts, shared by all")

        def program(name):
            return os.path.join(context.bin_dir, name)

        master = network.start(0, "master", [
            program("onetrip-master"), "--listen", network.address(0) + ":7400", "--data-dir",
            os.path.join(network.directory, "master"), "--secret-file", secret])
        network.await_ready("master", master)
        common = ["--master", network.address(0) + ":7400", "--secret-file", secret]
        started = []
        for host in range(HOSTS):
            name = "memnode-%d" % host
            started.append((name, network.start(host, name, [
                program("onetrip-memnode"), "--memory", "128MiB", "--fabric", "tcp", "--listen",
                network.address(host) + ":7500"] + common)))
        for host in range(HOSTS):
            name = "agent-%d" % host
            started.append((name, network.start(host, name, [
                program("onetrip-agent"), "--port", "6379", "--fabric", "tcp"] + common)))
        for name, process in started:
            network.await_ready(name, process)

        for host in range(HOSTS):
            assert network.call(host, 6379, [b"SET host%d here\n" % host]) == ["OK"]
        for host in range(HOSTS):
            assert network.call(host, 6379, [b"MGET host0 host1 host2\n"]) == ["here"] * HOSTS
        for host in range(HOSTS):
            answers = network.call(host, 6379, [b"INCR n\n"] * 500)
            assert answers[-1] == str(500 * (host + 1)), answers[-1]
        # All at once.
        rounds = 400
        clients = [subprocess.Popen(["ip", "netns", "exec", network.space(host), "redis-cli"],
                                    stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
                   for host in range(HOSTS)]
        for client in clients:
            client.stdin.write(b"INCR m\n" * rounds)
            client.stdin.close()
        for client in clients:
            assert client.wait(timeout=120) == 0
        assert network.call(1, 6379, [b"GET m\n"]) == [str(rounds * HOSTS)]

        # A stranger on that network, without the secret.
        stranger = os.path.join(network.directory, "stranger")
        write_secret(stranger, "a guess that is long enough")
        process = network.start(1, "stranger", [
            program("onetrip-agent"), "--port", "6380", "--master", network.address(0) + ":7400",
            "--secret-file", stranger])
        assert process.wait(timeout=60) == 1 and "secret" in network.log("stranger")
