"""nemesis_client as a child process, and its report in words."""

import collections
import json
import os
import subprocess
import threading

FINISH_S = 300
SHOWN_GAPS = 3


class NemesisClient:
    def __init__(self, program, addresses, seed):
        command = [program, "--seed", str(seed), "--history-dir", os.getcwd()]
        for address in addresses:
            command += ["--agent", address]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        self._lock = threading.Lock()

    def tell(self, line):
        with self._lock:
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


def overlapping(log, begin, end):
    texts = [kind for kind, _, first, last in log if first < end and last > begin]
    return ", ".join(texts) or "no fault"


def print_report(findings, log):
    if "commands" not in findings:
        return
    kinds = collections.Counter(kind for kind, _, _, _ in log)
    print("faults: %d: %s" % (len(log), ", ".join(
        "%d %s" % (count, kind) for kind, count in sorted(kinds.items()))))
    print("operations: %d in %.0f s: %s" % (
        sum(findings["commands"].values()), findings["seconds"],
        ", ".join("%d %s" % (count, name) for name, count in findings["commands"].items())))
    print("outcomes unknown: %d; connections lost: %d; refused or unknown by word: %s" % (
        findings["unknown"], findings["connections_lost"], findings["errors"]))
    print("generations checked: %d, %d configurations, %d counts left out" % (
        findings["generations"], findings["configurations"], findings["counts_left"]))
    for counter in findings["counters"]:
        print("counter: %d acknowledged, %d unknown, value %d" % (
            counter["acknowledged"], counter["unknown"], counter["value"]))
    print("keys written once: %d, and %d of unknown outcome" % (
        findings["written_once"], findings["written_once_unknown"]))
    for command, gaps in findings["longest_gap_ms"].items():
        print("longest gaps of %s: %s" % (command.upper(), "; ".join(
            "%.1f ms (agent %d; %s)" % (
                gap["ms"], gap["agent"],
                overlapping(log, gap["from_s"], gap["from_s"] + gap["ms"] / 1000))
            for gap in gaps[:SHOWN_GAPS])))
