// SqliteStore: the master's state in one SQLite file, DIR/master.db. SQLite stays in the .cc.
//
// Write-ahead log, synced to the disk with every write; locked for as long as the store is open, so
// that no second master works on the same state. One thread at a time.
#ifndef ONETRIP_MASTER_SQLITE_STORE_H_
#define ONETRIP_MASTER_SQLITE_STORE_H_

#include <memory>
#include <string>

#include "master/store.h"

struct sqlite3;

namespace onetrip {

class SqliteStore final : public Store {
 public:
  // Changes when an older master would misread the file. Older files are brought up to date.
  static constexpr int kSchemaVersion = 7;

  // Opens the store in `directory`, which is created (mode 0700) when it is not there, as is the
  // file (mode 0600). kUnavailable: locked by another master, read-only or not to be opened;
  // kInvalidArgument: the file is something else, or of a newer master. *reason is one line.
  static Result<std::unique_ptr<SqliteStore>> Open(const std::string& directory,
                                                   std::string* reason);
  ~SqliteStore() override;

  Result<DurableState> Load(std::string* reason) override;
  Status Write(const DurableChange& change, std::string* reason) override;
  Result<std::string> Copy(std::string* reason) override;

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  SqliteStore(sqlite3* db, std::string path) : db_(db), path_(std::move(path)) {}
  Status Prepare(std::string* reason);
  // SQLite's text for the step that has just failed, as one line.
  [[nodiscard]] std::string Error(const std::string& step) const;

  sqlite3* db_;
  std::string path_;
};

}  // namespace onetrip

#endif  // ONETRIP_MASTER_SQLITE_STORE_H_
