// Starting, finding and ending the processes of a local cluster.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

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

TEST_F(ToolProcess, OneThatIsEndingIsWaitedFor) {
  const ProcessRecord record = Shell("echo 'onetrip-x 1 is ready: here,'; exec sleep 1000");
  AwaitReady(record);
  EXPECT_FALSE(AwaitEnding(record, 1)) << "it does not end";
  kill(record.pid, SIGKILL);
  EXPECT_TRUE(AwaitEnding(record, 20'000));
  EXPECT_FALSE(IsRunning(record));
}

TEST_F(ToolProcess, LinesOfEarlierLivesDoNotCount) {
  ProcessRecord record;
  record.log = dir_ + "/log";
  std::ofstream(record.log) << "onetrip-agent 1 is ready: a:1, x\n" << std::flush;
  record.log_from = std::filesystem::file_size(record.log);
  EXPECT_EQ(ReadyLine(record), "");
  std::ofstream(record.log, std::ios::app) << "onetrip-agent 1 is ready: b:2, x\n" << std::flush;
  EXPECT_EQ(AddressOf(ReadyLine(record)), "b:2");
  // Another file by now.
  std::ofstream(record.log) << "onetrip-agent 1 is ready: c:3, x\n" << std::flush;
  record.log_from = 1000;
  EXPECT_EQ(AddressOf(ReadyLine(record)), "c:3");
}

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
  record.shape.fabric = "tcp";
  record.shape.persistent = true;
  record.shape.memory = "64MiB";
  record.shape.replicas = 2;
  record.shape.nodes = 4;
  record.shape.engine = "snapshot";
  record.shape.threads = 3;
  record.shape.port = 90;
  record.formed = true;
  record.secret_file = path + "/secret";
  record.master = {"master", 0, 7, 8, "127.0.0.1:9", "log", 11, {}};
  record.agents.push_back({"agent-1", 1, 0, 80, "127.0.0.1:91", "log1", 12, {}});
  record.memnodes.push_back({"memnode-5", 5, 70, 80, "127.0.0.1:92", "log5", 13, 6});
  record.memnodes_started = 6;
  dir.value()->ClaimItself(&record);
  ASSERT_TRUE(dir.value()->Save(record, &reason).ok()) << reason;
  // One command at a time.
  EXPECT_FALSE(ClusterDir::Open(path, true, &reason).ok());
  EXPECT_NE(reason.find("at work"), std::string::npos) << reason;
  Result<ClusterRecord> read = dir.value()->Load(&reason);
  ASSERT_TRUE(read.ok()) << reason;
  EXPECT_EQ(read->shape.fabric, "tcp");
  EXPECT_TRUE(read->shape.persistent);
  EXPECT_EQ(read->shape.memory, "64MiB");
  EXPECT_EQ(read->shape.replicas, 2);
  EXPECT_EQ(read->shape.nodes, 4);
  EXPECT_EQ(read->shape.engine, "snapshot");
  EXPECT_EQ(read->shape.threads, 3U);
  EXPECT_EQ(read->shape.port, 90);
  EXPECT_TRUE(read->formed);
  EXPECT_EQ(read->secret_file, path + "/secret");
  EXPECT_EQ(read->memnodes_started, 6U);
  EXPECT_EQ(read->master.address, "127.0.0.1:9");
  EXPECT_EQ(read->master.log_from, 11U);
  ASSERT_EQ(read->agents.size(), 1U);
  EXPECT_EQ(read->agents[0].pid, 0);
  EXPECT_EQ(read->agents[0].number, 1U);
  ASSERT_EQ(read->memnodes.size(), 1U);
  EXPECT_EQ(read->memnodes[0].number, 5U);
  EXPECT_EQ(read->memnodes[0].node, 6U);
  EXPECT_EQ(std::as_const(*read).all().size(), 3U);
  dir.value()->Clear(record);
  EXPECT_FALSE(std::filesystem::exists(path));

  dir = ClusterDir::Open(path, false, &reason);
  ASSERT_TRUE(dir.ok()) << reason;
  std::ofstream(path + "/cluster.json") << "{\"fabric\": 3";
  EXPECT_FALSE(dir.value()->Load(&reason).ok());
  EXPECT_NE(reason.find("damaged"), std::string::npos) << reason;
}

}  // namespace
}  // namespace onetrip
