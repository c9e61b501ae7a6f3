#include "tests/support/append_history.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace onetrip {
namespace {

enum class Kind : uint8_t { kAppend, kRead, kFlush };

struct Node {
  const HistoryOp* op;
  Kind kind;
  std::string key;  // with its database
  // Of a read, in their order; of an append to an empty list it is known that nothing was there.
  std::vector<std::string> tokens;
  bool sees = false;     // `tokens` is all that was there just before, or at the time
  bool happened = true;  // it has taken effect for sure
};

// The value of a bulk reply; none for another one.
std::optional<std::string> ValueOf(std::string_view reply) {
  if (reply == kRespNil) return std::string();
  const size_t end = reply.find("\r\n");
  if (!reply.starts_with('$') || end == std::string_view::npos || reply.size() < end + 4) {
    return std::nullopt;
  }
  return std::string(reply.substr(end + 2, reply.size() - end - 4));
}

std::vector<std::string> TokensOf(std::string_view value) {
  std::vector<std::string> tokens;
  while (!value.empty()) {
    const size_t end = std::min(value.find(';'), value.size() - 1);
    tokens.emplace_back(value.substr(0, end + 1));
    value.remove_prefix(end + 1);
  }
  return tokens;
}

// A precedes B in every order: the transitive closure, a row of bits for each node.
class Order {
 public:
  explicit Order(size_t nodes) : after_(nodes, std::vector<bool>(nodes)) {}

  [[nodiscard]] bool Precedes(size_t a, size_t b) const { return after_[a][b]; }

  // Returns true if that was new.
  bool Add(size_t a, size_t b) {
    if (after_[a][b]) return false;
    for (size_t i = 0; i < after_.size(); ++i) {
      if (i != a && !after_[i][a]) continue;
      after_[i][b] = true;
      for (size_t j = 0; j < after_.size(); ++j) {
        if (after_[b][j]) after_[i][j] = true;
      }
    }
    return true;
  }

 private:
  std::vector<std::vector<bool>> after_;
};

class AppendCheck {
 public:
  explicit AppendCheck(const std::vector<HistoryOp>& ops) {
    for (const HistoryOp& op : ops) AddNode(op);
  }

  std::string Run() {
    Order order(nodes_.size());
    order_ = &order;
    if (!AddLists() || !AddTime()) return failure_;
    while (AddFlushes()) {
    }
    return failure_;
  }

 private:
  void AddNode(const HistoryOp& op) {
    if (op.ending == Ending::kNotApplied || op.argv.empty()) return;
    const std::string name = CommandName(op.argv);
    const bool answered = op.ending == Ending::kAnswered;
    Node node{&op, Kind::kFlush, {}, {}, false, answered};
    if (name != "flushall") {
      if (op.argv.size() < 2 || !op.argv[1].starts_with(kListPrefix)) return;
      node.key = std::to_string(op.database) + " " + op.argv[1];
      if (name == "append") {
        node.kind = Kind::kAppend;
        node.sees = answered && op.reply == RespInteger(static_cast<int64_t>(op.argv[2].size()));
        appended_[{node.key, op.argv[2]}] = nodes_.size();
      } else {
        const std::optional<std::string> value = answered ? ValueOf(op.reply) : std::nullopt;
        if (!value.has_value()) return;
        node.kind = Kind::kRead;
        node.sees = true;
        node.tokens = TokensOf(*value);
      }
    }
    nodes_.push_back(std::move(node));
  }

  bool Fail(const std::string& what, std::initializer_list<size_t> who) {
    if (!failure_.empty()) return false;
    failure_ = what;
    for (const size_t node : who) failure_ += "\n" + DescribeOp(*nodes_[node].op);
    return false;
  }

  bool Add(size_t a, size_t b) {
    if (order_->Precedes(a, b)) return false;
    if (a == b || order_->Precedes(b, a)) {
      return Fail(
          "no order of several keys explains these, for the first must come before the "
          "second, and the second before the first:",
          {a, b});
    }
    return order_->Add(a, b);
  }

  // Adds what values say of tokens.
  bool AddLists() {
    std::map<std::pair<std::string, std::string>, std::vector<size_t>> longest;  // by first token
    std::map<std::pair<std::string, std::string>, std::string> first_of;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const Node& read = nodes_[i];
      if (read.kind != Kind::kRead) continue;
      std::vector<size_t> writers;
      for (const std::string& token : read.tokens) {
        const auto found = appended_.find({read.key, token});
        if (found == appended_.end()) {
          return Fail("a token is read that nobody has appended there: " + token, {i});
        }
        if (std::find(writers.begin(), writers.end(), found->second) != writers.end()) {
          return Fail("a token is there twice: " + token, {i});
        }
        nodes_[found->second].happened = true;
        if (!writers.empty()) Add(writers.back(), found->second);
        writers.push_back(found->second);
      }
      if (writers.empty()) continue;
      Add(writers.back(), i);
      // If two values have a token in common, one is the beginning of the other: they have the
      // first one in common.
      for (const std::string& token : read.tokens) {
        const auto [first, is_new] = first_of.try_emplace({read.key, token}, read.tokens.front());
        if (first->second != read.tokens.front()) return Fail("a value lost its beginning", {i});
      }
      std::vector<size_t>& known = longest[{read.key, read.tokens.front()}];
      const size_t common = std::min(known.size(), writers.size());
      if (!std::equal(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(common),
                      writers.begin())) {
        return Fail("tokens are read in another order than before", {i});
      }
      if (writers.size() > known.size()) known = writers;
    }
    // A read comes before what is appended to what it has seen.
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const Node& read = nodes_[i];
      if (read.kind != Kind::kRead || read.tokens.empty()) continue;
      const std::vector<size_t>& all = longest[{read.key, read.tokens.front()}];
      if (all.size() > read.tokens.size()) Add(i, all[read.tokens.size()]);
    }
    return failure_.empty();
  }

  bool AddTime() {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      for (size_t j = 0; j < nodes_.size() && failure_.empty(); ++j) {
        // Whatever has an unknown outcome may take effect after its end.
        const bool ends = nodes_[i].op->ending == Ending::kAnswered;
        if (ends && nodes_[i].op->end < nodes_[j].op->start) Add(i, j);
      }
    }
    return failure_.empty();
  }

  // Adds what tokens that are gone, or are not, say of flushes. Returns true if anything was new.
  bool AddFlushes() {
    bool is_new = false;
    for (size_t i = 0; i < nodes_.size() && failure_.empty(); ++i) {
      const Node& reader = nodes_[i];
      if (!reader.sees) continue;
      for (size_t w = 0; w < nodes_.size() && failure_.empty(); ++w) {
        const Node& writer = nodes_[w];
        if (writer.kind != Kind::kAppend || writer.key != reader.key || w == i) continue;
        const bool is_there = std::find(reader.tokens.begin(), reader.tokens.end(),
                                        writer.op->argv[2]) != reader.tokens.end();
        is_new |= is_there ? AddKept(w, i) : AddFlushed(w, i);
      }
    }
    return is_new && failure_.empty();
  }

  // No flush between them.
  bool AddKept(size_t writer, size_t reader) {
    bool is_new = false;
    for (size_t flush = 0; flush < nodes_.size(); ++flush) {
      if (nodes_[flush].kind != Kind::kFlush || !nodes_[flush].happened) continue;
      if (order_->Precedes(writer, flush)) is_new |= Add(reader, flush);
      if (order_->Precedes(flush, reader)) is_new |= Add(flush, writer);
    }
    return is_new;
  }

  // A flush between them, if the token was there before.
  bool AddFlushed(size_t writer, size_t reader) {
    if (!nodes_[writer].happened || !order_->Precedes(writer, reader)) return false;
    std::vector<size_t> may;
    for (size_t flush = 0; flush < nodes_.size(); ++flush) {
      if (nodes_[flush].kind != Kind::kFlush) continue;
      if (!order_->Precedes(flush, writer) && !order_->Precedes(reader, flush)) {
        may.push_back(flush);
      }
    }
    if (may.empty()) return Fail("what was appended is not there any more", {writer, reader});
    if (may.size() > 1) return false;
    nodes_[may.front()].happened = true;
    const bool is_new = Add(writer, may.front());
    return Add(may.front(), reader) || is_new;
  }

  std::vector<Node> nodes_;
  std::map<std::pair<std::string, std::string>, size_t> appended_;  // by key and token
  Order* order_ = nullptr;
  std::string failure_;
};

}  // namespace

std::string CheckAppends(const std::vector<HistoryOp>& ops) { return AppendCheck(ops).Run(); }

}  // namespace onetrip
