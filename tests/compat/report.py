"""Counts what passed and what failed, and runs tests against live processes."""

import os
import time
import traceback

import live


class Report:
    def __init__(self, verbose):
        self.verbose = verbose
        self.passed = 0
        self.failures = []
        self.skips = []

    def passing(self, name, seconds):
        self.passed += 1
        if self.verbose:
            print("ok    %s (%.2f s)" % (name, seconds), flush=True)

    def failing(self, name, text):
        self.failures.append(name)
        print("FAIL  %s\n    %s" % (name, text), flush=True)

    def skipped(self, name, text):
        self.skips.append(name)
        print("skip  %s: %s" % (name, text), flush=True)

    def add(self, other):
        """Counts what another report has counted."""
        self.passed += other.passed
        self.failures += other.failures
        self.skips += other.skips


def run_live(tests, context, report):
    for name, function in tests:
        started = time.monotonic()
        try:
            function(context)
            report.passing(name, time.monotonic() - started)
        except live.Skip as skip:
            report.skipped(name, skip)
        except AssertionError as error:
            line = traceback.extract_tb(error.__traceback__)[-1]
            report.failing(name, "%s (%s:%d)" % (error or line.line,
                                                 os.path.basename(line.filename), line.lineno))
        except Exception as error:  # pylint: disable=broad-except
            report.failing(name, "%s: %s" % (type(error).__name__, error))
