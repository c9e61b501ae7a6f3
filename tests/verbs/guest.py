#!/usr/bin/env python3
"""Runs programs in a guest whose kernel has SoftRoCE, on a host that has no RDMA.

  tests/verbs/guest.py --command 'verbs_tests' build/release/bin/verbs_tests

The guest is Debian's kernel, unpacked and not installed, and an initramfs with busybox, the modules
of rdma_rxe, the programs named and the libraries that they need. It has one RDMA device, rxe0, on a
dummy interface with 10.0.0.1; with --second it is on a network of two guests, the other of which
has 10.0.0.2 and runs that command until the first one prints END_SECOND, as if its power had gone.
The command's status is this program's; 125 if the guest did not come to tell one.
"""

import argparse
import glob
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import time

PROVIDER = "/usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav*.so"
# Loaded as dlopen does, so ldd does not name it.
ALSO = ["/lib/x86_64-linux-gnu/libgcc_s.so.1"]
# In the order in which they need each other; rdma_rxe needs crc32 and does not say so.
MODULES = [
    "crypto/crc32_generic", "drivers/net/dummy", "fs/configfs/configfs",
    "drivers/infiniband/core/ib_core", "drivers/infiniband/core/ib_cm",
    "drivers/infiniband/core/iw_cm", "drivers/infiniband/core/rdma_cm",
    "drivers/infiniband/core/ib_uverbs", "drivers/infiniband/core/rdma_ucm",
    "net/ipv4/udp_tunnel", "net/ipv6/ip6_udp_tunnel", "drivers/infiniband/sw/rxe/rdma_rxe",
    "drivers/net/ethernet/intel/e1000/e1000",
]
# The status leaves through the port that isa-debug-exit listens at: QEMU ends with 2 * what is written
# + 1. QEMU's own errors end with 1, so it is written with TOLD added.
INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mkdir -p /tmp /dev/shm
mount -t tmpfs none /tmp
mount -t tmpfs none /dev/shm
finish() {
  printf "\\\\$(printf %03o $((64 + $1)))" | dd of=/dev/port bs=1 seek=244 2>/dev/null
  poweroff -f
}
for module in /modules/*.ko; do insmod $module || finish 60; done
ip link set lo up
number=1
network=dummy0
for word in $(cat /proc/cmdline); do
  case $word in guest=*) number=${word#guest=}; network=eth0 ;; esac
done
[ $network = eth0 ] || ip link set dummy0 mtu 4200
ip link set $network up
ip addr add 10.0.0.$number/24 dev $network
for wait in 1 2 3 4 5 6 7 8 9 10; do
  [ "$(cat /sys/class/net/$network/carrier)" = 1 ] && break
  sleep 1
done
rdma link add rxe0 type rxe netdev $network || finish 60
ulimit -l unlimited
export network
sh /command.$number
status=$?
[ $status -lt 60 ] || status=60
finish $status
"""
NOT_TOLD = 125
TOLD = 64
END_SECOND = "guest: end the second"


class GuestError(Exception):
    pass


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise GuestError(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def kernel_package():
    """The newest kernel that the host's sources have."""
    for is_again in (False, True):
        listed = subprocess.run(["apt-cache", "depends", "linux-image-amd64"],
                                capture_output=True, text=True, check=False).stdout
        found = re.search(r"Depends: (linux-image-\S+)", listed)
        if found:
            return found.group(1)
        if not is_again:
            run("apt-get", "-q", "update")
    raise GuestError("the package sources have no linux-image-amd64")


def kept_kernels(cache):
    return sorted(os.path.dirname(path) for path in glob.glob(os.path.join(cache, "*", "complete")))


def unpack_kernel(cache):
    """That kernel below `cache`: its folder and its version. Where it cannot be had, one that is there."""
    try:
        package = kernel_package()
        folder = os.path.join(cache, package)
        if not os.path.exists(os.path.join(folder, "complete")):
            download(package, folder)
    except GuestError:
        if not kept_kernels(cache):
            raise
        folder = kept_kernels(cache)[-1]
    return folder, os.path.basename(folder).removeprefix("linux-image-")


def download(package, folder):
    os.makedirs(folder, exist_ok=True)
    for old in glob.glob(os.path.join(folder, "*.deb")):
        os.remove(old)
    try:
        run("apt-get", "-q", "download", package, cwd=folder)
    except GuestError:
        # The sources may have moved on since they were listed.
        run("apt-get", "-q", "update")
        run("apt-get", "-q", "download", package, cwd=folder)
    run("dpkg-deb", "-x", glob.glob(os.path.join(folder, "*.deb"))[0], folder)
    open(os.path.join(folder, "complete"), "w", encoding="ascii").close()


def libraries(program):
    """Paths of what the loader maps for it."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    return re.findall(r"(/\S+) \(0x", listed)


class Archive:
    """A cpio archive as kernels read it."""

    def __init__(self, path):
        self.file = open(path, "wb")
        self.count = 0
        self.folders = set()

    def add(self, name, mode, data=b"", device=(0, 0)):
        for end in [i for i, c in enumerate(name) if c == "/"]:
            if name[:end] not in self.folders:
                self.folders.add(name[:end])
                self.append(name[:end], stat.S_IFDIR | 0o755, b"", (0, 0))
        self.append(name, mode, data, device)

    def add_file(self, name, path, mode=0o755):
        with open(path, "rb") as source:
            self.add(name, stat.S_IFREG | mode, source.read())

    def append(self, name, mode, data, device):
        self.count += 1
        fields = (self.count, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name) + 1, 0)
        self.file.write(b"070701" + b"".join(b"%08X" % field for field in fields))
        for part in (name.encode() + b"\0", data):
            self.file.write(part)
            self.file.write(b"\0" * (-self.file.tell() % 4))

    def close(self):
        self.append("TRAILER!!!", 0, b"", (0, 0))
        self.file.close()


def make_initramfs(path, kernel, version, programs, commands):
    archive = Archive(path)
    archive.add("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))
    for folder in ("proc", "sys", "etc"):
        archive.add(folder, stat.S_IFDIR | 0o755)
    archive.add("init", stat.S_IFREG | 0o755, INIT.encode())
    for number, command in enumerate(commands, 1):
        archive.add(f"command.{number}", stat.S_IFREG | 0o644, command.encode())
    archive.add_file("bin/busybox", "/bin/busybox")
    modules = os.path.join(kernel, "lib/modules", version, "kernel")
    for number, module in enumerate(MODULES):
        archive.add_file(f"modules/{number:02}-{os.path.basename(module)}.ko",
                         os.path.join(modules, module + ".ko"), 0o644)
    providers = glob.glob(PROVIDER)
    if not providers:
        raise GuestError("ibverbs-providers is not installed")
    archive.add_file(providers[0][1:], providers[0])
    archive.add("etc/libibverbs.d/rxe.driver", stat.S_IFREG | 0o644, b"driver rxe\n")
    tools = ["/usr/bin/rdma", *programs]
    for tool in tools:
        archive.add_file("bin/" + os.path.basename(tool), tool)
    needed = set(ALSO)
    for file in tools + providers[:1]:
        needed.update(libraries(file))
    for library in sorted(needed):
        archive.add_file(library[1:], library)
    archive.close()


def qemu(kernel, version, initramfs, network, words=""):
    return [
        "qemu-system-x86_64", "-M", "q35", "-accel", "tcg,thread=multi", "-cpu", "max",
        "-m", "1536", "-smp", "2", "-nodefaults", "-no-reboot", "-display", "none",
        "-serial", "stdio", "-device", "isa-debug-exit,iobase=0xf4,iosize=4",
        "-kernel", os.path.join(kernel, "boot", "vmlinuz-" + version), "-initrd", initramfs,
        "-append", "console=ttyS0 quiet panic=-1" + words, *network,
    ]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def cable(port, number):
    """A network card whose cable leads to the other guest: the first one waits for it."""
    side = "listen" if number == 1 else "connect"
    return ["-netdev", f"socket,id=cable,{side}=127.0.0.1:{port}",
            "-device", f"e1000,netdev=cable,mac=52:54:00:00:00:0{number}"]


def show(process, prefix, on_line=lambda line: None):
    for line in process.stdout:
        print(prefix + line.rstrip(), flush=True)
        on_line(line)


def boot(kernel, version, initramfs, is_pair, timeout_s):
    """Returns the status that the guest tells."""
    running = []

    def start(network, words):
        process = subprocess.Popen(qemu(kernel, version, initramfs, network, words),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                                   errors="replace")
        running.append(process)
        return process

    def end_second(line):
        if line.strip() == END_SECOND:
            running[1].kill()

    try:
        port = free_port()
        first = start(cable(port, 1) if is_pair else [], " guest=1" if is_pair else "")
        on_line = end_second if is_pair else lambda line: None
        threading.Thread(target=show, args=(first, "1: " if is_pair else "", on_line)).start()
        if is_pair:
            time.sleep(1)
            second = start(cable(port, 2), " guest=2")
            threading.Thread(target=show, args=(second, "2: ")).start()
        status = first.wait(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        print(f"guest: not done after {timeout_s} s", file=sys.stderr)
        return NOT_TOLD
    finally:
        for process in running:
            process.kill()
            process.wait()
    return status // 2 - TOLD if status % 2 == 1 and status // 2 >= TOLD else NOT_TOLD


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help="are in the guest's /bin")
    parser.add_argument("--command", required=True, help="a line for the guest's shell")
    parser.add_argument("--second", metavar="COMMAND", help="another guest's, on one network")
    parser.add_argument("--timeout", type=int, default=600, help="seconds (default 600)")
    parser.add_argument("--cache", default=os.path.join(
        os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "onetrip", "guest"),
        help="where kernels are kept (default %(default)s)")
    arguments = parser.parse_args()
    started = time.monotonic()
    # What is running, and what is on the disk, is taken away.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(NOT_TOLD))
    initramfs = ""
    try:
        os.makedirs(arguments.cache, exist_ok=True)
        kernel, version = unpack_kernel(arguments.cache)
        initramfs = os.path.join(arguments.cache, f"initramfs.{os.getpid()}")
        is_pair = arguments.second is not None
        commands = [arguments.command] + ([arguments.second] if is_pair else [])
        make_initramfs(initramfs, kernel, version, arguments.programs, commands)
        status = boot(kernel, version, initramfs, is_pair, arguments.timeout)
    except (GuestError, OSError) as error:
        print(f"guest: {error}", file=sys.stderr)
        status = NOT_TOLD
    finally:
        if os.path.exists(initramfs):
            os.remove(initramfs)
    print(f"guest: status {status} after {time.monotonic() - started:.0f} s, kernel included")
    return status


if __name__ == "__main__":
    sys.exit(main())
