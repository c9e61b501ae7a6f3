#include "tests/support/collection_workload.h"

#include <array>
#include <string>
#include <string_view>

#include "client_core/base/rng.h"
#include "tests/support/command_model.h"

namespace onetrip {
namespace {

// Makes commands on collections. No element of a list, and no value, is written twice.
class CollectionCommands {
 public:
  explicit CollectionCommands(uint64_t seed) : rng_(seed), members_(rng_.Below(2) == 0 ? 5 : 25) {}

  // A command on `key`, named by the client and how many commands that has given before. Mostly of
  // the type that the key has for all clients.
  Command Make(const std::string& key, size_t client, size_t op) {
    const std::string name = "c" + std::to_string(client) + "o" + std::to_string(op) + ";";
    uint64_t type = 0;
    for (const char c : key) type = type * 31 + static_cast<unsigned char>(c);
    if (rng_.Below(12) == 0) type = rng_.Next();
    switch (type % 5) {
      case 0:
        return List(key, name);
      case 1:
        return Hash(key, name);
      case 2:
        return Set(key);
      case 3:
        return Stream(key, client, op, name);
      default:
        return SortedSet(key);
    }
  }

 private:
  std::string Member() { return "m" + std::to_string(rng_.Below(members_)); }
  std::string Number() { return std::to_string(1 + rng_.Below(9)); }
  std::string Text(const std::string& name) {
    constexpr std::array<size_t, 5> kBytes = {0, 0, 40, 100, 700};
    const size_t bytes = kBytes[rng_.Below(kBytes.size())];
    std::string text = name;
    while (text.size() < bytes) text += name;
    return text;
  }

  Command List(const std::string& key, const std::string& name) {
    switch (rng_.Below(8)) {
      case 0:
      case 1:
        return {"LPUSH", key, Text(name)};
      case 2:
        return {"RPUSH", key, name + "a", Text(name + "b")};
      case 3:
        return {"LPOP", key};
      case 4:
        return {"RPOP", key};
      case 5:
        return {"LLEN", key};
      default:
        return {"LRANGE", key, "0", "-1"};
    }
  }

  Command Hash(const std::string& key, const std::string& name) {
    switch (rng_.Below(9)) {
      case 0:
      case 1:
        return {"HSET", key, Member(), Text(name)};
      case 2:
        return {"HSET", key, Member(), name + "a", Member(), Text(name + "b")};
      case 3:
        return {"HINCRBY", key, "n" + std::to_string(rng_.Below(2)), Number()};
      case 4:
        return {"HDEL", key, Member()};
      case 5:
        return {"HGET", key, Member()};
      case 6:
        return {"HLEN", key};
      default:
        return {"HGETALL", key};
    }
  }

  Command Set(const std::string& key) {
    switch (rng_.Below(6)) {
      case 0:
        return {"SADD", key, Member()};
      case 1:
        return {"SADD", key, Member(), Member()};
      case 2:
        return {"SREM", key, Member(), Member()};
      case 3:
        return {"SCARD", key};
      default:
        return {"SISMEMBER", key, Member()};
    }
  }

  Command SortedSet(const std::string& key) {
    switch (rng_.Below(8)) {
      case 0:
      case 1:
        return {"ZADD", key, Number(), Member()};
      case 2:
        return {"ZADD", key, Number(), Member(), Number(), Member()};
      case 3:
        return {"ZINCRBY", key, Number(), Member()};
      case 4:
        return {"ZREM", key, Member()};
      case 5:
        return {"ZPOPMIN", key};
      case 6:
        return {"ZCARD", key};
      default:
        return {"ZRANGE", key, "0", "-1", "WITHSCORES"};
    }
  }

  // Ids ascend with the commands of a client, and are met by those of others.
  Command Stream(const std::string& key, size_t client, size_t op, const std::string& name) {
    const std::string id = std::to_string(op + 1) + "-" + std::to_string(client + 1);
    const std::string other =
        std::to_string(1 + rng_.Below(op + 2)) + "-" + std::to_string(1 + rng_.Below(client + 2));
    const std::string consumer = "d" + std::to_string(client % 2);
    switch (rng_.Below(14)) {
      case 9:
        return {"XGROUP", "CREATE", key, "g", "0", "MKSTREAM"};
      case 10:
      case 11:
        return {"XREADGROUP", "GROUP", "g", consumer, "COUNT", "2", "STREAMS", key, ">"};
      case 12:
        return {"XACK", key, "g", other};
      case 13:
        return {"XPENDING", key, "g"};
      case 0:
      case 1:
      case 2:
        return {"XADD", key, id, "f", Text(name)};
      case 3:
        return {"XDEL", key, other};
      case 4:
        return {"XTRIM", key, "MAXLEN", std::to_string(rng_.Below(6))};
      case 5:
        return {"XLEN", key};
      default:
        return {"XRANGE", key, "-", "+"};
    }
  }

  Rng rng_;
  // Few fields and members, so that commands meet; or enough for trees.
  const uint64_t members_;
};

bool IsOnOneKey(const Command& command) {
  const std::string name = CommandName(command);
  constexpr auto kOthers = std::to_array<std::string_view>(
      {"mget", "mset", "persist", "pexpire", "ttl", "pttl", "type"});
  if (KeyOf(command).empty() || command.size() < 2) return false;
  for (const std::string_view other : kOthers) {
    if (name == other) return false;
  }
  return (name != "del" && name != "exists" && name != "unlink") || command.size() == 2;
}

}  // namespace

void UseCollections(uint64_t seed, Program* program) {
  constexpr uint64_t kStream = 0xc011'0000'0000;
  CollectionCommands make(seed ^ kStream);
  Rng rng(seed);
  for (size_t client = 0; client < program->size(); ++client) {
    std::vector<Command>& commands = (*program)[client];
    for (size_t op = 0; op < commands.size(); ++op) {
      if (!IsOnOneKey(commands[op]) || rng.Below(10) < 2) continue;
      const std::string key(KeyOf(commands[op]));
      commands[op] = make.Make(key, client, op);
    }
  }
}

}  // namespace onetrip
