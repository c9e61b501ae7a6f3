// A directory remembers this of a cluster: whose files are removed, the secret, options that
// differ, and which member is which process.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "client_core/base/secret.h"
#include "tool/cluster_dir.h"
#include "tool/directory_options.h"
#include "tool/known_processes.h"

namespace onetrip {
namespace {

class ToolDirectory : public testing::Test {
 protected:
  ToolDirectory() {
    std::string name = testing::TempDir() + "onetrip_tool_dir.XXXXXX";
    root_ = mkdtemp(name.data());
    path_ = root_ + "/c";
  }
  ~ToolDirectory() override { std::filesystem::remove_all(root_); }

  std::unique_ptr<ClusterDir> Open() {
    Result<std::unique_ptr<ClusterDir>> dir = ClusterDir::Open(path_, false, &reason_);
    EXPECT_TRUE(dir.ok()) << reason_;
    return dir.ok() ? std::move(*dir) : nullptr;
  }
  void Write(const std::string& name) const { std::ofstream(path_ + "/" + name) << "x\n"; }
  bool Exists(const std::string& name) const { return std::filesystem::exists(path_ + "/" + name); }

  std::string root_;
  std::string path_;
  std::string reason_;
};

TEST_F(ToolDirectory, OnlyWhatTheClusterMadeIsRemoved) {
  std::filesystem::create_directories(path_ + "/logs");
  Write("logs/agent-0.log");
  auto dir = Open();
  ClusterRecord record;
  dir->ClaimItself(&record);  // it was there
  for (const char* folder : {"logs", "memory", "run"}) {
    ASSERT_TRUE(dir->MakeFolder(folder, &record, &reason_).ok()) << reason_;
  }
  for (const char* name : {"logs/agent-0.log", "logs/agent-1.log", "memory/node-0.img"}) {
    dir->Claim(name, &record);
    Write(name);
  }
  Write("memory/mine");
  ASSERT_TRUE(dir->MakeSecret(&record, &reason_).ok()) << reason_;
  ASSERT_TRUE(dir->Save(record, &reason_).ok()) << reason_;
  // By what was saved, as another run does it.
  const Result<ClusterRecord> read = dir->Load(&reason_);
  ASSERT_TRUE(read.ok()) << reason_;
  dir->Clear(*read);
  EXPECT_TRUE(Exists("logs/agent-0.log"));
  EXPECT_FALSE(Exists("logs/agent-1.log"));
  EXPECT_FALSE(Exists("memory/node-0.img"));
  EXPECT_TRUE(Exists("memory/mine"));
  EXPECT_FALSE(Exists("run"));
  EXPECT_FALSE(Exists("secret"));
  EXPECT_FALSE(Exists("cluster.json"));
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(ToolDirectory, ASecretIsMadeOnceForItsOwnerAlone) {
  auto dir = Open();
  ClusterRecord record;
  ASSERT_TRUE(dir->MakeSecret(&record, &reason_).ok()) << reason_;
  EXPECT_EQ(record.secret_file, path_ + "/secret");
  struct stat info {};
  ASSERT_EQ(stat(record.secret_file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  EXPECT_EQ(info.st_size, 65);
  ASSERT_TRUE(LoadSecretFile(record.secret_file, &reason_).ok()) << reason_;
  std::ifstream file(record.secret_file);
  std::string first;
  std::getline(file, first);
  ASSERT_TRUE(dir->MakeSecret(&record, &reason_).ok()) << reason_;
  std::string second;
  std::getline(std::ifstream(record.secret_file) >> std::ws, second);
  EXPECT_EQ(first, second);
  // A file of that name that is not the cluster's is not taken for its secret, and not overwritten.
  ClusterRecord other;
  EXPECT_FALSE(dir->MakeSecret(&other, &reason_).ok());
  EXPECT_NE(reason_.find("move it away"), std::string::npos) << reason_;
}

TEST_F(ToolDirectory, ADirectoryThatIsGivenUpLeavesNothing) {
  { auto dir = Open(); }
  EXPECT_FALSE(std::filesystem::exists(path_));
  std::filesystem::create_directories(path_);
  { auto dir = Open(); }
  EXPECT_TRUE(std::filesystem::is_empty(path_));
}

TEST_F(ToolDirectory, OnlyImagesInARowCount) {
  auto dir = Open();
  std::filesystem::create_directories(path_ + "/memory");
  EXPECT_EQ(dir->backed_nodes(), 0U);
  Write("memory/node-9.img");
  EXPECT_EQ(dir->backed_nodes(), 0U);
  Write("memory/node-0.img");
  Write("memory/node-1.img");
  EXPECT_EQ(dir->backed_nodes(), 2U);
}

ClusterRecord Described(const UpOptions& options) {
  std::string reason;
  Result<ClusterRecord> record = DescribeCluster(options, nullptr, &reason);
  EXPECT_TRUE(record.ok()) << reason;
  return *record;
}

TEST(DirectoryOptions, DefaultsAndWhatCannotBe) {
  const ClusterRecord record = Described({});
  EXPECT_EQ(record.shape.nodes, 3);
  EXPECT_EQ(record.shape.replicas, 3);
  EXPECT_EQ(record.shape.memory, "1GiB");
  EXPECT_EQ(record.shape.port, 7000);
  EXPECT_FALSE(record.shape.persistent);
  EXPECT_EQ(record.agents.size(), 2U);
  EXPECT_EQ(record.memnodes[2].name, "memnode-2");
  UpOptions options;
  options.memnodes = 2;
  EXPECT_EQ(Described(options).shape.replicas, 2);
  std::string reason;
  options.replicas = 3;
  EXPECT_FALSE(DescribeCluster(options, nullptr, &reason).ok());
  EXPECT_NE(reason.find("--memnodes 3"), std::string::npos) << reason;
  options = {};
  options.port = 65535;
  EXPECT_FALSE(DescribeCluster(options, nullptr, &reason).ok());
  EXPECT_NE(reason.find("--port"), std::string::npos) << reason;
}

TEST(DirectoryOptions, AClusterThatKeptNothingIsStartedAsItWas) {
  UpOptions options;
  options.memnodes = 4;
  options.memory = "64MiB";
  options.replicas = 2;
  options.port = 21000;
  const ClusterRecord earlier = Described(options);
  std::string reason;
  UpOptions again;
  again.memory = "128MiB";
  const Result<ClusterRecord> record = DescribeCluster(again, &earlier, &reason);
  ASSERT_TRUE(record.ok()) << reason;
  EXPECT_EQ(record->shape.nodes, 4);
  EXPECT_EQ(record->shape.replicas, 2);
  EXPECT_EQ(record->shape.port, 21000);
  EXPECT_EQ(record->shape.memory, "128MiB");
}

TEST(DirectoryOptions, WhatDiffersIsRefusedByName) {
  const ClusterRecord cluster = Described({});
  const auto refused = [&](const UpOptions& options, bool runs) -> std::string {
    ClusterRecord record = cluster;
    std::string reason;
    return ReconcileOptions(options, runs, &record, &reason).ok() ? "" : reason;
  };
  UpOptions same;
  same.memory = "1024MiB";
  same.memnodes = 3;
  same.replicas = 3;
  same.port = 7000;
  EXPECT_EQ(refused(same, true), "");
  for (const bool runs : {false, true}) {
    UpOptions options;
    options.memory = "2GiB";
    EXPECT_NE(refused(options, runs).find("--memory 2GiB differs"), std::string::npos);
    options = {};
    options.replicas = 2;
    EXPECT_NE(refused(options, runs).find("--replicas 2 differs"), std::string::npos);
    options = {};
    options.memnodes = 5;
    EXPECT_NE(refused(options, runs).find("onetrip node add"), std::string::npos);
    options = {};
    options.persistent = true;
    EXPECT_NE(refused(options, runs).find("--persistent differs"), std::string::npos);
  }
  UpOptions options;
  options.agents = 4;
  options.fabric = "tcp";
  EXPECT_NE(refused(options, true).find("onetrip down"), std::string::npos);
  ClusterRecord record = cluster;
  std::string reason;
  ASSERT_TRUE(ReconcileOptions(options, false, &record, &reason).ok()) << reason;
  EXPECT_EQ(record.agents.size(), 4U);
  EXPECT_EQ(record.shape.fabric, "tcp");
}

// Members of host "here": memory nodes with pids 10 and up, agents with 20 and up.
class KnownProcesses : public testing::Test {
 protected:
  KnownProcesses() : record_(Described({})) {
    ask_.host = "here";
    ask_.is_running = [this](const ProcessRecord& process) { return dead_ != process.name; };
    ask_.socket_of = [](uint64_t pid) { return pid == 99 ? "/c/1" : ""; };
    ask_.socket = [](size_t number) { return "/c/" + std::to_string(number); };
    for (ProcessRecord& process : record_.memnodes) {
      process.pid = 10 + static_cast<pid_t>(process.number);
      process.node = static_cast<uint32_t>(process.number);
      MemnodeOverview& node = overview_.memnodes.emplace_back();
      node.node = static_cast<uint32_t>(process.number);
      node.pid = static_cast<uint64_t>(process.pid);
      node.host = "here";
      node.state = "up";
    }
    for (ProcessRecord& process : record_.agents) {
      process.pid = 20 + static_cast<pid_t>(process.number);
      process.address = "127.0.0.1:" + std::to_string(7000 + process.number);
      AgentOverview& agent = overview_.agents.emplace_back();
      agent.pid = static_cast<uint64_t>(process.pid);
      agent.address = process.address;
      agent.host = "here";
      agent.state = "up";
    }
  }

  ClusterRecord record_;
  ProcessQuestions ask_;
  std::string dead_;
  Overview overview_;
};

TEST_F(KnownProcesses, MembersHaveTheirNames) {
  NameMembers(record_, ask_, &overview_);
  ASSERT_EQ(overview_.memnodes.size(), 3U);
  for (const MemnodeOverview& node : overview_.memnodes) {
    EXPECT_EQ(node.name, "memnode-" + std::to_string(*node.node));
  }
  ASSERT_EQ(overview_.agents.size(), 2U);
  EXPECT_EQ(overview_.agents[1].name, "agent-1");
}

TEST_F(KnownProcesses, StartedAgainByHandTheyAreTheSame) {
  overview_.memnodes[1].pid = 99;
  overview_.memnodes[1].node = 7;
  overview_.agents[0].pid = 98;
  NameMembers(record_, ask_, &overview_);
  ASSERT_EQ(overview_.memnodes.size(), 3U);
  EXPECT_EQ(overview_.memnodes[1].name, "memnode-1");
  ASSERT_EQ(overview_.agents.size(), 2U);
  EXPECT_EQ(overview_.agents[0].name, "agent-0");
}

TEST_F(KnownProcesses, OneThatTheMasterStillExpectsIsOneRow) {
  dead_ = "memnode-2";
  overview_.memnodes[2].state = "lost";
  overview_.memnodes[2].pid = 0;
  NameMembers(record_, ask_, &overview_);
  ASSERT_EQ(overview_.memnodes.size(), 3U);
  EXPECT_EQ(overview_.memnodes[2].name, "memnode-2");
  EXPECT_EQ(overview_.memnodes[2].state, "lost");
}

TEST_F(KnownProcesses, WhoIsExpectedAndNoMemberIsMissing) {
  overview_.memnodes.pop_back();
  overview_.agents.erase(overview_.agents.begin());
  dead_ = "memnode-2";
  NameMembers(record_, ask_, &overview_);
  ASSERT_EQ(overview_.memnodes.size(), 3U);
  EXPECT_EQ(overview_.memnodes[2].name, "memnode-2");
  EXPECT_EQ(overview_.memnodes[2].state, "missing");
  EXPECT_EQ(overview_.memnodes[2].pid, 0U);
  ASSERT_EQ(overview_.agents.size(), 2U);
  EXPECT_EQ(overview_.agents[1].name, "agent-0");
  EXPECT_EQ(overview_.agents[1].state, "starting");
}

TEST_F(KnownProcesses, MembersOfOtherHostsAreNoneOfThem) {
  for (MemnodeOverview& node : overview_.memnodes) {
    node.host = "there";
    node.node = *node.node + 5;
  }
  NameMembers(record_, ask_, &overview_);
  EXPECT_EQ(overview_.memnodes.size(), 6U);
}

TEST_F(KnownProcesses, WithoutTheMasterNumbersAreAsTheyWereLastKnown) {
  dead_ = "memnode-1";
  Overview overview;
  ListProcesses(record_, ask_, &overview);
  ASSERT_EQ(overview.memnodes.size(), 3U);
  EXPECT_EQ(overview.memnodes[1].node, 1U);
  EXPECT_EQ(overview.memnodes[1].state, "missing");
  EXPECT_EQ(overview.memnodes[0].state, "running");
  EXPECT_EQ(overview.replicas, 3U);
}

}  // namespace
}  // namespace onetrip
