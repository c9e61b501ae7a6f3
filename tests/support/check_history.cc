// A whole history: split by key, and the counts over several keys put together again.
#include <map>
#include <utility>

#include "tests/support/linearizability.h"

namespace onetrip {
namespace {

// A history split by key.
struct Keys {
  struct Origin {
    std::string key;
    size_t index;  // among the key's steps
  };
  std::map<std::string, std::vector<HistoryOp>, std::less<>> steps;
  std::vector<std::vector<Origin>> origins;  // per operation of the history
};

// A flush empties each key, a swap exchanges each for that of the other database. Key by key, that
// is, for what it does to several keys at once is not looked at.
Keys SplitHistory(const std::vector<HistoryOp>& ops) {
  Keys keys;
  keys.origins.resize(ops.size());
  std::vector<HistoryOp> parts;
  std::vector<HistoryOp> of_all;
  for (size_t i = 0; i < ops.size(); ++i) {
    parts.clear();
    SplitByKey(ops[i], &parts);
    if (IsOfAllKeys(ops[i].argv)) {
      of_all.insert(of_all.end(), parts.begin(), parts.end());
      continue;
    }
    for (HistoryOp& part : parts) {
      std::string key(KeyOf(part.argv));
      std::vector<HistoryOp>& steps = keys.steps[key];
      if (parts.size() > 1) keys.origins[i].push_back({std::move(key), steps.size()});
      steps.push_back(std::move(part));
    }
  }
  for (auto& [key, steps] : keys.steps) steps.insert(steps.end(), of_all.begin(), of_all.end());
  return keys;
}

// Looks at one count over several keys that says of none of them what it answered: a key that can
// only have answered 1, or only 0, bounds the sum. Returns whether the sum is within the bounds.
bool CountIsPossible(const HistoryOp& op, const std::vector<Keys::Origin>& origins, Keys* keys,
                     const CheckOptions& options) {
  int64_t least = 0;
  int64_t most = 0;
  for (const Keys::Origin& origin : origins) {
    std::vector<HistoryOp>& steps = keys->steps[origin.key];
    std::string& reply = steps[origin.index].reply;
    const auto possible = [&](int64_t answer) {
      reply = RespInteger(answer);
      return CheckKey(steps, {}, options).verdict != CheckVerdict::kNot;
    };
    least += possible(0) ? 0 : 1;
    most += possible(1) ? 1 : 0;
    reply.clear();
  }
  const auto steps = static_cast<int64_t>(origins.size());
  for (int64_t sum = 0; sum <= steps; ++sum) {
    if (op.reply == RespInteger(sum)) return least <= sum && sum <= most;
  }
  return false;
}

}  // namespace

CheckResult CheckHistory(const std::vector<HistoryOp>& ops, const CheckOptions& options) {
  CheckResult total;
  for (const HistoryOp& op : ops) {
    if (op.ending != Ending::kFault) continue;
    total.verdict = CheckVerdict::kNot;
    total.message = "a reply that no fault excuses\n" + DescribeOp(op) + "\n";
    return total;
  }
  Keys keys = SplitHistory(ops);
  for (const auto& [key, steps] : keys.steps) {
    CheckResult result = CheckKey(steps, {}, options);
    total.configurations += result.configurations;
    if (result.ok()) continue;
    result.configurations = total.configurations;
    result.message = "key " + Quote(key, 64) + ": " + result.message;
    return result;
  }
  for (size_t i = 0; i < ops.size(); ++i) {
    const std::vector<Keys::Origin>& origins = keys.origins[i];
    // Steps without a reply of their own are parts of a count.
    if (ops[i].ending != Ending::kAnswered || origins.empty() ||
        !keys.steps[origins[0].key][origins[0].index].reply.empty()) {
      continue;
    }
    if (total.recounts == options.recounts_max) {
      ++total.counts_left;
      continue;
    }
    ++total.recounts;
    if (CountIsPossible(ops[i], origins, &keys, options)) continue;
    total.verdict = CheckVerdict::kNot;
    total.message = "no answers of the keys add up to the count of\n" + DescribeOp(ops[i]) +
                    "\nin\n" + DescribeHistory(ops);
    return total;
  }
  return total;
}

}  // namespace onetrip
