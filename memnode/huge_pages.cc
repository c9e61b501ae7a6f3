#include "memnode/huge_pages.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>

namespace onetrip {
namespace {

constexpr char kTransparent[] = "/sys/kernel/mm/transparent_hugepage/";

// The number of the line that begins with `name`; 0 if there is none.
uint64_t Field(std::string_view text, std::string_view name) {
  size_t at = text.find(name);
  while (at != std::string_view::npos && at != 0 && text[at - 1] != '\n') {
    at = text.find(name, at + 1);
  }
  if (at == std::string_view::npos) return 0;
  at = text.find_first_not_of(' ', at + name.size());
  uint64_t number = 0;
  if (at != std::string_view::npos) {
    (void)std::from_chars(text.data() + at, text.data() + text.size(), number);
  }
  return number;
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string SettingPath(MemoryKind kind) {
  return std::string(kTransparent) + (kind == MemoryKind::kPrivate ? "enabled" : "shmem_enabled");
}

std::string Size(uint64_t bytes) {
  return bytes >= 1 << 20 ? std::to_string(bytes >> 20) + " MiB"
                          : std::to_string(bytes >> 10) + " KiB";
}

}  // namespace

HugePageReserve ParseHugePageReserve(std::string_view meminfo) {
  return {.page_bytes = Field(meminfo, "Hugepagesize:") * 1024,
          .total = Field(meminfo, "HugePages_Total:"),
          .free = Field(meminfo, "HugePages_Free:"),
          .promised = Field(meminfo, "HugePages_Rsvd:")};
}

HugePageReserve ReadHugePageReserve() { return ParseHugePageReserve(ReadAll("/proc/meminfo")); }

bool IsGivenOnAdvice(std::string_view setting) {
  constexpr std::string_view kGiving[] = {"[always]", "[madvise]", "[advise]", "[within_size]",
                                          "[force]"};
  return std::any_of(std::begin(kGiving), std::end(kGiving), [setting](std::string_view word) {
    return setting.find(word) != std::string_view::npos;
  });
}

std::string ReadTransparentSetting(MemoryKind kind) {
  return kind == MemoryKind::kFile ? "" : ReadAll(SettingPath(kind));
}

uint64_t ReserveFor(uint64_t bytes, const HugePageReserve& reserve) {
  if (reserve.page_bytes == 0) return 0;
  const uint64_t wanted = (bytes + reserve.page_bytes - 1) / reserve.page_bytes;
  const uint64_t left = reserve.free - std::min(reserve.free, reserve.promised);
  return reserve.total + wanted - std::min(wanted, left);
}

std::string PagesText(MemoryKind kind, uint64_t bytes, const MemoryPages& pages,
                      const HugePageReserve& reserve) {
  const std::string line = "memory: " + Size(bytes) + " in pages of " + Size(pages.page_bytes);
  if (pages.is_reserved) return line + ", from the host's reserve";
  if (pages.page_bytes >= 1 << 20) return line + " as far as the host has them";
  if (bytes < kHugePagesFromBytes) return line + ", which is as good as any for so little";
  if (kind == MemoryKind::kFile) return line + ", those of its file";
  const std::string advise = std::string("echo ") +
                             (kind == MemoryKind::kPrivate ? "madvise" : "advise") + " > " +
                             SettingPath(kind);
  if (kind == MemoryKind::kPrivate) return line + "; huge ones are faster: " + advise;
  if (reserve.page_bytes == 0) return line + "; this kernel has no huge ones";
  return line + "; huge ones are faster: sysctl -w vm.nr_hugepages=" +
         std::to_string(ReserveFor(bytes, reserve)) + " (" +
         std::to_string(ReserveFor(bytes, {.page_bytes = reserve.page_bytes})) +
         " more for each further node), or " + advise + "; then start the node again";
}

}  // namespace onetrip
