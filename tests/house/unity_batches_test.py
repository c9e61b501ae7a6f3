#!/usr/bin/env python3
"""Tests of cmake/unity_batches.py: which files may be compiled as one."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "cmake"))
import unity_batches  # noqa: E402


def in_anonymous(text):
    return "namespace onetrip {\nnamespace {\n" + text + "\n}  // namespace\n}  // namespace onetrip\n"


class BatchesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        unity_batches.read.cache_clear()
        unity_batches.header_names.cache_clear()

    def batches(self, limit=100, **files):
        paths = []
        for name, text in files.items():
            name = name.replace("_h", ".h") if name.endswith("_h") else name + ".cc"
            path = os.path.join(self.root, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            if name.endswith(".cc"):
                paths.append(path)
        return [[os.path.basename(path)[:-3] for path in batch]
                for batch in unity_batches.batches_of(self.root, paths, limit)]

    def test_files_without_names_in_common_are_together(self):
        one = in_anonymous("constexpr int kOne = 1;\nint Count(int a) {\n  int kTwo = 2;\n  return kTwo;\n}")
        self.assertEqual(self.batches(a=one, b=in_anonymous("constexpr int kTwo = 2;")), [["a", "b"]])

    def test_files_that_declare_the_same_name_are_apart(self):
        for text in ["constexpr int kOne = 1;", "struct kOne {", "enum class kOne : int {", "using kOne = int;",
                     "std::vector<int> kOne(const std::string& text) {", "Task<Result<int>> kOne(int) {",
                     "const char* const kOne[] = {", "MATCHER_P(kOne, other, \"\") {"]:
            both = self.batches(a=in_anonymous(text), b=in_anonymous("int kOne(int) {"), c=in_anonymous("int c;"))
            self.assertEqual(both, [["a", "c"], ["b"]], text)

    def test_members_of_a_class_are_no_names_of_a_file(self):
        self.assertEqual(self.batches(a="void A::Run(int) {\n}\n", b="void B::Run() {\n}\n"), [["a", "b"]])

    def test_what_a_header_declares_is_in_the_way_of_an_own_name_elsewhere(self):
        files = {"in_h": "struct Change {\n", "over_h": '#include "in.h"\n',
                 "b": '#include "over.h"\n', "c": in_anonymous("int c;")}
        self.assertEqual(self.batches(a=in_anonymous("enum Change {"), **files), [["a", "c"], ["b"]])
        unity_batches.read.cache_clear()
        self.assertEqual(self.batches(a="void Change(int) {\n", **files), [["a", "b", "c"]])

    def test_a_batch_has_an_end(self):
        self.assertEqual(self.batches(limit=2, a="\n", b="\n", c="\n", d="\n\n\n"), [["a", "b"], ["c"], ["d"]])


if __name__ == "__main__":
    unittest.main()
