// From argv and reply to the numbers that the model's steps compare; commands on several keys.
#include <algorithm>

#include "tests/support/collection_model.h"
#include "tests/support/command_model.h"

namespace onetrip {
namespace {

using Verb = CompiledOp::Verb;
using Expiry = CompiledOp::Expiry;
using Kind = ModelReply::Kind;

constexpr int64_t kForever = KeyState::kForever;
constexpr int64_t kMsPerSecond = 1000;

constexpr std::string_view kNotInteger = "ERR value is not an integer or out of range";
constexpr std::string_view kSyntax = "ERR syntax error";

struct Row {
  std::string_view name;
  Verb verb;
  size_t words_min;
  size_t words_max;
};
constexpr size_t kAnyNumber = ~size_t{0};
constexpr auto kRows = std::to_array<Row>({
    {"append", Verb::kAppend, 3, 3},
    {"decr", Verb::kAdd, 2, 2},
    {"decrby", Verb::kAdd, 3, 3},
    {"del", Verb::kDel, 2, 2},
    {"exists", Verb::kExists, 2, 2},
    {"expire", Verb::kExpire, 3, kAnyNumber},
    {"expireat", Verb::kExpire, 3, kAnyNumber},
    // The effect of a flush or a swap on one key; its reply says nothing of it.
    {"flushall", Verb::kFlushAll, 1, 2},
    {"flushdb", Verb::kDel, 1, 2},
    {"get", Verb::kGet, 2, 2},
    {"getdel", Verb::kGetDel, 2, 2},
    {"getex", Verb::kGetEx, 2, kAnyNumber},
    {"getrange", Verb::kGetRange, 4, 4},
    {"getset", Verb::kSet, 3, 3},
    // The part of it that is about one key.
    {"mget", Verb::kGet, 2, 2},
    {"incr", Verb::kAdd, 2, 2},
    {"incrby", Verb::kAdd, 3, 3},
    {"persist", Verb::kPersist, 2, 2},
    {"pexpire", Verb::kExpire, 3, kAnyNumber},
    {"pexpireat", Verb::kExpire, 3, kAnyNumber},
    {"pttl", Verb::kPttl, 2, 2},
    {"set", Verb::kSet, 3, kAnyNumber},
    {"setnx", Verb::kSet, 3, 3},
    {"setrange", Verb::kSetRange, 4, 4},
    {"strlen", Verb::kStrLen, 2, 2},
    {"swapdb", Verb::kSwap, 3, 3},
    {"ttl", Verb::kTtl, 2, 2},
    {"type", Verb::kType, 2, 2},
    {"unlink", Verb::kDel, 2, 2},
});

// The option in upper case.
std::string UpperCase(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return upper;
}

bool IsInert(const CompiledOp& op) {
  const bool zero = op.reply == ModelReply{Kind::kInteger, 0};
  const bool nil = op.reply.kind == Kind::kNil;
  switch (op.verb) {
    case Verb::kRefused:
    case Verb::kGet:
    case Verb::kGetRange:
    case Verb::kStrLen:
    case Verb::kExists:
    case Verb::kType:
    case Verb::kTtl:
    case Verb::kPttl:
      return true;
    case Verb::kGetDel:
      return nil;
    case Verb::kGetEx:
      return nil || op.expiry == Expiry::kKeep;
    case Verb::kDel:
    case Verb::kExpire:
    case Verb::kPersist:
      return zero;
    case Verb::kSet:
      if (op.answer_integer) return zero;
      if (!op.answer_previous) return nil;
      return (op.only_if_present && nil) || (op.only_if_missing && op.reply.kind == Kind::kBulk);
    case Verb::kAppend:
    case Verb::kSetRange:
    case Verb::kAdd:
    case Verb::kCollection:
      return op.reply.kind == Kind::kError;
    case Verb::kFlushAll:
    case Verb::kSwap:
      return false;
  }
  return false;
}

bool IsBlind(const CompiledOp& op) {
  const bool any = op.reply.kind == Kind::kAny;
  if (op.verb == Verb::kDel || op.verb == Verb::kGetDel || op.verb == Verb::kFlushAll) return any;
  return op.verb == Verb::kSet && !op.only_if_missing && !op.only_if_present &&
         op.expiry != Expiry::kKeep && (any || !op.answer_previous);
}

}  // namespace

bool CommandModel::Compile(const HistoryOp& op, CompiledOp* compiled, std::string* error) {
  *compiled = CompiledOp();
  const std::string name = CommandName(op.argv);
  const auto row = std::find_if(kRows.begin(), kRows.end(),
                                [&name](const Row& candidate) { return candidate.name == name; });
  const bool is_collection = row == kRows.end() && IsCollectionCommand(name);
  const bool several = row != kRows.end() && op.argv.size() > row->words_max &&
                       (row->verb == Verb::kDel || row->verb == Verb::kExists);
  if ((row == kRows.end() && !is_collection) || several) {
    *error = "the model does not know " + Quote(op.argv[0]) + (several ? " of several keys" : "");
    return false;
  }
  compiled->verb = is_collection ? Verb::kCollection : row->verb;
  compiled->elsewhere = op.database != 0;
  compiled->overlooks_types = name == "mget";
  if (is_collection) {
    compiled->value = static_cast<uint32_t>(collection_commands_.size());
    collection_commands_.push_back(op.argv);
  } else if (op.argv.size() < row->words_min || op.argv.size() > row->words_max) {
    Refuse("ERR wrong number of arguments for '" + name + "' command", compiled);
  } else {
    CompileArguments(op.argv, compiled);
  }
  const bool is_answered = op.ending == Ending::kAnswered && !op.reply.empty();
  compiled->reply = is_answered ? ReadReply(op.reply) : ModelReply();
  compiled->inert = IsInert(*compiled) || CollectionCommandReads(name);
  compiled->blind = IsBlind(*compiled);
  compiled->start_ns = UnixNs(op.start_ns);
  const bool answered = op.ending == Ending::kAnswered;
  compiled->latest_ns = answered ? UnixNs(op.end_ns) : kForever;
  // The process that answers has read its clock by then, even if the effect may still come.
  compiled->clock_end_ns = answered || !op.reply.empty() ? UnixNs(op.end_ns) : kForever;
  return true;
}

ModelReply CommandModel::ReadReply(std::string_view reply) {
  // Encoding what was understood must give the same bytes: so the comparison is exact.
  ModelReply understood;
  const size_t line_end = reply.find("\r\n");
  const std::string_view text =
      line_end == std::string_view::npos ? std::string_view() : reply.substr(1, line_end - 1);
  const auto number = ReadInteger(text);
  if (reply == kRespNil) {
    understood.kind = Kind::kNil;
  } else if (reply[0] == '+') {
    understood = {Kind::kSimple, Intern(text)};
  } else if (reply[0] == '-') {
    understood = {Kind::kError, Intern(text)};
  } else if (reply[0] == '*') {
    understood = {Kind::kArray, Intern(reply)};
  } else if (reply[0] == ':' && number.has_value()) {
    understood = {Kind::kInteger, *number};
  } else if (reply[0] == '$' && reply.size() >= line_end + 4) {
    understood = {Kind::kBulk, Intern(reply.substr(line_end + 2, reply.size() - line_end - 4))};
  }
  if (understood.kind != Kind::kAny && Encode(understood) == reply) return understood;
  return {Kind::kMalformed, 0};
}

void CommandModel::Refuse(std::string_view error, CompiledOp* compiled) {
  *compiled = CompiledOp();
  compiled->value = Intern(error);
}

bool CommandModel::ReadNumber(const std::string& text, int64_t* number, CompiledOp* compiled) {
  const auto read = ReadInteger(text);
  if (!read.has_value()) {
    Refuse(kNotInteger, compiled);
    return false;
  }
  *number = *read;
  return true;
}

void CommandModel::CompileArguments(const Command& argv, CompiledOp* compiled) {
  const std::string name = CommandName(argv);
  switch (compiled->verb) {
    case Verb::kSet:
      compiled->only_if_missing = compiled->answer_integer = name == "setnx";
      compiled->answer_previous = name == "getset";
      compiled->value = Intern(argv[2]);
      return CompileSet(argv, compiled);
    case Verb::kGetEx:
      return CompileGetEx(argv, compiled);
    case Verb::kExpire:
      return CompileExpire(argv, name, compiled);
    case Verb::kAppend:
      compiled->value = Intern(argv[2]);
      return;
    case Verb::kGetRange:
      if (ReadNumber(argv[2], &compiled->amount, compiled)) {
        ReadNumber(argv[3], &compiled->range_end, compiled);
      }
      return;
    case Verb::kSetRange:
      if (ReadNumber(argv[2], &compiled->amount, compiled)) {
        compiled->value = Intern(argv[3]);
        if (compiled->amount < 0) Refuse("ERR offset is out of range", compiled);
      }
      return;
    case Verb::kAdd:
      compiled->amount = 1;
      if (argv.size() == 3 && !ReadNumber(argv[2], &compiled->amount, compiled)) return;
      if (name[0] == 'i') return;
      if (compiled->amount == std::numeric_limits<int64_t>::min()) {
        return Refuse("ERR decrement would overflow", compiled);
      }
      compiled->amount = -compiled->amount;
      return;
    case Verb::kRefused:
    case Verb::kGet:
    case Verb::kGetDel:
    case Verb::kStrLen:
    case Verb::kExists:
    case Verb::kType:
    case Verb::kTtl:
    case Verb::kPttl:
    case Verb::kDel:
    case Verb::kPersist:
    case Verb::kFlushAll:
    case Verb::kSwap:
    case Verb::kCollection:
      return;
  }
}

namespace {

// Which words of SET and GETEX give a deadline.
struct UnitWord {
  std::string_view word;
  Expiry expiry;
  int64_t ms;
};
constexpr auto kUnitWords = std::to_array<UnitWord>({{"EX", Expiry::kFromNow, kMsPerSecond},
                                                     {"PX", Expiry::kFromNow, 1},
                                                     {"EXAT", Expiry::kAt, kMsPerSecond},
                                                     {"PXAT", Expiry::kAt, 1}});

const UnitWord* FindUnit(std::string_view word) {
  for (const UnitWord& unit : kUnitWords) {
    if (unit.word == word) return &unit;
  }
  return nullptr;
}

}  // namespace

// The rest of the options of SET and GETEX: at most one unit with its amount.
void CommandModel::CompileDeadline(const Command& argv, std::string_view unit_word,
                                   const std::string& amount_text, CompiledOp* compiled) {
  const UnitWord& unit = *FindUnit(unit_word);
  int64_t amount = 0;
  if (!ReadNumber(amount_text, &amount, compiled)) return;
  if (amount <= 0 || __builtin_mul_overflow(amount, unit.ms, &amount)) {
    return Refuse("ERR invalid expire time in '" + CommandName(argv) + "' command", compiled);
  }
  compiled->expiry = unit.expiry;
  compiled->expiry_ms = amount;
}

void CommandModel::CompileSet(const Command& argv, CompiledOp* compiled) {
  std::string unit;
  std::string amount;
  for (size_t i = 3; i < argv.size(); ++i) {
    const std::string word = UpperCase(argv[i]);
    if (word == "NX" && !compiled->only_if_present) {
      compiled->only_if_missing = true;
    } else if (word == "XX" && !compiled->only_if_missing) {
      compiled->only_if_present = true;
    } else if (word == "GET") {
      compiled->answer_previous = true;
    } else if (word == "KEEPTTL" && unit.empty()) {
      compiled->expiry = Expiry::kKeep;
    } else if (FindUnit(word) != nullptr && (unit.empty() || unit == word) &&
               compiled->expiry != Expiry::kKeep && i + 1 < argv.size()) {
      unit = word;
      amount = argv[++i];
    } else {
      return Refuse(kSyntax, compiled);
    }
  }
  if (!unit.empty()) CompileDeadline(argv, unit, amount, compiled);
}

void CommandModel::CompileGetEx(const Command& argv, CompiledOp* compiled) {
  compiled->expiry = Expiry::kKeep;
  if (argv.size() == 2) return;
  const std::string word = UpperCase(argv[2]);
  if (word == "PERSIST" && argv.size() == 3) {
    compiled->expiry = Expiry::kRemove;
  } else if (FindUnit(word) != nullptr && argv.size() == 4) {
    CompileDeadline(argv, word, argv[3], compiled);
  } else {
    Refuse(kSyntax, compiled);
  }
}

void CommandModel::CompileExpire(const Command& argv, std::string_view name, CompiledOp* compiled) {
  for (size_t i = 3; i < argv.size(); ++i) {
    const std::string word = UpperCase(argv[i]);
    if (word == "NX") {
      compiled->only_if_missing = true;
    } else if (word == "XX") {
      compiled->only_if_present = true;
    } else if (word == "GT") {
      compiled->only_if_greater = true;
    } else if (word == "LT") {
      compiled->only_if_less = true;
    } else {
      return Refuse("ERR Unsupported option " + argv[i], compiled);
    }
  }
  if (compiled->only_if_missing &&
      (compiled->only_if_present || compiled->only_if_greater || compiled->only_if_less)) {
    return Refuse("ERR NX and XX, GT or LT options at the same time are not compatible", compiled);
  }
  if (compiled->only_if_greater && compiled->only_if_less) {
    return Refuse("ERR GT and LT options at the same time are not compatible", compiled);
  }
  compiled->expiry = name.ends_with("at") ? Expiry::kAt : Expiry::kFromNow;
  const int64_t unit_ms = name[0] == 'p' ? 1 : kMsPerSecond;
  int64_t amount = 0;
  if (!ReadNumber(argv[2], &amount, compiled)) return;
  if (__builtin_mul_overflow(amount, unit_ms, &compiled->expiry_ms)) {
    Refuse("ERR invalid expire time in '" + std::string(name) + "' command", compiled);
  }
}

bool IsOfAllKeys(const Command& argv) {
  const std::string name = CommandName(argv);
  return name == "flushall" || name == "flushdb" || name == "swapdb";
}

size_t KeyPlace(const Command& argv) {
  const std::string name = CommandName(argv);
  return name == "xgroup" ? 2 : name == "xreadgroup" ? 7 : 1;
}

std::string_view KeyOf(const Command& argv) {
  if (argv.size() < 2 || IsOfAllKeys(argv)) return {};
  const size_t place = KeyPlace(argv);
  return place < argv.size() ? argv[place] : std::string_view();
}

namespace {

// The part of `op` that concerns one key.
HistoryOp StepOf(const HistoryOp& op, Command argv, std::string reply) {
  HistoryOp step = op;
  step.argv = std::move(argv);
  step.reply = std::move(reply);
  return step;
}

void Append(HistoryOp step, std::vector<HistoryOp>* steps) {
  if (step.ending == Ending::kNotApplied || step.ending == Ending::kFault) return;
  if (step.ending == Ending::kUnknown && IsReadOnly(step.argv)) return;
  steps->push_back(std::move(step));
}

void SplitCount(const HistoryOp& op, std::vector<HistoryOp>* steps) {
  const auto keys = static_cast<int64_t>(op.argv.size()) - 1;
  std::string reply = op.reply;
  if (op.ending == Ending::kAnswered) {
    const auto none = RespInteger(0);
    if (reply == RespInteger(keys)) {
      reply = RespInteger(1);
    } else if (reply != none) {
      for (int64_t count = 1; count < keys; ++count) {
        if (op.reply == RespInteger(count)) reply.clear();
      }
    }
  }
  for (size_t i = 1; i < op.argv.size(); ++i) {
    Append(StepOf(op, {op.argv[0], op.argv[i]}, reply), steps);
  }
}

}  // namespace

void SplitByKey(const HistoryOp& op, std::vector<HistoryOp>* steps) {
  const std::string name = CommandName(op.argv);
  if (name == "mget") {
    std::vector<std::string> elements;
    const bool split = SplitArray(op.reply, &elements) && elements.size() + 1 == op.argv.size();
    for (size_t i = 1; i < op.argv.size(); ++i) {
      HistoryOp step = StepOf(op, {"MGET", op.argv[i]}, split ? elements[i - 1] : op.reply);
      // An error may stand for one of the keys.
      if (split) step.ending = ClassifyReply(step.argv, step.reply);
      Append(std::move(step), steps);
    }
  } else if (name == "mset" && op.argv.size() % 2 == 1) {
    for (size_t i = 1; i < op.argv.size(); i += 2) {
      Append(StepOf(op, {"SET", op.argv[i], op.argv[i + 1]}, op.reply), steps);
    }
  } else if ((name == "del" || name == "unlink" || name == "exists") && op.argv.size() > 2) {
    SplitCount(op, steps);
  } else if (IsOfAllKeys(op.argv)) {
    Append(StepOf(op, op.argv, op.reply == kRespOk ? "" : op.reply), steps);
  } else {
    Append(op, steps);
  }
}

}  // namespace onetrip
