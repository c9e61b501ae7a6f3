// Large pages for simulated worlds: of what a seed costs, up to two thirds would be the kernel's
// clearing of small ones. For memory that malloc() gives, large_pages.cc says so to jemalloc before
// main().
#ifndef ONETRIP_TESTS_SIM_LARGE_PAGES_H_
#define ONETRIP_TESTS_SIM_LARGE_PAGES_H_

#include <cstddef>
#include <cstdint>

namespace onetrip {

// Asks for them in [base, base + bytes), which is page-aligned. A kernel that has none gives small
// ones.
void AskForLargePages(std::byte* base, uint64_t bytes);

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SIM_LARGE_PAGES_H_
