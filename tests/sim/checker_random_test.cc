// The checker against a store that really executes: what happened is accepted, and of answers that
// were tampered with it says what a search through all orders and times says.
//
// The store here shares no code with the checker's model, and its clock counts whole milliseconds.
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "client_core/base/rng.h"
#include "tests/support/linearizability.h"
#include "tests/support/scale.h"

namespace onetrip {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;
constexpr int64_t kForever = std::numeric_limits<int64_t>::max();

struct StoredKey {
  std::optional<std::string> value;
  int64_t deadline = kForever;
  auto operator<=>(const StoredKey&) const = default;
};

// Executes one command at `at`; `clock` is what it reads for deadlines from now, and for PTTL.
std::string Execute(const Command& argv, int64_t at, int64_t clock, StoredKey* key) {
  if (at >= key->deadline) *key = {};
  const std::string& name = argv[0];
  const bool there = key->value.has_value();
  const std::string old = key->value.value_or("");
  std::string old_reply = there ? RespBulk(old) : std::string(kRespNil);
  const auto has = [&argv](const char* word) {
    return std::find(argv.begin() + 2, argv.end(), word) != argv.end();
  };
  if (name == "GET") return old_reply;
  if (name == "EXISTS") return RespInteger(there ? 1 : 0);
  if (name == "STRLEN") return RespInteger(static_cast<int64_t>(old.size()));
  if (name == "PTTL") {
    if (!there) return RespInteger(-2);
    if (key->deadline == kForever) return RespInteger(-1);
    return RespInteger(std::max<int64_t>(0, key->deadline - clock));
  }
  if (name == "DEL" || name == "GETDEL") {
    *key = {};
    return name == "DEL" ? RespInteger(there ? 1 : 0) : old_reply;
  }
  if (name == "INCR") {
    int64_t sum = 0;
    const auto [read, error] = std::from_chars(old.data(), old.data() + old.size(), sum);
    if (there && (error != std::errc() || read != old.data() + old.size())) {
      return RespError("ERR value is not an integer or out of range");
    }
    ++sum;
    key->value = std::to_string(sum);
    return RespInteger(sum);
  }
  if (name == "APPEND") {
    key->value = old + argv[2];
    return RespInteger(static_cast<int64_t>(key->value->size()));
  }
  if (name == "PERSIST") {
    const bool had = there && key->deadline != kForever;
    key->deadline = kForever;
    return RespInteger(had ? 1 : 0);
  }
  if (name == "PEXPIRE") {
    const int64_t deadline = clock + std::stoll(argv[2]);
    const bool has_one = key->deadline != kForever;
    const bool fits = there && !(has("NX") && has_one) && !(has("XX") && !has_one) &&
                      !(has("GT") && (!has_one || deadline <= key->deadline)) &&
                      !(has("LT") && deadline >= key->deadline);
    if (fits) key->deadline = deadline;
    return RespInteger(fits ? 1 : 0);
  }
  // SET, SETNX, GETSET.
  const bool refused = there ? name == "SETNX" || has("NX") : has("XX");
  if (!refused) {
    key->value = argv[2];
    if (!has("KEEPTTL")) key->deadline = kForever;
    if (has("PX")) key->deadline = clock + std::stoll(argv.back());
    if (has("PXAT")) key->deadline = std::stoll(argv.back());
  }
  if (name == "SETNX") return RespInteger(refused ? 0 : 1);
  if (name == "GETSET" || has("GET")) return old_reply;
  return std::string(refused ? kRespNil : kRespOk);
}

bool ReadsClock(const Command& argv) {
  return argv[0] == "PTTL" || argv[0] == "PEXPIRE" ||
         std::find(argv.begin(), argv.end(), "PX") != argv.end();
}

struct Shape {
  uint32_t clients = 3;
  uint32_t operations = 2;  // for each client
  int64_t pause_max = 2;    // ms between them
  int64_t length_max = 4;   // ms
  uint32_t unknown_percent = 0;
  int64_t clock_error = 0;                         // ms
  std::vector<std::vector<const char*>> commands;  // $ is a fresh value, # a number of ms
};

const std::vector<std::vector<const char*>> kPlain = {{"GET"},
                                                      {"GET"},
                                                      {"SET", "$"},
                                                      {"DEL"},
                                                      {"INCR"},
                                                      {"APPEND", "$"},
                                                      {"SETNX", "$"},
                                                      {"GETSET", "$"},
                                                      {"GETDEL"},
                                                      {"EXISTS"},
                                                      {"STRLEN"},
                                                      {"SET", "$", "NX"},
                                                      {"SET", "$", "XX"},
                                                      {"SET", "$", "NX", "GET"}};
const std::vector<std::vector<const char*>> kTimed = {{"GET"},
                                                      {"GET"},
                                                      {"SET", "$", "PX", "#"},
                                                      {"SET", "$", "PXAT", "#"},
                                                      {"SET", "$"},
                                                      {"PTTL"},
                                                      {"PTTL"},
                                                      {"SET", "$", "KEEPTTL"},
                                                      {"PEXPIRE", "#"},
                                                      {"PERSIST"},
                                                      {"PEXPIRE", "#", "GT"},
                                                      {"PEXPIRE", "#", "LT"},
                                                      {"INCR"},
                                                      {"DEL"},
                                                      {"PEXPIRE", "#", "NX"},
                                                      {"SET", "$", "PX", "#"}};
const std::vector<std::vector<const char*>> kBlind = {{"GET"}, {"GET"}, {"SET", "$"}, {"DEL"}};

Command MakeCommand(const Shape& shape, Rng* rng, int* fresh) {
  const auto& words = shape.commands[rng->Below(shape.commands.size())];
  Command argv = {words[0], "k"};
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string word = words[i];
    if (word == "$") {
      argv.push_back(rng->Below(2) == 0 ? std::to_string(100 * ++*fresh)
                                        : "v" + std::to_string(++*fresh));
    } else {
      argv.push_back(word == "#" ? std::to_string(1 + rng->Below(8)) : word);
    }
  }
  return argv;
}

// A history that happened: every operation took effect at some time within it, in that order.
std::vector<HistoryOp> MakeHistory(const Shape& shape, Rng* rng) {
  struct Happening {
    int64_t at;
    uint64_t start;
    size_t op;
    bool operator<(const Happening& other) const {
      return std::tie(at, start) < std::tie(other.at, other.start);
    }
  };
  std::vector<HistoryOp> ops;
  std::vector<Happening> happenings;
  int fresh = 0;
  for (uint32_t client = 0; client < shape.clients; ++client) {
    int64_t now = 1;
    for (uint32_t i = 0; i < shape.operations; ++i) {
      now += 1 + static_cast<int64_t>(rng->Below(shape.pause_max));
      const int64_t end = now + static_cast<int64_t>(rng->Below(shape.length_max));
      int64_t at = now + static_cast<int64_t>(rng->Below(end - now + 1));
      HistoryOp op;
      op.argv = MakeCommand(shape, rng, &fresh);
      op.client = client;
      // No two positions are equal: the client and the kind of event are their last digits.
      op.start = static_cast<uint64_t>(now) * 1000 + client;
      op.end = static_cast<uint64_t>(end) * 1000 + 500 + client;
      op.start_ns = static_cast<uint64_t>(now) * kNsPerMs;
      op.end_ns = static_cast<uint64_t>(end) * kNsPerMs;
      op.ending = Ending::kAnswered;
      bool happens = true;
      if (rng->Below(100) < shape.unknown_percent) {
        op.ending = Ending::kUnknown;
        op.end = op.end_ns = HistoryOp::kNever;
        at += static_cast<int64_t>(rng->Below(6));
        happens = rng->Below(3) != 0;
      }
      if (happens) happenings.push_back({at, op.start, ops.size()});
      ops.push_back(std::move(op));
      now = end;
    }
  }
  std::sort(happenings.begin(), happenings.end());
  StoredKey key;
  for (const Happening& happening : happenings) {
    HistoryOp& op = ops[happening.op];
    const auto start = static_cast<int64_t>(op.start_ns / kNsPerMs);
    // PTTL reads its clock after the key, the others before.
    const bool after = op.argv[0] == "PTTL" && op.end_ns != HistoryOp::kNever;
    const int64_t first = after ? happening.at : start;
    const int64_t last = after ? static_cast<int64_t>(op.end_ns / kNsPerMs) : happening.at;
    const int64_t clock = first + static_cast<int64_t>(rng->Below(last - first + 1));
    // The process that executes the command has a clock of its own.
    const int64_t error =
        static_cast<int64_t>(rng->Below(2 * shape.clock_error + 1)) - shape.clock_error;
    std::string reply = Execute(op.argv, happening.at + error, clock + error, &key);
    if (op.ending == Ending::kAnswered) op.reply = std::move(reply);
  }
  return ops;
}

// Tries every order, every time and every clock.
class BruteForce {
 public:
  explicit BruteForce(const std::vector<HistoryOp>& ops) : ops_(ops) {
    for (const HistoryOp& op : ops) {
      const uint64_t last_ns = op.end_ns == HistoryOp::kNever ? op.start_ns : op.end_ns;
      horizon_ = std::max(horizon_, static_cast<int64_t>(last_ns / kNsPerMs));
      timed_ |= ReadsClock(op.argv) || op.argv.back() == "PXAT" ||
                std::find(op.argv.begin(), op.argv.end(), "PXAT") != op.argv.end();
    }
  }

  bool Explains() { return Explains(0, 0, {}); }

 private:
  bool Explains(uint64_t done, int64_t now, const StoredKey& key) {
    uint64_t first_end = HistoryOp::kNever;
    bool all_answered = true;
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (((done >> i) & 1) != 0) continue;
      first_end = std::min(first_end, ops_[i].end);
      all_answered &= ops_[i].ending == Ending::kUnknown;
    }
    if (all_answered) return true;
    if (!refuted_.insert({done, now, key}).second) return false;
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (((done >> i) & 1) != 0 || ops_[i].start > first_end) continue;
      if (ExplainsAfter(i, done, now, key)) return true;
    }
    return false;
  }

  bool ExplainsAfter(size_t i, uint64_t done, int64_t now, const StoredKey& key) {
    const HistoryOp& op = ops_[i];
    const auto start = static_cast<int64_t>(op.start_ns / kNsPerMs);
    const int64_t end =
        op.end_ns == HistoryOp::kNever ? horizon_ : static_cast<int64_t>(op.end_ns / kNsPerMs);
    const bool clock_matters = ReadsClock(op.argv);
    const int64_t first = timed_ ? std::max(now, start) : 0;
    for (int64_t at = first; at <= (timed_ ? end : 0); ++at) {
      const int64_t clock_first = op.argv[0] == "PTTL" ? at : start;
      for (int64_t clock = clock_first; clock <= (clock_matters ? end : clock_first); ++clock) {
        StoredKey next = key;
        const std::string reply = Execute(op.argv, at, clock, &next);
        if (op.ending == Ending::kAnswered && reply != op.reply) continue;
        if (Explains(done | (uint64_t{1} << i), at, next)) return true;
      }
    }
    return false;
  }

  const std::vector<HistoryOp>& ops_;
  int64_t horizon_ = 0;
  bool timed_ = false;
  std::set<std::tuple<uint64_t, int64_t, StoredKey>> refuted_;
};

// Changes one answer, so that it may or may not still fit.
void Tamper(std::vector<HistoryOp>* ops, Rng* rng) {
  HistoryOp& op = (*ops)[rng->Below(ops->size())];
  if (op.ending != Ending::kAnswered) return;
  const HistoryOp& other = (*ops)[rng->Below(ops->size())];
  if (op.reply[0] == ':') {
    const int64_t number = std::stoll(op.reply.substr(1));
    op.reply = RespInteger(number + (rng->Below(2) == 0 ? 1 : -1));
  } else if (op.argv[0] == "GET" && other.argv.size() > 2) {
    op.reply = RespBulk(other.argv[2]);
  } else {
    op.reply = std::string(op.reply == kRespNil ? kRespOk : kRespNil);
  }
}

void ExpectAgreementWithBruteForce(const Shape& shape, uint64_t seeds) {
  uint64_t good = 0;
  uint64_t bad = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    Rng rng(seed);
    std::vector<HistoryOp> ops = MakeHistory(shape, &rng);
    const CheckResult happened = CheckKey(ops, {});
    ASSERT_TRUE(happened.ok()) << "seed " << seed << "\n" << happened.message;
    const uint64_t changes = 1 + rng.Below(2);
    for (uint64_t i = 0; i < changes; ++i) Tamper(&ops, &rng);
    const CheckResult result = CheckKey(ops, {});
    const bool expected = BruteForce(ops).Explains();
    ASSERT_EQ(result.ok(), expected) << "seed " << seed << "\n"
                                     << DescribeHistory(ops) << result.message;
    (expected ? good : bad) += 1;
  }
  // Both happen often enough to mean something.
  EXPECT_GT(good, seeds / 50);
  EXPECT_GT(bad, seeds / 50);
}

TEST(CheckerAgainstBruteForce, AgreesOnPlainCommands) {
  Shape shape;
  shape.commands = kPlain;
  ExpectAgreementWithBruteForce(shape, Scaled(10'000));
  shape.clients = 2;
  shape.operations = 4;
  ExpectAgreementWithBruteForce(shape, Scaled(5'000));
}

TEST(CheckerAgainstBruteForce, AgreesOnOperationsOfUnknownOutcome) {
  Shape shape;
  shape.commands = kPlain;
  shape.operations = 3;
  shape.unknown_percent = 30;
  ExpectAgreementWithBruteForce(shape, Scaled(10'000));
}

TEST(CheckerAgainstBruteForce, AgreesOnExpiry) {
  Shape shape;
  shape.commands = kTimed;
  ExpectAgreementWithBruteForce(shape, Scaled(5'000));
  shape.clients = 2;
  shape.operations = 3;
  shape.length_max = 6;
  ExpectAgreementWithBruteForce(shape, Scaled(5'000));
}

TEST(CheckerOnLongHistories, AcceptsWhatClocksThatDisagreeMadeHappen) {
  Shape shape;
  shape.commands = kTimed;
  shape.clients = 4;
  shape.operations = 250;
  shape.clock_error = 3;
  CheckOptions options;
  options.model.clock_error_ns = 3 * kNsPerMs;
  int refused_as_exact = 0;
  const int histories = Scaled(200);
  for (int seed = 1; seed <= histories; ++seed) {
    Rng rng(static_cast<uint64_t>(seed));
    const std::vector<HistoryOp> ops = MakeHistory(shape, &rng);
    const CheckResult result = CheckKey(ops, {}, options);
    ASSERT_TRUE(result.ok()) << "seed " << seed << "\n" << result.message;
    refused_as_exact += CheckKey(ops, {}).verdict == CheckVerdict::kNot ? 1 : 0;
  }
  EXPECT_GT(refused_as_exact, histories / 2);
}

TEST(CheckerOnLongHistories, AcceptsNoValueThatNobodyWrote) {
  Shape shape;
  shape.clients = 4;
  shape.operations = 250;
  for (const uint32_t unknown_percent : {0U, 2U}) {
    for (const auto& commands : {kPlain, kTimed}) {
      shape.unknown_percent = unknown_percent;
      shape.commands = commands;
      for (uint64_t seed = 1; seed <= 5; ++seed) {
        Rng rng(seed);
        std::vector<HistoryOp> ops = MakeHistory(shape, &rng);
        size_t i = rng.Below(ops.size());
        while (ops[i].argv[0] != "GET" || ops[i].ending != Ending::kAnswered) {
          i = (i + 1) % ops.size();
        }
        ops[i].reply = RespBulk("nobody's");
        const CheckResult result = CheckKey(ops, {});
        EXPECT_NE(result.verdict, CheckVerdict::kLinearizable) << "seed " << seed;
        EXPECT_TRUE(unknown_percent > 0 || result.verdict == CheckVerdict::kNot) << "seed " << seed;
        EXPECT_NE(result.message.find("\"nobody's\""), std::string::npos) << result.message;
      }
    }
  }
}

// Long histories of what happened, and what checking them costs.
void ExpectAccepted(const char* name, Shape shape) {
  constexpr uint32_t kOperations = 4000;
  shape.operations = kOperations / shape.clients;
  const int histories = Scaled(20);
  uint64_t checked = 0;
  uint64_t configurations = 0;
  std::chrono::nanoseconds spent{0};
  for (int seed = 1; seed <= histories; ++seed) {
    Rng rng(static_cast<uint64_t>(seed));
    const std::vector<HistoryOp> ops = MakeHistory(shape, &rng);
    const auto begin = std::chrono::steady_clock::now();
    const CheckResult result = CheckKey(ops, {});
    spent += std::chrono::steady_clock::now() - begin;
    ASSERT_TRUE(result.ok()) << "seed " << seed << "\n" << result.message;
    checked += ops.size();
    configurations += result.configurations;
  }
  const double seconds = std::chrono::duration<double>(spent).count();
  std::printf("%-32s %9.0f operations/s, %5.1f configurations an operation\n", name,
              static_cast<double>(checked) / seconds,
              static_cast<double>(configurations) / static_cast<double>(checked));
}

TEST(CheckerOnLongHistories, AcceptsWhatHappened) {
  for (const uint32_t clients : {2U, 4U, 6U}) {
    const std::string suffix = ", " + std::to_string(clients) + " clients";
    Shape shape;
    shape.clients = clients;
    shape.commands = kBlind;
    ExpectAccepted(("GET, SET, DEL" + suffix).c_str(), shape);
    shape.commands = {{"INCR"}, {"INCR"}, {"GET"}};
    ExpectAccepted(("INCR, GET" + suffix).c_str(), shape);
    shape.commands = kPlain;
    ExpectAccepted(("all without expiry" + suffix).c_str(), shape);
    shape.commands = kTimed;
    ExpectAccepted(("expiry" + suffix).c_str(), shape);
    shape.commands = kPlain;
    shape.unknown_percent = 1;
    ExpectAccepted(("all, 1 % unknown" + suffix).c_str(), shape);
  }
}

}  // namespace
}  // namespace onetrip
