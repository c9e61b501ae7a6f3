// UsageWatch: the newest figure of how much memory is used, and what of it is to be logged. Pure.
#ifndef ONETRIP_MASTER_USAGE_WATCH_H_
#define ONETRIP_MASTER_USAGE_WATCH_H_

#include <cstdint>
#include <memory>
#include <string>

#include "client_core/base/log.h"
#include "client_core/cluster/pool_text.h"

namespace onetrip {

class UsageWatch {
 public:
  struct Alert {
    LogLevel level = LogLevel::kInfo;
    std::string text;  // empty: none
  };

  // Takes the figure over if it is another. Says once that the pool is about to be full, and once
  // that it has room again.
  Alert Look(const PoolUsage& usage) {
    if (usage_ != nullptr && *usage_ == usage) return {};
    usage_ = std::make_shared<const PoolUsage>(usage);
    ++version_;
    const uint32_t before = told_percent_;
    told_percent_ = AlertPercent(usage, before);
    if (told_percent_ > before) return {LogLevel::kWarning, WhyShortOfMemory(usage)};
    if (told_percent_ == before) return {};
    return {LogLevel::kInfo,
            "less than " + std::to_string(before) +
                " % of the memory is used again: " + std::to_string(usage.used_percent()) + " %"};
  }

  // Null: none is known.
  [[nodiscard]] const std::shared_ptr<const PoolUsage>& usage() const { return usage_; }
  // Another one for another figure; 0: none is known.
  [[nodiscard]] uint64_t version() const { return version_; }

 private:
  std::shared_ptr<const PoolUsage> usage_;
  uint64_t version_ = 0;
  uint32_t told_percent_ = 0;  // the largest of kAlertPercents that was said; 0: none
};

}  // namespace onetrip

#endif  // ONETRIP_MASTER_USAGE_WATCH_H_
