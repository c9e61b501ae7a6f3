// The master's durable state on a real disk: what was written is there after a kill, and files that
// are no such state are refused by name.
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "client_core/base/rng.h"
#include "master/sqlite_store.h"
#include "tests/unit/master_bench.h"

namespace onetrip {
namespace {

class MasterStoreTest : public testing::Test {
 protected:
  MasterStoreTest() {
    std::string path = testing::TempDir() + "onetrip_master_XXXXX" + "X";
    EXPECT_NE(mkdtemp(path.data()), nullptr);
    root_ = path;
    dir_ = root_ + "/data";
  }
  ~MasterStoreTest() override { std::filesystem::remove_all(root_); }

  std::unique_ptr<SqliteStore> Open() {
    Result<std::unique_ptr<SqliteStore>> store = SqliteStore::Open(dir_, &reason_);
    EXPECT_TRUE(store.ok()) << reason_;
    return store.ok() ? std::move(store.value()) : nullptr;
  }
  StatusCode OpenFails() {
    const Result<std::unique_ptr<SqliteStore>> store = SqliteStore::Open(dir_, &reason_);
    EXPECT_FALSE(store.ok());
    EXPECT_NE(reason_.find("master.db"), std::string::npos) << reason_;
    EXPECT_EQ(reason_.find('\n'), std::string::npos);
    return store.status().code();
  }
  void RunSql(const char* sql) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open((dir_ + "/master.db").c_str(), &db), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(db, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
    sqlite3_close(db);
  }

  std::string root_;
  std::string dir_;
  std::string reason_;
};

void ExpectEqual(const DurableState& a, const DurableState& b) {
  EXPECT_EQ(a.cluster, b.cluster);
  EXPECT_EQ(a.nodes, b.nodes);
  EXPECT_EQ(a.seats, b.seats);
  EXPECT_EQ(a.agents, b.agents);
  EXPECT_EQ(a.former, b.former);
  EXPECT_EQ(a.lives, b.lives);
  ASSERT_EQ(a.regions.size(), b.regions.size());
  for (size_t i = 0; i < a.regions.size(); ++i) {
    EXPECT_EQ(a.regions[i].missing, b.regions[i].missing);
    for (int r = 0; r < a.cluster.replicas; ++r) {
      EXPECT_EQ(a.regions[i].nodes[r], b.regions[i].nodes[r]);
      EXPECT_EQ(a.regions[i].base[r], b.regions[i].base[r]);
    }
  }
}

// Any change, with numbers that use all 64 bits.
DurableChange RandomChange(Rng& rng, DurableState* state) {
  DurableChange change;
  ClusterRecord cluster = state->cluster;
  cluster.cluster = 0xffeeddccbbaa9988ULL;
  cluster.replicas = 3;
  cluster.nodes = 3;
  cluster.next_member += rng.Below(3);
  cluster.epoch += 1;
  cluster.time_us = rng.Next();
  cluster.resolve_due = rng.Below(2) == 0;
  cluster.scrub_due = rng.Below(2) == 0;
  cluster.repairer = rng.Below(3);
  cluster.life = rng.Next();
  cluster.engines = static_cast<EngineFamily>(rng.Below(3));
  cluster.nobody_stayed = rng.Below(2) == 0;
  cluster.keyspaces[rng.Below(kMaxDatabases)] = KeyspaceId{static_cast<uint32_t>(rng.Next())};
  change.cluster = cluster;
  if (state->nodes.size() < 4) {
    change.nodes[static_cast<uint16_t>(state->nodes.size())] = {
        rng.Next(),
        rng.Next(),
        {"10.0.0.1", 7000, "/run/it's \"here\".sock", "boot/4026531840", "mlx5_0, GID 3"},
        rng.Below(2) == 0};
  }
  if (state->regions.empty()) {
    for (uint64_t i = 0; i < 70; ++i) {
      change.regions[static_cast<uint32_t>(i)] = {{NodeId{2}, NodeId{0}, NodeId{1}},
                                                  {i << 24, i << 24, i << 24}};
    }
  } else {
    const auto region = static_cast<uint32_t>(rng.Below(70));
    change.regions[region] = state->regions[region];
    change.regions[region].missing = static_cast<uint8_t>(rng.Below(3));
    std::swap(change.regions[region].nodes[0], change.regions[region].nodes[2]);
  }
  const auto index = static_cast<uint16_t>(rng.Below(20));
  if (rng.Below(3) == 0) {
    change.seats[index] = std::nullopt;
  } else {
    change.seats[index] = SeatRecord{WorkerId{static_cast<uint32_t>(rng.Below(1 << 22))},
                                     rng.Below(9), rng.Below(2) == 0};
  }
  change.former[static_cast<uint32_t>(rng.Below(9))] = rng.Below(2) == 0;
  const uint64_t life = UINT64_MAX - rng.Below(5);
  if (rng.Below(3) == 0) {
    change.lives[life] = std::nullopt;
  } else {
    change.lives[life] = rng.Next();
  }
  const uint64_t agent = rng.Below(9);
  if (rng.Below(3) == 0) {
    change.agents[agent] = std::nullopt;
  } else {
    change.agents[agent] = AgentRecord{rng.Next(), "host", "127.0.0.1:6379", "0.1.0"};
  }
  ApplyChange(change, state);
  return change;
}

TEST_F(MasterStoreTest, ANewStoreIsEmptyAndPrivate) {
  dir_ = root_ + "/some/where/data";
  const auto store = Open();
  Result<DurableState> state = store->Load(&reason_);
  ASSERT_TRUE(state.ok());
  EXPECT_EQ(state->cluster.cluster, 0U);
  struct stat info {};
  ASSERT_EQ(stat(dir_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700U);
  ASSERT_EQ(stat((dir_ + "/master.db").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
}

TEST_F(MasterStoreTest, WhatWasWrittenAddsUp) {
  Rng rng(7);
  DurableState expected;
  for (int round = 0; round < 5; ++round) {
    const auto store = Open();
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(store->Write(RandomChange(rng, &expected), &reason_).ok()) << reason_;
    }
    Result<DurableState> state = store->Load(&reason_);
    ASSERT_TRUE(state.ok()) << reason_;
    ExpectEqual(*state, expected);
  }
  Result<DurableState> state = Open()->Load(&reason_);
  ASSERT_TRUE(state.ok()) << reason_;
  ExpectEqual(*state, expected);
}

// A process that is killed leaves every write whose success it was told, and no part of another.
TEST_F(MasterStoreTest, AKilledMasterLosesNothingThatWasAcknowledged) {
  for (const int writes : {1, 2, 7, 30}) {
    std::filesystem::remove_all(dir_);
    int acknowledged[2];
    ASSERT_EQ(pipe(acknowledged), 0);
    const pid_t child = fork();
    if (child == 0) {
      std::string reason;
      Result<std::unique_ptr<SqliteStore>> store = SqliteStore::Open(dir_, &reason);
      Rng rng(11);
      DurableState state;
      while (store.ok() && store.value()->Write(RandomChange(rng, &state), &reason).ok()) {
        if (write(acknowledged[1], "x", 1) != 1) break;
      }
      _exit(1);
    }
    close(acknowledged[1]);
    char byte = 0;
    int seen = 0;
    while (seen < writes && read(acknowledged[0], &byte, 1) == 1) ++seen;
    kill(child, SIGKILL);
    while (read(acknowledged[0], &byte, 1) == 1) ++seen;
    close(acknowledged[0]);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the writer ended by itself";

    const auto store = Open();
    Result<DurableState> state = store->Load(&reason_);
    ASSERT_TRUE(state.ok()) << reason_;
    // Every change counts the epoch up by one: it tells which writes are there.
    EXPECT_GE(state->cluster.epoch, static_cast<uint64_t>(seen));
    Rng rng(11);
    DurableState expected;
    for (uint64_t i = 0; i < state->cluster.epoch; ++i) RandomChange(rng, &expected);
    ExpectEqual(*state, expected);
  }
}

TEST_F(MasterStoreTest, ASecondMasterIsRefused) {
  const auto store = Open();
  EXPECT_EQ(OpenFails(), StatusCode::kUnavailable);
  EXPECT_NE(reason_.find("another master"), std::string::npos) << reason_;
  DurableState state;
  Rng rng(1);
  EXPECT_TRUE(store->Write(RandomChange(rng, &state), &reason_).ok());
}

TEST_F(MasterStoreTest, FilesThatAreSomethingElseAreRefused) {
  std::filesystem::create_directory(dir_);
  std::ofstream(dir_ + "/master.db") << std::string(5000, 'x');
  EXPECT_EQ(OpenFails(), StatusCode::kInvalidArgument);
  EXPECT_NE(reason_.find("no database"), std::string::npos) << reason_;

  std::filesystem::remove(dir_ + "/master.db");
  RunSql("CREATE TABLE songs (title TEXT)");
  EXPECT_EQ(OpenFails(), StatusCode::kInvalidArgument);
  EXPECT_NE(reason_.find("another program"), std::string::npos) << reason_;
}

TEST_F(MasterStoreTest, ANewerSchemaIsRefused) {
  Open();
  RunSql("PRAGMA user_version = 99");
  EXPECT_EQ(OpenFails(), StatusCode::kInvalidArgument);
  EXPECT_NE(reason_.find("schema 99"), std::string::npos) << reason_;
}

// The first schema, which knew no node that is out.
TEST_F(MasterStoreTest, AFileOfTheFirstSchemaIsBroughtUpToDate) {
  std::filesystem::create_directory(dir_);
  RunSql(R"(
CREATE TABLE cluster (id INTEGER PRIMARY KEY CHECK (id = 0), cluster INTEGER, replicas INTEGER,
  nodes INTEGER, next_member INTEGER, next_worker INTEGER, next_keyspace INTEGER, epoch INTEGER,
  time_us INTEGER, worker_index_end INTEGER);
CREATE TABLE keyspaces (database INTEGER PRIMARY KEY, keyspace INTEGER);
CREATE TABLE nodes (id INTEGER PRIMARY KEY, incarnation INTEGER, bytes INTEGER, tcp_host TEXT,
  tcp_port INTEGER, shm_path TEXT, host_id TEXT);
CREATE TABLE regions (region INTEGER, replica INTEGER, node INTEGER, base INTEGER,
  PRIMARY KEY (region, replica)) WITHOUT ROWID;
CREATE TABLE seats (worker_index INTEGER PRIMARY KEY, worker INTEGER, member INTEGER,
  expelled INTEGER);
CREATE TABLE agents (id INTEGER PRIMARY KEY, pid INTEGER, host TEXT, address TEXT, version TEXT);
INSERT INTO cluster VALUES (0, 5, 1, 1, 9, 8, 7, 6, 4, 3);
INSERT INTO nodes VALUES (0, 100, 16777216, 'h', 1, '', ''), (1, 101, 16777216, 'h', 2, '', '');
INSERT INTO regions VALUES (0, 0, 0, 0);
PRAGMA application_id = 0x4f4e4d41;
PRAGMA user_version = 1;)");
  for (int life = 0; life < 2; ++life) {
    const auto store = Open();
    ASSERT_NE(store, nullptr);
    const Result<DurableState> state = store->Load(&reason_);
    ASSERT_TRUE(state.ok()) << reason_;
    EXPECT_EQ(state->cluster.epoch, 6U);
    EXPECT_FALSE(state->cluster.resolve_due || state->cluster.scrub_due);
    ASSERT_EQ(state->nodes.size(), 2U);
    EXPECT_FALSE(state->nodes[0].out);
    EXPECT_TRUE(state->nodes[1].out) << "a spare";
    ASSERT_EQ(state->regions.size(), 1U);
    EXPECT_EQ(state->regions[0].missing, 0);
    EXPECT_TRUE(state->former.empty());
  }
}

// The second, which knew no regions that move.
TEST_F(MasterStoreTest, AFileOfTheSecondSchemaIsBroughtUpToDate) {
  std::filesystem::create_directory(dir_);
  RunSql(R"(
CREATE TABLE cluster (id INTEGER PRIMARY KEY CHECK (id = 0), cluster INTEGER, replicas INTEGER,
  nodes INTEGER, next_member INTEGER, next_worker INTEGER, next_keyspace INTEGER, epoch INTEGER,
  time_us INTEGER, worker_index_end INTEGER, resolve_due INTEGER DEFAULT 0,
  scrub_due INTEGER DEFAULT 0, repairer INTEGER DEFAULT 0);
CREATE TABLE keyspaces (database INTEGER PRIMARY KEY, keyspace INTEGER);
CREATE TABLE nodes (id INTEGER PRIMARY KEY, incarnation INTEGER, bytes INTEGER, tcp_host TEXT,
  tcp_port INTEGER, shm_path TEXT, host_id TEXT, out INTEGER DEFAULT 0);
CREATE TABLE regions (region INTEGER, replica INTEGER, node INTEGER, base INTEGER,
  missing INTEGER DEFAULT 0, PRIMARY KEY (region, replica)) WITHOUT ROWID;
CREATE TABLE seats (worker_index INTEGER PRIMARY KEY, worker INTEGER, member INTEGER,
  expelled INTEGER);
CREATE TABLE agents (id INTEGER PRIMARY KEY, pid INTEGER, host TEXT, address TEXT, version TEXT);
CREATE TABLE former (worker INTEGER PRIMARY KEY);
INSERT INTO cluster VALUES (0, 5, 1, 1, 9, 8, 7, 6, 4, 3, 1, 1, 2);
INSERT INTO nodes VALUES (0, 100, 16777216, 'h', 1, '', '', 0), (1, 101, 1, 'h', 2, '', '', 1);
INSERT INTO regions VALUES (0, 0, 0, 0, 0);
INSERT INTO former VALUES (3);
PRAGMA application_id = 0x4f4e4d41;
PRAGMA user_version = 2;)");
  for (int life = 0; life < 2; ++life) {
    const auto store = Open();
    ASSERT_NE(store, nullptr);
    const Result<DurableState> state = store->Load(&reason_);
    ASSERT_TRUE(state.ok()) << reason_;
    EXPECT_TRUE(state->cluster.resolve_due && state->cluster.scrub_due);
    EXPECT_EQ(state->cluster.repairer, 2U);
    EXPECT_FALSE(state->cluster.records_only);
    EXPECT_EQ(state->cluster.life, 0U);
    EXPECT_EQ(state->cluster.engines, EngineFamily::kNone);
    EXPECT_TRUE(state->lives.empty());
    ASSERT_EQ(state->nodes.size(), 2U);
    EXPECT_TRUE(state->nodes[1].out);
    EXPECT_EQ(state->nodes[0].wish, NodeWish::kNone);
    EXPECT_EQ(state->nodes[0].wish_regions, 0U);
    EXPECT_EQ(state->former, std::set<uint32_t>{3});
  }
}

TEST_F(MasterStoreTest, ADirectoryThatCannotBeIsNamed) {
  std::ofstream(root_ + "/file") << "x";
  dir_ = root_ + "/file/data";
  EXPECT_FALSE(SqliteStore::Open(dir_, &reason_).ok());
  EXPECT_NE(reason_.find(dir_), std::string::npos) << reason_;
}

TEST_F(MasterStoreTest, AFailedWriteChangesNothingAndTheNextMaySucceed) {
  const auto store = Open();
  Rng rng(3);
  DurableState expected;
  ASSERT_TRUE(store->Write(RandomChange(rng, &expected), &reason_).ok());
  // The disk is full: no file may grow.
  DurableState ignored = expected;
  const DurableChange change = RandomChange(rng, &ignored);
  signal(SIGXFSZ, SIG_IGN);
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  const rlimit tiny{4096, old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &tiny);
  EXPECT_EQ(store->Write(change, &reason_).code(), StatusCode::kUnavailable);
  setrlimit(RLIMIT_FSIZE, &old);
  signal(SIGXFSZ, SIG_DFL);
  EXPECT_NE(reason_.find("master.db"), std::string::npos) << reason_;
  Result<DurableState> state = store->Load(&reason_);
  ASSERT_TRUE(state.ok()) << reason_;
  ExpectEqual(*state, expected);
  ApplyChange(change, &expected);
  ASSERT_TRUE(store->Write(change, &reason_).ok()) << reason_;
  state = store->Load(&reason_);
  ASSERT_TRUE(state.ok());
  ExpectEqual(*state, expected);
}

}  // namespace
}  // namespace onetrip
