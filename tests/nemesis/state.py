"""Faults of what processes keep and of whom they talk to: images and master's data that are older
than they should be or lost, masters that are none, strangers who say something senseless."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from faults import Fault, MasterFault, NodeFault, ports_of
from local_cluster import wait_until

# The mark of an image grows every 2 s, and the master hears of it.
MARKS_S = 6.0
REBUILD_WAIT_S = 5
REBUILD_S = 120
# A master that is none ends by SIGTERM, or is made to.
END_S = 10


class NodeOld(NodeFault):
    """An older copy of its image is put back. Clients are at work, so the others have put the node
    out, and what it holds counts for nothing until it is copied anew."""
    weight = 2

    def draw(self, rng):
        self.draw_seat(rng)
        self.older_s = MARKS_S + 3 * rng.random()
        self.number = rng.choice((signal.SIGKILL, signal.SIGTERM))
        # The state beside an image is of the same disk, or of another one.
        self.with_state = rng.random() < 0.5

    def text(self):
        return "end %s by %s, put back its image of %.1f s before%s" % (
            self.node.name, self.number.name, self.older_s,
            ", and what lies beside it" if self.with_state else "")

    def run(self):
        # A master that does not live meanwhile does not hear how much older the copy is.
        master = self.world.fleet.processes["master"]
        with self.world.in_hand(self.node), contextlib.ExitStack() as stack:
            image = self.node.backing()
            files = [image]
            if self.with_state and os.path.exists(image + ".state"):
                files.append(image + ".state")
            with self.world.in_hand(master):
                wait_until(self.world.fleet.is_redundant, "full redundancy", 120)
                copies = stack.enter_context(tempfile.TemporaryDirectory(
                    dir=os.path.dirname(image)))
                for file in files:
                    copy(file, os.path.join(copies, os.path.basename(file)))
                time.sleep(self.older_s)
                self.node.send(self.number)
                self.node.await_end()
                # It does not matter here if a master whose data are lost knows that it is out.
                wait_until(lambda: not self.world.fleet.is_redundant(), "the node is missed", 30)
            for file in files:
                copy(os.path.join(copies, os.path.basename(file)), file)
            self.node.start()
            self.await_redundancy()


def copy(source, target):
    subprocess.run(["cp", "--sparse=always", source, target], check=True, timeout=60)


class FalseMaster(MasterFault):
    """Another process answers in the master's place; no member believes it, none ends."""
    weight = 2

    def draw(self, rng):
        super().draw(rng)
        self.stays_s = rng.choice((0.3, 1.5, 4.0)) * (0.5 + rng.random())

    def run(self):
        while not self.done_among(self.members()):
            pass

    def members(self):
        return [process for process in self.world.fleet.processes.values()
                if process is not self.master]

    def done_among(self, members):
        """No process starts meanwhile: a fresh one would be a member of the master that is there.
        False when others have come in their place before all were in hand."""
        with (self.world.in_hand(self.master, *members),
              tempfile.TemporaryDirectory() as scratch):
            if members != self.members():
                return False
            command = self.command(scratch)
            self.master.kill()
            silent = [member for member in members if self.world.was_silent(member)]
            with open(os.path.join(scratch, "log"), "wb") as log:
                false = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
                try:
                    time.sleep(self.stays_s)
                finally:
                    false.kill()
                    false.wait(timeout=END_S)
            # Members that the true master had expelled before do not count.
            ended = [member.name for member in members
                     if member.poll() is not None and member not in silent]
            time.sleep(self.away_s)
            self.master.start()
            assert not ended, "ended while a false master was there: " + ", ".join(ended)
            return True

    def command(self, scratch):
        """That of the false one, which may write into `scratch`."""
        raise NotImplementedError

    def option(self, name):
        return self.master.command[self.master.command.index(name) + 1]

    def with_option(self, name, value):
        command = list(self.master.command)
        command[command.index(name) + 1] = value
        return command


class MasterEmpty(FalseMaster):
    """One with an empty data directory."""

    def text(self):
        return "for %.1f s a master without data in the master's place" % self.stays_s

    def command(self, scratch):
        return self.with_option("--data-dir", os.path.join(scratch, "data"))


class MasterStranger(FalseMaster):
    """One with another secret."""

    def text(self):
        return "for %.1f s a master with another secret in the master's place" % self.stays_s

    def command(self, scratch):
        secret = os.path.join(scratch, "secret")
        with open(secret, "w", encoding="utf-8",
                  opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write("the secret of somebody else, who is no member")
        command = self.with_option("--secret-file", secret)
        command[command.index("--data-dir") + 1] = os.path.join(scratch, "data")
        return command


class MasterOld(FalseMaster):
    """One with a copy of the data, older than what the members have seen."""

    def text(self):
        return "for %.1f s a master with older data in the master's place" % self.stays_s

    def command(self, scratch):
        data = os.path.join(scratch, "data")
        # As they are after a kill; the next life of the master is one that the copy does not know.
        self.master.kill()
        shutil.copytree(self.option("--data-dir"), data)
        self.master.start()
        # One that has heard of nothing newer cannot tell which is the older.
        wait_until(self.world.fleet.is_whole, "members are back at the master", 60)
        return self.with_option("--data-dir", data)



class MasterLost(MasterFault):
    """Its data are gone, and made anew from what the members keep."""
    weight = 2

    def text(self):
        return "kill the master, remove its data, rebuild them"

    def run(self):
        command = self.master.command
        with self.world.in_hand(self.master):
            self.master.kill()
            data = command[command.index("--data-dir") + 1]
            shutil.rmtree(data)
            time.sleep(self.away_s)
            rebuild = [command[0][:-len("-master")], "master", "rebuild", "--wait-s",
                       str(REBUILD_WAIT_S)]
            for name in ("--listen", "--data-dir", "--secret-file"):
                rebuild += [name, command[command.index(name) + 1]]
            deadline = time.monotonic() + REBUILD_S
            while True:
                done = subprocess.run(rebuild, stdin=subprocess.DEVNULL, capture_output=True,
                                      timeout=REBUILD_S, check=False, text=True)
                if done.returncode == 0:
                    break
                # Memory nodes may be away, and more than half of them are needed.
                assert time.monotonic() < deadline, "onetrip master rebuild: " + done.stderr
                time.sleep(1.0)
            self.master.start()


class Strangers(Fault):
    """Connections to every port that say what no member or client would, or nothing, or break off."""
    place = "ports"
    weight = 3

    def draw(self, rng):
        self.connections = rng.choice((5, 30, 100))
        self.lines = [rng.choice((
            b"", b"\0" * rng.randrange(1, 200), b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
            b"*3\r\n$3\r\nSET\r\n$9999999\r\nab", b"*-7\r\n$-3\r\n\xff\xff\xff\xff",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + rng.randbytes(300),
            rng.randbytes(rng.randrange(1, 4000)))) for _ in range(self.connections)]
        self.stay_s = rng.choice((0.0, 0.05, 1.0))

    def text(self):
        return "%d connections of strangers to every port, for %.2f s" % (
            self.connections, self.stay_s)

    def run(self):
        ports = [port for process in self.world.fleet.everybody()
                 for port in ports_of(process)]
        for line in self.lines:
            opened = [knock(port, line) for port in ports]
            time.sleep(self.stay_s / self.connections)
            for connection in opened:
                if connection is not None:
                    connection.close()


def knock(port, line):
    try:
        connection = socket.create_connection(("127.0.0.1", port), timeout=1)
        connection.sendall(line)
        return connection
    except OSError:
        # The process may have ended, or have answered by closing.
        return None


KINDS = {
    "node-old": NodeOld,
    "master-empty": MasterEmpty,
    "master-stranger": MasterStranger,
    "master-old": MasterOld,
    "master-lost": MasterLost,
    "strangers": Strangers,
}
