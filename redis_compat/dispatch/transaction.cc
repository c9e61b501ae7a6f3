#include "redis_compat/dispatch/transaction.h"

#include <algorithm>

#include "client_core/base/check.h"

namespace onetrip {

QueuedCommand::QueuedCommand(const CommandRow* row, std::span<const std::string_view> arguments)
    : row_(row) {
  size_t bytes = 0;
  for (const std::string_view argument : arguments) bytes += argument.size();
  memory_ = LargeMemory::TryMake(bytes);
  if (!has_memory()) return;
  const char* at = reinterpret_cast<const char*>(memory_.start());
  for (const std::string_view argument : arguments) {
    argv_.emplace_back(at, argument.size());
    at += argument.size();
  }
}

bool QueuedCommand::CopyNext(std::span<const std::string_view> arguments) {
  CHECK(arguments.size() == argv_.size());
  size_t left = kTurnBytes;
  while (next_ < arguments.size() && left > 0) {
    const std::string_view piece = arguments[next_].substr(copied_, left);
    // The memory is ours; argv_ only shows it.
    std::ranges::copy(piece, const_cast<char*>(argv_[next_].data()) + copied_);
    left -= piece.size();
    copied_ += piece.size();
    if (copied_ < arguments[next_].size()) break;
    ++next_;
    copied_ = 0;
  }
  return next_ < arguments.size();
}

}  // namespace onetrip
