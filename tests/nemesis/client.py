"""nemesis_client as a child process, and its report in words."""

import collections
import contextlib
import json
import subprocess
import threading

FINISH_S = 300
SHOWN_GAPS = 3


class NemesisClient:
    def __init__(self, program, addresses, seed, out, flags=()):
        command = [program, "--seed", str(seed), "--history-dir", out, *flags]
        for address in addresses:
            command += ["--agent", address]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        self._lock = threading.Lock()

    def tell(self, line):
        # One that has ended is told of by finish(), which closes its input (ValueError).
        with self._lock, contextlib.suppress(BrokenPipeError, ValueError):
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()

    def finish(self):
        """Its report, when it has checked everything."""
        output, _ = self.process.communicate(timeout=FINISH_S)
        findings = json.loads(output) if output else {"failures": []}
        if self.process.returncode not in (0, 1) or not output:
            findings["failures"].append("nemesis_client ended with code %d" %
                                        self.process.returncode)
        return findings

    def kill(self):
        self.process.kill()
        self.process.wait()


def kinds_during(log, begin, end):
    """The kinds of the faults that were under way at some time in between."""
    return ", ".join(sorted({kind for kind, _, first, last in log
                             if first < end and last > begin})) or "no fault"


def table_of_gaps(findings, log):
    """kinds -> command -> longest gap in ms while faults of these kinds, and no others, happened."""
    table = collections.defaultdict(dict)
    for command, gaps in findings["longest_gap_ms"].items():
        for gap in gaps:
            kinds = kinds_during(log, gap["from_s"], gap["from_s"] + gap["ms"] / 1000)
            table[kinds].setdefault(command, gap["ms"])  # They come longest first.
    return table


def table_of_unknowns(findings, log):
    """kinds -> Counter of commands whose outcome is unknown, by the second."""
    table = collections.defaultdict(collections.Counter)
    for at in findings["unknown_at"]:
        table[kinds_during(log, at["s"], at["s"] + 1)].update(at["commands"])
    return table


def in_words(counts):
    return ", ".join("%d %s" % (count, name) for name, count in counts.items()) or "none"


def print_report(findings, log, started):
    if "commands" not in findings:
        return
    print("faults: %d: %s" % (len(log), in_words(collections.Counter(
        kind for kind, _, _, _ in sorted(log)))))
    print("operations: %d in %.0f s: %s" % (sum(findings["commands"].values()),
                                            findings["seconds"], in_words(findings["commands"])))
    print("outcomes unknown: %d; connections lost: %d; refused or unknown by word: %s" % (
        findings["unknown"], findings["connections_lost"], in_words(findings["errors"])))
    for kinds, commands in sorted(table_of_unknowns(findings, log).items()):
        print("  unknown during %s: %s" % (kinds, in_words(commands)))
    print("generations checked: %d, %d configurations, %d counts left out" % (
        findings["generations"], findings["configurations"], findings["counts_left"]))
    for counter in findings["counters"]:
        print("counter: %d acknowledged, %d unknown, value %d" % (
            counter["acknowledged"], counter["unknown"], counter["value"]))
    print("keys written once: %d, and %d of unknown outcome" % (
        findings["written_once"], findings["written_once_unknown"]))
    print("new keys: %(acknowledged)d acknowledged, %(unknown)d unknown, %(refused)d refused, "
          "%(deleted)d deleted again; %(read_back)d reads of them" % findings["grown"])
    print("deadlines: %(written)d written, %(read_alive)d reads found them, %(read_gone)d found them "
          "gone" % findings["deadlines"])
    for command, gaps in findings["longest_gap_ms"].items():
        if not gaps:
            continue
        print("longest gaps of %s: %s" % (command.upper(), "; ".join(
            "%.0f ms from %.2f s on (agent %d)" % (gap["ms"], gap["from_s"] - started, gap["agent"])
            for gap in gaps[:SHOWN_GAPS])))
    print("longest gap in ms, by what happened meanwhile:")
    for kinds, gaps in sorted(table_of_gaps(findings, log).items()):
        print("  %s: %s" % (kinds, ", ".join(
            "%s %.0f" % (command.upper(), ms) for command, ms in gaps.items())))
