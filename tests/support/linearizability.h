// The linearizability checker: does some order of the operations explain every reply?
//
// Per key, since linearizability composes. The search is Lowe's just-in-time form of Wing and
// Gong's: it walks the starts and ends in their common order and carries every configuration
// (operations in flight that have taken effect, state of the key) that agrees with all that has
// ended so far; operations take effect only when one that ends needs them. Equal configurations are
// one, and one that allows less than another is dropped. So memory follows what is in flight, not
// the length of the history: where no operation is in flight, a set of states is all that is left.
// An operation whose outcome is unknown stays in flight for ever; orders in which few of those take
// effect are looked at first.
#ifndef ONETRIP_TESTS_SUPPORT_LINEARIZABILITY_H_
#define ONETRIP_TESTS_SUPPORT_LINEARIZABILITY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/command_model.h"
#include "tests/support/history.h"

namespace onetrip {

struct CheckOptions {
  ModelOptions model;
  // Configurations visited per key before the checker gives up; not counted are those of attempts
  // that go back a little where operations of unknown outcome were not looked at closely enough.
  uint64_t configurations_max = 1'000'000;
  // How many counts over several keys are looked at again, at the price of two checks per key.
  uint64_t recounts_max = 1000;
};

enum class CheckVerdict : uint8_t {
  kLinearizable,
  kNot,
  kGaveUp,  // over budget, or a command that the model does not know: callers fail
};

struct CheckResult {
  CheckVerdict verdict = CheckVerdict::kLinearizable;
  // Why not: the timeline up to the end that nothing explains, and the states before it.
  std::string message;
  std::string key;
  size_t prefix_ops = 0;  // how many operations had started by that end
  uint64_t configurations = 0;
  uint64_t recounts = 0;
  uint64_t counts_left = 0;  // that recounts_max left out

  [[nodiscard]] bool ok() const { return verdict == CheckVerdict::kLinearizable; }
};

// Checks the operations on one key, each on this key alone, in any order.
CheckResult CheckKey(const std::vector<HistoryOp>& ops, const InitialState& initial,
                     const CheckOptions& options = {});

// Splits a history by key, all of them missing at first, and checks each; then looks at counts over
// several keys again, whose sum must be possible too. Gives the first failure. A flush is, for
// every key, a write of "missing" somewhere between its start and its end; that it happens to all
// keys at one moment is checked by CheckAppends() (append_history.h) alone. A swap of databases
// likewise exchanges what each key holds for what it holds in the other database. An operation that
// ended in kFault is a failure (kNot) before anything else.
CheckResult CheckHistory(const std::vector<HistoryOp>& ops, const CheckOptions& options = {});

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SUPPORT_LINEARIZABILITY_H_
