// Starting, finding and ending the processes of a local cluster.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tool/cluster_dir.h"
#include "tool/process.h"

namespace onetrip {
namespace {

class ToolProcess : public testing::Test {
 protected:
  ToolProcess() {
    std::string name = testing::TempDir() + "onetrip_tool.XXXXXX";
    dir_ = mkdtemp(name.data());
  }
  ~ToolProcess() override { std::filesystem::remove_all(dir_); }

  // A shell that does what `script` says.
  ProcessRecord Shell(const std::string& script) {
    ProcessRecord record;
    record.log = dir_ + "/log";
    std::string reason;
    EXPECT_TRUE(StartProcess({"/bin/sh", "-c", script}, &record, &reason).ok()) << reason;
    return record;
  }

  static void AwaitReady(const ProcessRecord& record) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (ReadyLine(record).empty() && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ASSERT_FALSE(ReadyLine(record).empty());
  }

  std::string dir_;
};

TEST_F(ToolProcess, ReadyLineIsTheLastWholeOne) {
  ProcessRecord record;
  record.log = dir_ + "/log";
  EXPECT_EQ(ReadyLine(record), "");
  std::ofstream log(record.log);
  log << "[info] onetrip-agent is ready: not this\nonetrip-agent 1 is ready: a:1, x\n";
  log << "onetrip-agent 1 is ready: b:2, engine raw\nonetrip-agent 1 is ready: c:3" << std::flush;
  EXPECT_EQ(ReadyLine(record), "b:2, engine raw");
  EXPECT_EQ(AddressOf(ReadyLine(record)), "b:2");
  EXPECT_EQ(AddressOf("node 0 of cluster 1f, 64 MiB (4 regions), tcp a:1, shm /s, master b:2"),
            "a:1");
  EXPECT_EQ(AddressOf("node 0 of cluster 1f, 64 MiB (4 regions), shm /s, master b:2"), "/s");
  log << "\n" << std::flush;
  EXPECT_EQ(AddressOf(ReadyLine(record)), "c:3");
  EXPECT_EQ(LastLines(record.log, 1), "  onetrip-agent 1 is ready: c:3\n");
}

TEST_F(ToolProcess, EndsInOrder) {
  const ProcessRecord record =
      Shell("trap 'exit 0' TERM; echo 'onetrip-x 1 is ready: here,'; while :; do sleep 0.01; done");
  AwaitReady(record);
  EXPECT_TRUE(IsRunning(record));
  bool forced = true;
  EXPECT_TRUE(EndProcess(record, 20'000, &forced));
  EXPECT_FALSE(forced);
  EXPECT_FALSE(IsRunning(record));
  EXPECT_TRUE(EndProcess(record, 20'000, &forced));  // nothing is left to do
}

TEST_F(ToolProcess, IsKilledWhenItDoesNotEnd) {
  const ProcessRecord record =
      Shell("trap '' TERM; echo 'onetrip-x 1 is ready: here,'; while :; do sleep 0.01; done");
  AwaitReady(record);
  bool forced = false;
  EXPECT_TRUE(EndProcess(record, 50, &forced));
  EXPECT_TRUE(forced);
  EXPECT_FALSE(IsRunning(record));
}

TEST_F(ToolProcess, AnotherProcessWithThePidIsNotTouched) {
  ProcessRecord record = Shell("echo 'onetrip-x 1 is ready: here,'; exec sleep 1000");
  AwaitReady(record);
  ProcessRecord earlier = record;
  earlier.started -= 1;
  EXPECT_FALSE(IsRunning(earlier));
  bool forced = false;
  EXPECT_TRUE(EndProcess(earlier, 1000, &forced));
  EXPECT_TRUE(IsRunning(record));
  EXPECT_TRUE(EndProcess(record, 20'000, &forced));
}

TEST_F(ToolProcess, WhatCannotBeStartedIsNamed) {
  ProcessRecord record;
  record.log = dir_ + "/log";
  std::string reason;
  EXPECT_FALSE(StartProcess({"/nowhere/onetrip-agent"}, &record, &reason).ok());
  EXPECT_NE(reason.find("/nowhere/onetrip-agent"), std::string::npos) << reason;
}

TEST_F(ToolProcess, ARecordIsReadAsItWasSaved) {
  std::string reason;
  const std::string path = dir_ + "/c";
  EXPECT_FALSE(ClusterDir::Open(path, true, &reason).ok());
  EXPECT_NE(reason.find("no cluster"), std::string::npos) << reason;
  Result<std::unique_ptr<ClusterDir>> dir = ClusterDir::Open(path, false, &reason);
  ASSERT_TRUE(dir.ok()) << reason;
  ClusterRecord record;
  record.fabric = "tcp";
  record.persistent = true;
  record.master = {"master", 7, 8, "127.0.0.1:9", "log"};
  record.agents.push_back({"agent-0", 70, 80, "127.0.0.1:90", "log0"});
  ASSERT_TRUE(dir.value()->Save(record, &reason).ok()) << reason;
  // One command at a time.
  EXPECT_FALSE(ClusterDir::Open(path, true, &reason).ok());
  EXPECT_NE(reason.find("at work"), std::string::npos) << reason;
  Result<ClusterRecord> read = dir.value()->Load(&reason);
  ASSERT_TRUE(read.ok()) << reason;
  EXPECT_EQ(read->fabric, "tcp");
  EXPECT_TRUE(read->persistent);
  EXPECT_EQ(read->master.address, "127.0.0.1:9");
  ASSERT_EQ(read->agents.size(), 1U);
  EXPECT_EQ(read->agents[0].pid, 70);
  EXPECT_EQ(read->all().size(), 2U);
  dir.value()->Clear(false);
  EXPECT_FALSE(std::filesystem::exists(path));

  dir = ClusterDir::Open(path, false, &reason);
  ASSERT_TRUE(dir.ok()) << reason;
  std::ofstream(path + "/cluster.json") << "{\"fabric\": 3";
  EXPECT_FALSE(dir.value()->Load(&reason).ok());
  EXPECT_NE(reason.find("damaged"), std::string::npos) << reason;
}

}  // namespace
}  // namespace onetrip
