#!/usr/bin/env python3
"""Plants one violation of each rule in an empty house and expects house_check.py to name it."""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import house_check  # noqa: E402

COMPILER = os.environ.get("CXX", "c++")


def header(path, body=""):
    guard = "ONETRIP_" + path.replace("/", "_").replace(".", "_").upper() + "_"
    return f"#ifndef {guard}\n#define {guard}\n{body}\n#endif\n"


class HouseCheck(unittest.TestCase):

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.root = self._folder.name
        for path in ["client_core/base/status.h", "client_core/kv/kv.h", "client_core/fabric/shm.h",
                     "client_core/cluster/view.h", "memnode/region.h", "master/membership.h",
                     "redis_compat/resp.h", "frontend/worker.h"]:
            self.write(path, header(path))

    def tearDown(self):
        self._folder.cleanup()

    def write(self, path, text):
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)

    def expect_violation(self, path, text, words):
        self.write(path, text)
        found = house_check.check_layout(self.root)
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(path + ":"), found)
        self.assertIn(words, found[0])

    def expect_no_violation(self, path, text):
        self.write(path, text)
        self.assertEqual(house_check.check_layout(self.root), [])

    def test_lower_folder_may_not_include_a_higher_one(self):
        self.expect_violation("client_core/base/x.cc", '#include "client_core/kv/kv.h"\n',
                              "client_core/base may not include client_core/kv")

    def test_higher_folder_may_include_lower_ones(self):
        self.expect_no_violation("client_core/kv/x.cc",
                                 '#include "client_core/base/status.h"\n'
                                 '#include "client_core/fabric/shm.h"\n')

    def test_a_view_is_taken_anew_after_a_wait(self):
        body = "  const View& view = context_.view();\n  co_await Post(view);\n%s  Use(%s);\n}\n"
        self.expect_violation("client_core/kv/x.cc", body % ("", "view.replicas"), "take `view` anew")
        self.expect_no_violation("client_core/kv/x.cc", body % ("", "context_.view().replicas"))
        self.expect_no_violation("client_core/kv/x.cc",
                                 body % ("  const View& view = context_.view();\n", "view.replicas"))

    def test_fabric_and_cluster_do_not_know_each_other(self):
        self.expect_violation("client_core/fabric/x.cc", '#include "client_core/cluster/view.h"\n',
                              "may not include client_core/cluster")

    def test_master_does_not_know_the_fabric(self):
        self.expect_violation("master/x.cc", '# include "client_core/fabric/shm.h"\n',
                              "master may not include client_core/fabric")

    def test_memnode_does_not_know_the_kv(self):
        self.expect_violation("memnode/x.cc", '#include "client_core/kv/kv.h"\n',
                              "memnode may not include client_core/kv")

    def test_kv_does_not_know_redis(self):
        self.expect_violation("client_core/kv/x.cc", '#include "redis_compat/resp.h"\n',
                              "may not include redis_compat")

    def test_only_embedded_joins_agent_memory_node_and_master(self):
        text = '#include "master/membership.h"\n#include "memnode/region.h"\n'
        self.expect_no_violation("frontend/embedded.cc", text)
        self.expect_violation("frontend/worker.cc", '#include "memnode/region.h"\n',
                              "frontend may not include memnode")

    def test_layers_do_not_include_tests(self):
        self.write("tests/support/cluster.h", header("tests/support/cluster.h"))
        self.expect_violation("client_core/kv/x.cc", '#include "tests/support/cluster.h"\n',
                              "belongs to no layer")

    def test_include_paths_start_at_the_root(self):
        self.expect_violation("client_core/base/x.cc", '#include "status.h"\n', "no path from")

    def test_heavy_headers_stay_behind_ours(self):
        self.expect_violation("client_core/kv/x.cc", "#include <spdlog/spdlog.h>\n", "is heavy")
        self.expect_violation("client_core/kv/x.cc", "#include <CLI/CLI.hpp>\n", "is heavy")

    def test_long_file(self):
        self.expect_no_violation("client_core/kv/x.cc", "// line\n" * house_check.LINES_MAX)
        self.expect_violation("client_core/kv/x.cc", "// line\n" * (house_check.LINES_MAX + 1),
                              "601 lines")

    def test_long_script(self):
        self.expect_violation("scripts/x.sh", "# line\n" * 601, "601 lines")

    def test_wrong_include_guard(self):
        self.expect_violation("client_core/kv/x.h", "#pragma once\n", "include guard")

    def test_header_that_is_named_after_nothing(self):
        path = "client_core/kv/string_util.h"
        self.expect_violation(path, header(path), "after what it holds")

    def test_using_namespace_in_a_header(self):
        path = "client_core/kv/x.h"
        self.expect_violation(path, header(path, "using namespace std;"), "using-namespace")

    def test_unfinished_work(self):
        self.expect_violation("client_core/kv/x.cc", "// TO" + "DO: later\n", "finish it")

    def test_private_made_public(self):
        self.expect_violation("tests/unit/kv_x_test.cc", "#define private public\n", "TEST_")

    def test_unit_test_that_no_program_holds(self):
        self.expect_violation("tests/unit/mystery_test.cc", "\n", "no test program")
        os.remove(os.path.join(self.root, "tests/unit/mystery_test.cc"))
        self.expect_no_violation("tests/unit/kv_test.cc", "\n")

    def test_build_folders_are_not_ours(self):
        self.expect_no_violation("build/dev/x.cc", '#include "nothing.h"\n')

    def test_headers_that_compile_alone(self):
        self.assertEqual(house_check.check_headers(self.root, COMPILER, []), [])

    def test_header_that_needs_another(self):
        path = "client_core/kv/x.h"
        self.write(path, header(path, "inline std::string Name() { return {}; }"))
        found = house_check.check_headers(self.root, COMPILER, [])
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(path + ":1: does not compile alone"), found)
        # Not first: something that it needs may stand before it.
        self.write("client_core/kv/y.cc", f'#include <string>\n#include "{path}"\n')
        self.assertEqual(len(house_check.check_headers(self.root, COMPILER, [])), 1)
        # The build compiles that file, and tells what the header lacks.
        self.write("client_core/kv/y.cc", f'// Of it.\n#include "{path}"\n')
        self.assertEqual(house_check.check_headers(self.root, COMPILER, []), [])
        os.remove(os.path.join(self.root, "client_core/kv/y.cc"))


if __name__ == "__main__":
    unittest.main()
