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
                     "redis_compat/protocol/resp.h", "frontend/worker.h"]:
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
        self.expect_violation("client_core/kv/x.cc", '#include "redis_compat/protocol/resp.h"\n',
                              "may not include redis_compat")

    def test_families_of_commands_do_not_know_each_other(self):
        self.write("redis_compat/commands/keys/handlers.h",
                   header("redis_compat/commands/keys/handlers.h"))
        text = '#include "redis_compat/commands/keys/handlers.h"\n'
        self.expect_no_violation("redis_compat/commands/table.cc", text)
        self.expect_violation("redis_compat/commands/strings/x.cc", text,
                              "may not include redis_compat/commands/keys")

    def test_only_embedded_joins_agent_memory_node_and_master(self):
        text = '#include "master/membership.h"\n#include "memnode/region.h"\n'
        self.expect_no_violation("frontend/storage/embedded.cc", text)
        self.expect_violation("frontend/worker.cc", '#include "memnode/region.h"\n',
                              "frontend may not include memnode")

    def test_admin_stands_above_the_frontend_and_only_main_joins_them(self):
        self.write("frontend/admin/admin.h", header("frontend/admin/admin.h"))
        self.write("frontend/server.h", header("frontend/server.h"))
        text = '#include "frontend/admin/admin.h"\n'
        self.expect_no_violation("frontend/main.cc", text)
        self.expect_no_violation("frontend/admin/x.cc", '#include "frontend/server.h"\n')
        self.expect_violation("frontend/server.cc", text, "may not include frontend/admin")

    def test_storage_does_not_know_the_server(self):
        self.write("frontend/server.h", header("frontend/server.h"))
        self.expect_violation("frontend/storage/x.cc", '#include "frontend/server.h"\n',
                              "may not include frontend")

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
        path = "tests/unit/kv_x_test.cc"
        self.expect_no_violation(path, "// line\n" * house_check.LINES_MAX)
        self.expect_violation(path, "// line\n" * (house_check.LINES_MAX + 1),
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

    def test_long_production_file(self):
        limit = house_check.PRODUCTION_LINES_MAX
        self.expect_no_violation("client_core/kv/x.cc", "// line\n" * limit)
        self.expect_no_violation("tests/unit/kv_x_test.cc", "// line\n" * (limit + 1))
        self.expect_violation("client_core/kv/x.cc", "// line\n" * (limit + 1), "501 lines")

    def function(self, lines, head="void F() {\n"):
        return head + "  Step();\n" * (lines - 2) + "}\n"

    def test_long_function(self):
        limit = house_check.FUNCTION_LINES_MAX
        path = "client_core/kv/x.cc"
        self.expect_no_violation(path, self.function(limit))
        self.expect_violation(path, self.function(limit + 1), "F has 71 lines")
        self.expect_violation(path, "namespace a {\nKv::Kv(int a)\n    : a_(a),\n" +
                              self.function(limit + 1, "      b_{a} {\n") + "}\n",
                              "Kv::Kv has 71 lines")
        # Braces in strings, characters and comments are none; nor is a table a function.
        self.expect_no_violation(path, self.function(limit, 'void F() {  // {\n') +
                                 "const char* kOpen = \"{\";\nconst char kBrace = '{';\n/* { */\n" +
                                 self.function(limit + 9, "Row kRows[] = {\n").replace("}", "};"))

    def test_functions_and_classes_are_told_from_what_looks_alike(self):
        functions, classes = house_check.source_text.scan(
            "namespace a {\n"
            "class X : public Y {\n"
            " public:\n"
            "  X() : a_(1), b_{2} {}\n"
            "  ~X() = default;\n"
            "  X(const X&) = delete;\n"
            "  bool operator==(const X& x) const { return a_ == x.a_; }\n"
            "  template <typename T>\n"
            "  auto G(std::function<void(T)> t) -> std::vector<T> { return {t}; }\n"
            "  [[nodiscard]] Task<void> H(int a,\n"
            "                             int b = 3) override;\n"
            "  struct Inner { int F() { return 1; } int f = F(); };\n"
            " private:\n"
            "  friend bool Friend(const X& x);\n"
            "  std::function<void(int)> f_;\n"
            "  void (*pointer_)(int) = nullptr;\n"
            "  int a_ GUARDED_BY(mutex_);\n"
            "  std::array<int, 2> b_ = {F(1), 2};\n"
            "};\n"
            "std::map<int, int> m = {{1, 2}};\n"
            "Row rows[] = {{.name = Name(\"x\")}};\n"
            "Task<int> X::H(int a, int b) { auto f = [](int x) { return x; }; co_return f(a); }\n"
            "}\n")
        self.assertEqual([function.name for function in functions],
                         ["X::X", "X::operator==", "X::G", "X::Inner::F", "X::H"])
        self.assertEqual([(item.name, item.methods) for item in classes],
                         [("X::Inner", 1), ("X", 4)])

    def test_class_with_many_methods(self):
        path, limit = "client_core/kv/x.h", house_check.CLASS_METHODS_MAX
        methods = "".join(f"  void F{number}();\n" for number in range(limit))
        self.expect_no_violation(path, header(path, f"class X {{\n{methods}  int a_ = F();\n}};"))
        self.expect_violation(path, header(path, "class X {\n" + methods + "  X();\n};"),
                              "X has 61 methods")

    def protocols(self):
        self.write("client_core/PROTOCOLS.md",
                   "# Protocols\n\n## Memory: `memory/`\n\n### The reserve\n\n"
                   "**A guess that is everywhere.** Text.\n\n- **Waiting**: text.\n\n"
                   "```\n## No heading\n```\n")

    def test_reference_to_a_heading(self):
        self.protocols()
        path = "client_core/kv/x.cc"
        for right in ['// See PROTOCOLS, "The reserve".',
                      '// (PROTOCOLS, "The\n// reserve" and "Memory")',
                      '// client_core/PROTOCOLS.md, "A guess that is everywhere"',
                      '// PROTOCOLS "Waiting", 2 to 5', "// Compaction (PROTOCOLS)"]:
            self.expect_no_violation(path, right + "\n")
        for wrong in ['// PROTOCOLS, "The reserves"', '// PROTOCOLS, "Memory" and "The reserves"',
                      '// PROTOCOLS.md, "No\n// heading"']:
            self.expect_violation(path, wrong + "\n", "has no heading")
        for wrong in ["// (FUSEE 4; PROTOCOLS 3.4)", "// PROTOCOLS\n// 4, Insert"]:
            self.expect_violation(path, wrong + "\n", "no numbered sections")

    def test_reference_to_a_page(self):
        self.write("docs/MASTER.md", "# The master\n\n## An agent's end\n")
        path = "client_core/kv/x.cc"
        self.expect_no_violation(path, '// docs/MASTER.md, "An agent\'s end"; MASTER.md\n')
        self.expect_violation(path, "// See docs/MASTERS.md.\n", "there is no page docs/MASTERS.md")
        self.expect_violation(path, "// See SLAVE.md.\n", "there is no page SLAVE.md")
        self.expect_violation(path, "// See kv/README.md.\n", "there is no page kv/README.md")

    def test_reference_to_a_file(self):
        path = "client_core/kv/x.cc"
        self.expect_no_violation(path, "// kv/kv.h, kv.h, base/status.*, <sys/mman.h>\n")
        for wrong in ["kv/nothing.h", "nothing.cc", "kv/nothing.*"]:
            self.expect_violation(path, f"// See {wrong}.\n", f"{wrong} is no file of ours")

    def test_links_of_a_page(self):
        self.write("docs/MASTER.md", "# The master\n\n## An agent's end\n")
        path = "docs/PAGE.md"
        self.expect_no_violation(path, "[a](MASTER.md#an-agents-end), [b](../client_core), "
                                       "[c](https://redis.io/x.md)\n")
        self.expect_violation(path, "[a](SLAVE.md)\n", "leads nowhere")
        self.expect_violation(path, "[a](MASTER.md#forming)\n", "no anchor #forming")

    def test_packages_of_npm_are_not_ours(self):
        self.expect_no_violation("tests/clients/node_modules/a/README.md", "[a](NOWHERE.md)\n")

    def test_old_words(self):
        path = "client_core/kv/x.cc"
        for wrong in ["// Under a hold.", "ViewHold hold;", "Presence presence_in(Now());", "Door d;",
                      "Take(estate);", "// It is left aside.", "LeaveAside(node);", "SetAtOnce(key);",
                      "// See write_at_once.", "GetSlowly(key);", "MemoryBudget::Turn turn;",
                      "// The books.", "// For nobody.", "// So many bytes.", "// Ask him."]:
            self.expect_violation(path, wrong + "\n", "is an old word")
        for right in ["// Nodes that hold it.", "// In the presence of faults.", "Doorbell bell;",
                      "// Set at once.", "kCellsAtOnce", "// The state.", "// There are many."]:
            self.expect_no_violation(path, right + "\n")

    def test_old_words_of_a_page(self):
        path = "docs/PAGE.md"
        self.expect_no_violation(path, "`ViewHold`\n\n```\nnobody\n```\n")
        self.expect_violation(path, "For nobody.\n", "is an old word")

    def test_comment_without_a_subject(self):
        path = "client_core/kv/x.cc"
        for wrong in ["// What a node has.", "// Whether it is there.", "int a;  // of the node"]:
            self.expect_violation(path, wrong + "\n", "does not begin with")
        self.expect_no_violation(path, "// The node tells\n// what it has.\nF(\"// What\");\n")

    def debts(self, text):
        self.write(house_check.DEBTS, text)

    def test_a_debt_allows_what_is_there_and_no_more(self):
        path = "client_core/kv/x.cc"
        self.write(path, self.function(80) + "// Nobody.\n// Nobody.\n")
        self.debts(f"# Comment\nfunction_lines {path}:F 80\nwords {path} 2\n")
        self.assertEqual(house_check.check_layout(self.root), [])
        self.debts(f"function_lines {path}:F 79\nwords {path} 3\n")
        found = house_check.check_layout(self.root)
        self.assertEqual(len(found), 1, found)
        self.assertIn("allows 79, here are 80", found[0])
        self.debts(f"function_lines {path}:F 80\nwords {path} 1\n")
        self.assertEqual(len(house_check.check_layout(self.root)), 2)

    def test_a_debt_that_is_paid_goes(self):
        self.debts("words client_core/kv/gone.cc 2\n")
        found = house_check.check_layout(self.root)
        self.assertEqual(len(found), 1, found)
        self.assertIn("is paid; take the line out", found[0])

    def test_a_debt_that_makes_no_sense(self):
        self.debts("words client_core/kv/x.cc\n")
        found = house_check.check_layout(self.root)
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(house_check.DEBTS + ":1: "), found)

    def test_the_list_of_debts_covers_itself(self):
        path = "client_core/kv/x.cc"
        self.write(path, self.function(80) + "// Nobody.\n// PROTOCOLS 4\n" + "\n" * 500)
        self.protocols()
        self.assertEqual(len(house_check.check_layout(self.root)), 4)
        self.debts(house_check.debts.render(house_check.find_debts(self.root)))
        self.assertEqual(house_check.check_layout(self.root), [])

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
