#include "master/sqlite_store.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <string_view>
#include <utility>

#include "client_core/base/check.h"
#include "client_core/base/held_by_predecessor.h"
#include "client_core/layout/region_layout.h"

namespace onetrip {
namespace {

constexpr int kApplicationId = 0x4f4e4d41;  // "ONMA"

constexpr const char* kSchema = R"(
CREATE TABLE cluster (id INTEGER PRIMARY KEY CHECK (id = 0), cluster INTEGER, replicas INTEGER,
  nodes INTEGER, next_member INTEGER, next_worker INTEGER, next_keyspace INTEGER, epoch INTEGER,
  time_us INTEGER, worker_index_end INTEGER, resolve_due INTEGER DEFAULT 0,
  scrub_due INTEGER DEFAULT 0, repairer INTEGER DEFAULT 0, records_only INTEGER DEFAULT 0,
  life INTEGER DEFAULT 0, engines INTEGER DEFAULT 0, nobody_stayed INTEGER DEFAULT 0,
  heal_due INTEGER DEFAULT 0, leaving INTEGER DEFAULT 0, directory INTEGER DEFAULT 0,
  may_shrink INTEGER DEFAULT 0, index_left INTEGER DEFAULT 0);
CREATE TABLE keyspaces (database INTEGER PRIMARY KEY, keyspace INTEGER);
CREATE TABLE nodes (id INTEGER PRIMARY KEY, incarnation INTEGER, bytes INTEGER, tcp_host TEXT,
  tcp_port INTEGER, shm_path TEXT, host_id TEXT, out INTEGER DEFAULT 0, wish INTEGER DEFAULT 0,
  wish_regions INTEGER DEFAULT 0, mark INTEGER DEFAULT 0, rdma TEXT DEFAULT '');
CREATE TABLE regions (region INTEGER, replica INTEGER, node INTEGER, base INTEGER,
  missing INTEGER DEFAULT 0,
  PRIMARY KEY (region, replica)) WITHOUT ROWID;
CREATE TABLE seats (worker_index INTEGER PRIMARY KEY, worker INTEGER, member INTEGER,
  expelled INTEGER);
CREATE TABLE agents (id INTEGER PRIMARY KEY, pid INTEGER, host TEXT, address TEXT, version TEXT);
CREATE TABLE former (worker INTEGER PRIMARY KEY);
CREATE TABLE lives (life INTEGER PRIMARY KEY, epoch INTEGER);
)";

// A spare was told by its number alone.
constexpr const char* kFromVersion1 = R"(
ALTER TABLE cluster ADD COLUMN resolve_due INTEGER DEFAULT 0;
ALTER TABLE cluster ADD COLUMN scrub_due INTEGER DEFAULT 0;
ALTER TABLE cluster ADD COLUMN repairer INTEGER DEFAULT 0;
ALTER TABLE nodes ADD COLUMN out INTEGER DEFAULT 0;
UPDATE nodes SET out = 1 WHERE id >= (SELECT nodes FROM cluster);
ALTER TABLE regions ADD COLUMN missing INTEGER DEFAULT 0;
CREATE TABLE former (worker INTEGER PRIMARY KEY);
)";

constexpr const char* kFromVersion2 = R"(
ALTER TABLE cluster ADD COLUMN records_only INTEGER DEFAULT 0;
ALTER TABLE nodes ADD COLUMN wish INTEGER DEFAULT 0;
ALTER TABLE nodes ADD COLUMN wish_regions INTEGER DEFAULT 0;
)";

// No agent could have joined with engine raw and another one's memory for long.
constexpr const char* kFromVersion3 = R"(
ALTER TABLE cluster ADD COLUMN life INTEGER DEFAULT 0;
ALTER TABLE cluster ADD COLUMN engines INTEGER DEFAULT 0;
ALTER TABLE cluster ADD COLUMN nobody_stayed INTEGER DEFAULT 0;
CREATE TABLE lives (life INTEGER PRIMARY KEY, epoch INTEGER);
)";

constexpr const char* kFromVersion4 = R"(
ALTER TABLE cluster ADD COLUMN heal_due INTEGER DEFAULT 0;
ALTER TABLE nodes ADD COLUMN mark INTEGER DEFAULT 0;
)";

constexpr const char* kFromVersion5 = R"(
ALTER TABLE cluster ADD COLUMN leaving INTEGER DEFAULT 0;
ALTER TABLE cluster ADD COLUMN directory INTEGER DEFAULT 0;
ALTER TABLE cluster ADD COLUMN may_shrink INTEGER DEFAULT 0;
ALTER TABLE cluster ADD COLUMN index_left INTEGER DEFAULT 0;
)";

constexpr const char* kFromVersion6 = "ALTER TABLE nodes ADD COLUMN rdma TEXT DEFAULT '';";

// One prepared statement; values are bound and read from left to right.
class Statement {
 public:
  Statement(sqlite3* db, const char* sql) {
    ok_ = sqlite3_prepare_v2(db, sql, -1, &statement_, nullptr) == SQLITE_OK;
  }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement() { sqlite3_finalize(statement_); }

  Statement& Bind(uint64_t number) {
    ok_ =
        ok_ && sqlite3_bind_int64(statement_, ++bound_, static_cast<int64_t>(number)) == SQLITE_OK;
    return *this;
  }
  Statement& Bind(const std::string& text) {
    ok_ = ok_ && sqlite3_bind_text(statement_, ++bound_, text.data(), static_cast<int>(text.size()),
                                   SQLITE_TRANSIENT) == SQLITE_OK;
    return *this;
  }
  // True if the statement without rows has been executed.
  bool Run() {
    ok_ = ok_ && sqlite3_step(statement_) == SQLITE_DONE;
    sqlite3_reset(statement_);
    bound_ = 0;
    return ok_;
  }
  // True if there is another row; afterwards ok() tells an end from an error.
  bool NextRow() {
    column_ = 0;
    if (!ok_) return false;
    const int code = sqlite3_step(statement_);
    ok_ = code == SQLITE_ROW || code == SQLITE_DONE;
    return code == SQLITE_ROW;
  }
  uint64_t Number() { return static_cast<uint64_t>(sqlite3_column_int64(statement_, column_++)); }
  std::string Text() {
    const int column = column_++;
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    if (text == nullptr) return "";
    return {text, static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
  }
  [[nodiscard]] bool ok() const { return ok_; }

 private:
  sqlite3_stmt* statement_ = nullptr;
  bool ok_ = false;
  int bound_ = 0;
  int column_ = 0;
};

bool Execute(sqlite3* db, const char* sql) {
  return sqlite3_exec(db, sql, nullptr, nullptr, nullptr) == SQLITE_OK;
}

bool ReadNumber(sqlite3* db, const char* sql, uint64_t* number) {
  Statement statement(db, sql);
  if (!statement.NextRow()) return false;
  *number = statement.Number();
  return true;
}

// Makes the directory, and those above it, where they are missing.
bool MakeDirectory(const std::string& directory) {
  if (mkdir(directory.c_str(), 0700) == 0 || errno == EEXIST) return true;
  const size_t slash = directory.find_last_of('/');
  if (errno != ENOENT || slash == std::string::npos || slash == 0) return false;
  return MakeDirectory(directory.substr(0, slash)) && mkdir(directory.c_str(), 0700) == 0;
}

bool LoadCluster(sqlite3* db, ClusterRecord* cluster) {
  Statement row(db,
                "SELECT cluster, replicas, nodes, next_member, next_worker, next_keyspace, epoch, "
                "time_us, worker_index_end, resolve_due, scrub_due, repairer, records_only, "
                "life, engines, nobody_stayed, heal_due, leaving, directory, may_shrink, "
                "index_left FROM cluster");
  if (row.NextRow()) {
    cluster->cluster = row.Number();
    cluster->replicas = static_cast<int>(row.Number());
    cluster->nodes = static_cast<uint16_t>(row.Number());
    cluster->next_member = row.Number();
    cluster->next_worker = static_cast<uint32_t>(row.Number());
    cluster->next_keyspace = static_cast<uint32_t>(row.Number());
    cluster->epoch = row.Number();
    cluster->time_us = row.Number();
    cluster->worker_index_end = static_cast<uint16_t>(row.Number());
    cluster->resolve_due = row.Number() != 0;
    cluster->scrub_due = row.Number() != 0;
    cluster->repairer = row.Number();
    cluster->records_only = row.Number() != 0;
    cluster->life = row.Number();
    const uint64_t engines = row.Number();
    if (engines > static_cast<uint64_t>(EngineFamily::kSingleCopy)) return false;
    cluster->engines = static_cast<EngineFamily>(engines);
    cluster->nobody_stayed = row.Number() != 0;
    cluster->heal_due = row.Number() != 0;
    cluster->leaving = static_cast<uint16_t>(row.Number());
    const uint64_t directory = row.Number();
    if (directory >= kDirectories) return false;
    cluster->directory = static_cast<uint8_t>(directory);
    cluster->may_shrink = row.Number() != 0;
    cluster->index_left = row.Number() != 0;
  }
  Statement keyspaces(db, "SELECT database, keyspace FROM keyspaces");
  while (keyspaces.NextRow()) {
    const uint64_t database = keyspaces.Number();
    if (database < kMaxDatabases) {
      cluster->keyspaces[database] = KeyspaceId{static_cast<uint32_t>(keyspaces.Number())};
    }
  }
  return row.ok() && keyspaces.ok();
}

// False with SQLITE_OK as the error: rows that no master wrote.
bool LoadNodes(sqlite3* db, DurableState* state) {
  Statement row(db,
                "SELECT id, incarnation, bytes, tcp_host, tcp_port, shm_path, host_id, out, wish, "
                "wish_regions, mark, rdma FROM nodes ORDER BY id");
  while (row.NextRow()) {
    if (row.Number() != state->nodes.size()) return false;
    NodeRecord& node = state->nodes.emplace_back();
    node.incarnation = row.Number();
    node.bytes = row.Number();
    node.address.tcp_host = row.Text();
    node.address.tcp_port = static_cast<uint16_t>(row.Number());
    node.address.shm_path = row.Text();
    node.address.host_id = row.Text();
    node.out = row.Number() != 0;
    const uint64_t wish = row.Number();
    if (wish > static_cast<uint64_t>(NodeWish::kDrain)) return false;
    node.wish = static_cast<NodeWish>(wish);
    node.wish_regions = static_cast<uint32_t>(row.Number());
    node.mark = row.Number();
    node.address.rdma = row.Text();
  }
  Statement region(
      db, "SELECT region, replica, node, base, missing FROM regions ORDER BY region, replica");
  while (region.NextRow()) {
    const uint64_t number = region.Number();
    const uint64_t replica = region.Number();
    if (replica >= kMaxReplicas || number > state->regions.size() ||
        (number == state->regions.size() && replica != 0)) {
      return false;
    }
    if (replica == 0) state->regions.emplace_back();
    state->regions[number].nodes[replica] = NodeId{static_cast<uint16_t>(region.Number())};
    state->regions[number].base[replica] = region.Number();
    state->regions[number].missing += region.Number() != 0 ? 1 : 0;
  }
  return row.ok() && region.ok();
}

bool LoadAgents(sqlite3* db, DurableState* state) {
  Statement seat(db, "SELECT worker_index, worker, member, expelled FROM seats");
  while (seat.NextRow()) {
    SeatRecord& record = state->seats[static_cast<uint16_t>(seat.Number())];
    record.worker = WorkerId{static_cast<uint32_t>(seat.Number())};
    record.member = seat.Number();
    record.expelled = seat.Number() != 0;
  }
  Statement agent(db, "SELECT id, pid, host, address, version FROM agents");
  while (agent.NextRow()) {
    AgentRecord& record = state->agents[agent.Number()];
    record.pid = agent.Number();
    record.host = agent.Text();
    record.address = agent.Text();
    record.version = agent.Text();
  }
  Statement former(db, "SELECT worker FROM former");
  while (former.NextRow()) state->former.insert(static_cast<uint32_t>(former.Number()));
  Statement life(db, "SELECT life, epoch FROM lives");
  while (life.NextRow()) {
    const uint64_t name = life.Number();
    state->lives[name] = life.Number();
  }
  return seat.ok() && agent.ok() && former.ok() && life.ok();
}

bool WriteCluster(sqlite3* db, const ClusterRecord& cluster) {
  Statement row(
      db,
      "REPLACE INTO cluster VALUES (0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
      "?, ?, ?, ?)");
  row.Bind(cluster.cluster).Bind(static_cast<uint64_t>(cluster.replicas)).Bind(cluster.nodes);
  row.Bind(cluster.next_member).Bind(cluster.next_worker).Bind(cluster.next_keyspace);
  row.Bind(cluster.epoch).Bind(cluster.time_us).Bind(cluster.worker_index_end);
  row.Bind(uint64_t{cluster.resolve_due}).Bind(uint64_t{cluster.scrub_due}).Bind(cluster.repairer);
  row.Bind(uint64_t{cluster.records_only}).Bind(cluster.life);
  row.Bind(static_cast<uint64_t>(cluster.engines)).Bind(uint64_t{cluster.nobody_stayed});
  row.Bind(uint64_t{cluster.heal_due}).Bind(cluster.leaving).Bind(cluster.directory);
  row.Bind(uint64_t{cluster.may_shrink}).Bind(uint64_t{cluster.index_left});
  if (!row.Run()) return false;
  Statement keyspace(db,
                     "INSERT INTO keyspaces VALUES (?1, ?2) ON CONFLICT (database) DO UPDATE SET "
                     "keyspace = ?2 WHERE keyspace != ?2");
  for (uint32_t i = 0; i < kMaxDatabases; ++i) {
    if (!keyspace.Bind(i).Bind(cluster.keyspaces[i].value).Run()) return false;
  }
  return true;
}

bool WriteNodes(sqlite3* db, const DurableChange& change, int replicas) {
  Statement node(db, "REPLACE INTO nodes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  for (const auto& [id, record] : change.nodes) {
    node.Bind(id).Bind(record.incarnation).Bind(record.bytes).Bind(record.address.tcp_host);
    node.Bind(record.address.tcp_port).Bind(record.address.shm_path).Bind(record.address.host_id);
    node.Bind(uint64_t{record.out}).Bind(static_cast<uint64_t>(record.wish));
    node.Bind(record.wish_regions).Bind(record.mark).Bind(record.address.rdma);
    if (!node.Run()) return false;
  }
  Statement cut(db, "DELETE FROM regions WHERE region >= ?");
  if (change.regions_end.has_value() && !cut.Bind(*change.regions_end).Run()) return false;
  Statement region(db, "REPLACE INTO regions VALUES (?, ?, ?, ?, ?)");
  for (const auto& [number, placement] : change.regions) {
    for (int replica = 0; replica < replicas; ++replica) {
      region.Bind(number).Bind(static_cast<uint64_t>(replica));
      region.Bind(placement.nodes[replica].value).Bind(placement.base[replica]);
      region.Bind(uint64_t{replica >= replicas - placement.missing});
      if (!region.Run()) return false;
    }
  }
  return node.ok() && region.ok();
}

bool WriteAgents(sqlite3* db, const DurableChange& change) {
  Statement put_seat(db, "REPLACE INTO seats VALUES (?, ?, ?, ?)");
  Statement drop_seat(db, "DELETE FROM seats WHERE worker_index = ?");
  for (const auto& [index, seat] : change.seats) {
    if (!seat.has_value()) {
      if (!drop_seat.Bind(index).Run()) return false;
    } else {
      put_seat.Bind(index).Bind(seat->worker.value).Bind(seat->member);
      if (!put_seat.Bind(uint64_t{seat->expelled}).Run()) return false;
    }
  }
  Statement put_agent(db, "REPLACE INTO agents VALUES (?, ?, ?, ?, ?)");
  Statement drop_agent(db, "DELETE FROM agents WHERE id = ?");
  for (const auto& [id, agent] : change.agents) {
    if (!agent.has_value()) {
      if (!drop_agent.Bind(id).Run()) return false;
    } else {
      put_agent.Bind(id).Bind(agent->pid).Bind(agent->host).Bind(agent->address);
      if (!put_agent.Bind(agent->version).Run()) return false;
    }
  }
  Statement put_former(db, "REPLACE INTO former VALUES (?)");
  Statement drop_former(db, "DELETE FROM former WHERE worker = ?");
  for (const auto& [worker, is_one] : change.former) {
    if (!(is_one ? put_former : drop_former).Bind(worker).Run()) return false;
  }
  Statement put_life(db, "REPLACE INTO lives VALUES (?, ?)");
  Statement drop_life(db, "DELETE FROM lives WHERE life = ?");
  for (const auto& [life, epoch] : change.lives) {
    if (!(epoch.has_value() ? put_life.Bind(life).Bind(*epoch) : drop_life.Bind(life)).Run()) {
      return false;
    }
  }
  return put_seat.ok() && drop_seat.ok() && put_agent.ok() && drop_agent.ok() && put_former.ok() &&
         drop_former.ok() && put_life.ok() && drop_life.ok();
}

}  // namespace

Result<std::unique_ptr<SqliteStore>> SqliteStore::Open(const std::string& directory,
                                                       std::string* reason) {
  if (!MakeDirectory(directory)) {
    *reason = "cannot make the data directory " + directory + ": " + std::strerror(errno);
    return Status(StatusCode::kUnavailable, "no data directory");
  }
  const std::string path = directory + "/master.db";
  sqlite3* db = nullptr;
  const mode_t mask = umask(077);
  const int code = sqlite3_open_v2(
      path.c_str(), &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  std::unique_ptr<SqliteStore> store(new SqliteStore(db, path));
  Status status;
  if (code != SQLITE_OK) {
    *reason = store->Error("cannot open " + path);
    status = Status(StatusCode::kUnavailable, "the store cannot be opened");
  } else {
    status = store->Prepare(reason);
  }
  umask(mask);
  if (!status.ok()) return status;
  return store;
}

SqliteStore::~SqliteStore() { sqlite3_close(db_); }

std::string SqliteStore::Error(const std::string& step) const {
  std::string text = step + ": " + (db_ == nullptr ? "out of memory" : sqlite3_errmsg(db_));
  const int system_error = db_ == nullptr ? 0 : sqlite3_system_errno(db_);
  if (system_error != 0) text += std::string(" (") + std::strerror(system_error) + ")";
  return text;
}

Status SqliteStore::Prepare(std::string* reason) {
  const auto fail = [&](StatusCode code, std::string text) {
    *reason = std::move(text);
    return Status(code, "the store cannot be used");
  };
  if (sqlite3_db_readonly(db_, "main") == 1) {
    return fail(StatusCode::kUnavailable,
                path_ + " is read-only; the master must be able to write its data directory");
  }
  uint64_t application = 0;
  uint64_t version = 0;
  uint64_t tables = 0;
  sqlite3_busy_timeout(db_, static_cast<int>(kPredecessorEndsWithin.count()));
  // Exclusive: the lock is taken with the first read and kept.
  const bool read = Execute(db_, "PRAGMA locking_mode = EXCLUSIVE") &&
                    Execute(db_, "PRAGMA journal_mode = WAL") &&
                    Execute(db_, "PRAGMA synchronous = FULL") &&
                    Execute(db_, "PRAGMA cache_size = -512") && Execute(db_, "BEGIN IMMEDIATE") &&
                    ReadNumber(db_, "PRAGMA application_id", &application) &&
                    ReadNumber(db_, "PRAGMA user_version", &version) &&
                    ReadNumber(db_, "SELECT count(*) FROM sqlite_master", &tables);
  if (!read) {
    switch (sqlite3_errcode(db_)) {
      case SQLITE_BUSY:
      case SQLITE_LOCKED:
        return fail(StatusCode::kUnavailable,
                    path_ + " is in use by another master; stop that one first");
      case SQLITE_NOTADB:
        return fail(StatusCode::kInvalidArgument,
                    path_ + " is no database of a master; take another data directory");
      case SQLITE_READONLY:
        return fail(StatusCode::kUnavailable,
                    path_ + " is read-only; the master must be able to write its data directory");
      default:
        return fail(StatusCode::kUnavailable, Error("cannot use " + path_));
    }
  }
  if (tables == 0 && application == 0) {
    const std::string stamp = "PRAGMA application_id = " + std::to_string(kApplicationId) +
                              "; PRAGMA user_version = " + std::to_string(kSchemaVersion);
    if (!Execute(db_, kSchema) || !Execute(db_, stamp.c_str()) || !Execute(db_, "COMMIT")) {
      return fail(StatusCode::kUnavailable, Error("cannot write " + path_));
    }
    return Status::Ok();
  }
  if (application != static_cast<uint64_t>(kApplicationId)) {
    return fail(StatusCode::kInvalidArgument,
                path_ + " is the database of another program; take another data directory");
  }
  if (version >= 1 && version < static_cast<uint64_t>(kSchemaVersion)) {
    const std::string stamp = "PRAGMA user_version = " + std::to_string(kSchemaVersion);
    if ((version < 2 && !Execute(db_, kFromVersion1)) ||
        (version < 3 && !Execute(db_, kFromVersion2)) ||
        (version < 4 && !Execute(db_, kFromVersion3)) ||
        (version < 5 && !Execute(db_, kFromVersion4)) ||
        (version < 6 && !Execute(db_, kFromVersion5)) || !Execute(db_, kFromVersion6) ||
        !Execute(db_, stamp.c_str())) {
      return fail(StatusCode::kUnavailable, Error("cannot bring " + path_ + " up to date"));
    }
    version = kSchemaVersion;
  }
  if (version != static_cast<uint64_t>(kSchemaVersion)) {
    return fail(StatusCode::kInvalidArgument,
                path_ + " was written by another version of the master (schema " +
                    std::to_string(version) + ", this one knows " + std::to_string(kSchemaVersion) +
                    "); start that version");
  }
  if (!Execute(db_, "COMMIT")) return fail(StatusCode::kUnavailable, Error("cannot use " + path_));
  return Status::Ok();
}

Result<DurableState> SqliteStore::Load(std::string* reason) {
  DurableState state;
  if (LoadCluster(db_, &state.cluster) && LoadNodes(db_, &state) && LoadAgents(db_, &state)) {
    return state;
  }
  const int code = sqlite3_errcode(db_) & 0xff;
  const bool odd = code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE;
  *reason = odd ? path_ + " holds rows that no master wrote; restore a copy of it"
                : Error("cannot read " + path_);
  return Status(StatusCode::kCorrupt, "the store cannot be read");
}

Status SqliteStore::Write(const DurableChange& change, std::string* reason) {
  if (change.empty()) return Status::Ok();
  // A map comes with the record that says how many replicas it has.
  CHECK(change.regions.empty() || change.cluster.has_value());
  const int replicas = change.cluster.has_value() ? change.cluster->replicas : 0;
  const bool written = Execute(db_, "BEGIN IMMEDIATE") &&
                       (!change.cluster.has_value() || WriteCluster(db_, *change.cluster)) &&
                       WriteNodes(db_, change, replicas) && WriteAgents(db_, change) &&
                       Execute(db_, "COMMIT");
  if (written) return Status::Ok();
  *reason = Error("cannot write " + path_);
  if (sqlite3_get_autocommit(db_) == 0) Execute(db_, "ROLLBACK");
  return Status(StatusCode::kUnavailable, "the store cannot be written");
}

// The lock is this process's alone, so that no other process can read the file while it is open.
Result<std::string> SqliteStore::Copy(std::string* reason) {
  const std::string copy = path_ + ".backup";
  unlink(copy.c_str());
  const mode_t mask = umask(077);
  Statement vacuum(db_, "VACUUM INTO ?");
  const bool done = vacuum.Bind(copy).Run();
  if (!done) *reason = Error("cannot copy " + path_ + " to " + copy);
  umask(mask);
  std::ifstream file(copy, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const bool read = file.is_open() && !bytes.empty();
  unlink(copy.c_str());
  if (done && read) return bytes;
  if (done) *reason = "cannot read the copy " + copy;
  return Status(StatusCode::kUnavailable, "the store cannot be copied");
}

}  // namespace onetrip
