// KeptState: a member's copy of what the master has stored (control.proto, "Copies of the master's
// state"), so that the loss of the master's disk is not the loss of the data.
//
// What is kept is the master's own bytes: a whole state and the changes since. A file of it is
// text for no one: a magic number, a checksum and a Recalled message. One thread at a time.
#ifndef ONETRIP_CLIENT_CORE_CONTROL_KEPT_STATE_H_
#define ONETRIP_CLIENT_CORE_CONTROL_KEPT_STATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "client_core/base/status.h"

namespace onetrip {

namespace control {
class KeepState;
class Recalled;
}  // namespace control

class KeptState {
 public:
  // Takes what was kept in a file, as long as the master has said nothing.
  void Restore(const control::Recalled& message);
  // Takes what the master says next. A change of something that is not kept is ignored.
  void Add(const control::KeepState& message);
  // Fills in the version and the changes.
  void Fill(control::Recalled* message) const;
  [[nodiscard]] uint64_t version() const { return version_; }

 private:
  uint64_t version_ = 0;
  std::vector<std::string> changes_;  // [0] is whole
};

// The file's bytes.
std::string EncodeStateFile(const control::Recalled& message);
// kCorrupt: these are no bytes of EncodeStateFile().
Status DecodeStateFile(const std::string& bytes, control::Recalled* message);
// Puts `bytes` at `path` and onto the disk: all of them, or the file stays as it was. Blocks.
Status WriteFileWhole(const std::string& path, const std::string& bytes, std::string* reason);
Status ReadStateFile(const std::string& path, control::Recalled* message, std::string* reason);

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CONTROL_KEPT_STATE_H_
