#include "tests/sim/crowded_keys.h"

#include <map>

#include "client_core/index/key_hash.h"
#include "master/membership.h"
#include "tests/support/command_model.h"

namespace onetrip {
namespace {

template <typename Wanted>
std::vector<std::string> FindKeys(size_t count, Wanted wanted) {
  Result<MembershipState> state = MembershipState::Create(ClusterShape());
  CHECK(state.ok());
  const KeyspaceId keyspace = state->view().keyspaces[0];
  std::vector<std::string> keys;
  for (uint64_t n = 0; keys.size() < count; ++n) {
    std::string key = "key" + std::to_string(n);
    if (wanted(KeyHash(HashKey(keyspace, key)))) keys.push_back(std::move(key));
  }
  return keys;
}

// Returns true if the word at `position` of a command names a key.
bool IsKey(const Command& command, size_t position) {
  if (position == 0) return false;
  const std::string& name = command[0];
  if (name == "SWAPDB") return false;
  if (name == "MGET" || name == "DEL" || name == "EXISTS" || name == "UNLINK") return true;
  if (name == "MSET") return position % 2 == 1;
  return position == 1;
}

}  // namespace

const std::vector<std::string>& CrowdedKeys() {
  static const std::vector<std::string> keys =
      FindKeys(64, [](KeyHash hash) { return hash.group(0) < 2 && hash.group(1) < 2; });
  return keys;
}

const std::vector<std::string>& GrowingKeys() {
  static const std::vector<std::string> keys =
      FindKeys(180, [](KeyHash hash) { return hash.group(0) / 2 == 1 && hash.group(1) / 2 == 1; });
  return keys;
}

const std::vector<std::string>& TwinKeys() {
  static const std::vector<std::string> keys = FindKeys(4, [](KeyHash hash) {
    return hash.fingerprint() == 77 && hash.group(0) == 5 && hash.side(0) == 0;
  });
  return keys;
}

void RenameKeys(const std::vector<std::string>& names, Program* program) {
  std::map<std::string, std::string> renamed;
  for (std::vector<Command>& client : *program) {
    for (Command& command : client) {
      for (size_t i = 0; i < command.size(); ++i) {
        if (!IsKey(command, i)) continue;
        if (!renamed.contains(command[i])) {
          const std::string& name =
              renamed.size() < names.size() ? names[renamed.size()] : command[i];
          renamed.emplace(command[i], name);
        }
        command[i] = renamed.at(command[i]);
      }
    }
  }
}

}  // namespace onetrip
