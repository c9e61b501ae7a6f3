// Workloads: the same seed gives the same program, no value twice, and text that reads back.
#include "tests/support/workload.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/support/command_model.h"

namespace onetrip {
namespace {

WorkloadOptions OptionsOf(const Mix& mix) {
  WorkloadOptions options;
  options.operations = 40;
  ApplyMix(mix, &options);
  return options;
}

// The values that a program writes as wholes.
std::vector<std::string> ValuesOf(const Program& program) {
  std::vector<std::string> values;
  for (const auto& commands : program) {
    for (const Command& command : commands) {
      const std::string& name = command[0];
      if (name == "SET" || name == "SETNX" || name == "GETSET") values.push_back(command[2]);
      for (size_t i = 2; name == "MSET" && i < command.size(); i += 2) values.push_back(command[i]);
    }
  }
  return values;
}

TEST(Workloads, AreTheSameForTheSameSeedOnly) {
  for (const Mix& mix : Mixes()) {
    const WorkloadOptions options = OptionsOf(mix);
    EXPECT_EQ(MakeProgram(7, options), MakeProgram(7, options)) << mix.name;
    EXPECT_NE(MakeProgram(7, options), MakeProgram(8, options)) << mix.name;
  }
}

TEST(Workloads, WriteNoValueTwice) {
  for (const Mix& mix : Mixes()) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      const std::vector<std::string> values = ValuesOf(MakeProgram(seed, OptionsOf(mix)));
      const std::set<std::string> different(values.begin(), values.end());
      EXPECT_EQ(values.size(), different.size()) << mix.name << ", seed " << seed;
    }
  }
}

TEST(Workloads, KeepToTheirKindsKeysAndSizes) {
  WorkloadOptions options;
  options.clients = 6;
  options.operations = 500;
  options.hot_keys = 2;
  options.cold_keys = 3;
  options.hot_percent = 75;
  options.number_percent = 0;
  options.value_bytes = {100, 5000};
  options.kinds = {{CommandKind::kGet, 3}, {CommandKind::kSet, 1}};
  std::map<std::string, int> names;
  std::map<char, int> keys;
  for (const auto& commands : MakeProgram(1, options)) {
    EXPECT_EQ(commands.size(), 500U);
    for (const Command& command : commands) {
      ++names[command[0]];
      ++keys[command[1][0]];
      if (command[0] != "SET") continue;
      EXPECT_TRUE(command[2].size() == 100 || command[2].size() == 5000) << command[2].size();
    }
  }
  // 3000 draws: ten standard deviations are about 240 and 240.
  EXPECT_NEAR(names["GET"], 2250, 240);
  EXPECT_NEAR(keys['h'], 2250, 240);
  EXPECT_EQ(names.size(), 2U);
}

TEST(Workloads, ConsistOfCommandsThatTheModelKnows) {
  for (const Mix& mix : Mixes()) {
    std::set<std::string> names;
    for (const auto& commands : MakeProgram(3, OptionsOf(mix))) {
      for (const Command& command : commands) {
        HistoryOp op;
        op.argv = command;
        op.reply = "+OK\r\n";
        op.ending = Ending::kAnswered;
        std::vector<HistoryOp> steps;
        SplitByKey(op, &steps);
        ASSERT_FALSE(steps.empty()) << mix.name;
        for (const HistoryOp& step : steps) {
          CommandModel model;
          CompiledOp compiled;
          std::string error;
          ASSERT_TRUE(model.Compile(step, &compiled, &error)) << error;
          EXPECT_NE(compiled.verb, CompiledOp::Verb::kRefused) << DescribeOp(step);
        }
        names.insert(command[0]);
      }
    }
    EXPECT_GE(names.size(), 3U) << mix.name;
  }
  EXPECT_EQ(FindMix("no such mix"), nullptr);
  EXPECT_EQ(FindMix("mixed")->name, "mixed");
}

TEST(Workloads, FlushWholeDatabases) {
  WorkloadOptions options;
  options.operations = 100;
  options.kinds = {{CommandKind::kFlush, 1}, {CommandKind::kSet, 1}};
  std::map<std::string, int> names;
  for (const auto& commands : MakeProgram(1, options)) {
    for (const Command& command : commands) {
      ++names[command[0]];
      EXPECT_EQ(IsOfAllKeys(command), command[0] != "SET");
      EXPECT_EQ(KeyOf(command).empty(), IsOfAllKeys(command));
    }
  }
  EXPECT_EQ(names.size(), 3U);
  EXPECT_GT(names["FLUSHALL"], 0);
  EXPECT_GT(names["FLUSHDB"], 0);
}

TEST(Workloads, OfSeveralKeysNameDifferentOnes) {
  for (const auto& commands : MakeProgram(5, OptionsOf(*FindMix("multi")))) {
    for (const Command& command : commands) {
      const size_t step = command[0] == "MSET" ? 2 : 1;
      std::set<std::string> keys;
      for (size_t i = 1; i < command.size(); i += step) {
        if (command[0] == "SET" && i == 2) continue;
        EXPECT_TRUE(keys.insert(command[i]).second) << command[0];
      }
    }
  }
}

TEST(SmallPrograms, HaveTheShapesThatFindPlantedBugs) {
  const Program program = MakeSmallProgram("W W WI RW R");
  const Program expected = {{{"SET", "k", "1010"}},
                            {{"SET", "k", "2010"}},
                            {{"SET", "k", "3010"}, {"INCR", "k"}},
                            {{"GET", "k"}, {"SET", "k", "4020"}},
                            {{"GET", "k"}}};
  EXPECT_EQ(program, expected);
  EXPECT_EQ(SmallShapes().size(), 12U);
  for (const std::string_view shape : SmallShapes()) {
    const Program small = MakeSmallProgram(shape, "key");
    EXPECT_GE(small.size(), 3U);
    for (const auto& commands : small) {
      ASSERT_FALSE(commands.empty()) << shape;
      for (const Command& command : commands) EXPECT_EQ(command[1], "key");
    }
  }
}

TEST(ProgramTexts, ReadBackAsTheyWere) {
  for (const Mix& mix : Mixes()) {
    const Program program = MakeProgram(11, OptionsOf(mix));
    const std::string text = ProgramToText(program);
    EXPECT_LT(text.size(), 4 * 40 * 150U) << "long values are written short";
    Program read;
    std::string error;
    ASSERT_TRUE(ProgramFromText(text, &read, &error)) << error;
    EXPECT_EQ(read, program) << mix.name;
  }
}

TEST(ProgramTexts, TakeAnyBytes) {
  std::string all;
  for (int c = 0; c < 256; ++c) all.push_back(static_cast<char>(c));
  std::string braces;
  for (int i = 0; i < 20; ++i) braces += "\\{9*}\"";
  const Program program = {{{"SET", "k", all}, {"SET", "", braces}},
                           {{"SET", "a b", std::string(1000, '}')}, {"GET", "#"}, {"GET", "1:"}}};
  Program read;
  std::string error;
  const std::string text = "# a comment\n\n" + ProgramToText(program);
  ASSERT_TRUE(ProgramFromText(text, &read, &error)) << error;
  EXPECT_EQ(read, program);
}

TEST(ProgramTexts, ThatMakeNoSenseAreRefusedWithTheirLine) {
  for (const char* line : {"GET k", "x: GET k", "0:", "0: GET \"k", "0: GET \"\\q\"",
                           "0: GET \"\\x1\"", "0: GET \"k\"k", "0: GET k\"", "0: SET k \"\\{5*}\"",
                           "0: SET k \"\\{99999999999*a}\"", "123456789: GET k"}) {
    Program program;
    std::string error;
    EXPECT_FALSE(
        ProgramFromText("0: GET fine\n" + std::string(line) + "\n0: GET k\n", &program, &error))
        << line;
    EXPECT_EQ(error, line);
  }
}

}  // namespace
}  // namespace onetrip
