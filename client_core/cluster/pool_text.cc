#include "client_core/cluster/pool_text.h"

#include <cstdio>

namespace onetrip {
namespace {

constexpr char kHelp[] =
    "delete keys or let them expire (DEL, EXPIRE, FLUSHDB), or add memory: onetrip node add";

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), value < 10 ? "%.1f" : "%.0f", value);
  return text;
}

std::string Size(uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes < uint64_t{1} << 10) return std::to_string(bytes) + " bytes";
  if (bytes < uint64_t{1} << 20) return Number(value / (1 << 10)) + " KiB";
  if (bytes < uint64_t{1} << 30) return Number(value / (1 << 20)) + " MiB";
  return Number(value / (1 << 30)) + " GiB";
}

std::string Used(const PoolUsage& usage) {
  return std::to_string(usage.used_percent()) + " % of the memory is used, " +
         Size(usage.used_bytes()) + " of " + Size(usage.capacity_bytes);
}

}  // namespace

uint32_t AlertPercent(const PoolUsage& usage, uint32_t before) {
  const uint64_t percent = usage.used_percent();
  uint32_t due = 0;
  for (const uint32_t alert : kAlertPercents) {
    const bool goes_on = alert <= before && percent + kAlertOverPercents > alert;
    if (percent >= alert || goes_on) due = alert;
  }
  return due;
}

std::string WhyShortOfMemory(const PoolUsage& usage) {
  const bool is_full = usage.used_percent() >= kAlertPercents.back();
  if (usage.refused_bytes != 0 && !is_full) {
    // Free memory serves others, or comes back in a moment.
    return "writes that take " + Size(usage.refused_bytes) +
           " are refused with -OOM, for what is free is in blocks of other sizes: " + Used(usage) +
           ", " + Size(usage.free_in_blocks()) + " are free in blocks that are partly used, " +
           Size(usage.free_block_bytes()) + " in free blocks, " + Size(usage.retired_bytes) +
           " come back at once; " + kHelp;
  }
  if (usage.refused_bytes != 0)
    return "writes are refused with -OOM: " + Used(usage) + "; " + kHelp;
  if (usage.used_percent() < kAlertPercents.front()) return "";
  return Used(usage) + ", and a write that finds no room is refused with -OOM; " + kHelp;
}

}  // namespace onetrip
