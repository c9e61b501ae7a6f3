// INFO onetrip: round trips per command, conflicts, and where the pool's bytes are.
#ifndef ONETRIP_FRONTEND_ONETRIP_INFO_H_
#define ONETRIP_FRONTEND_ONETRIP_INFO_H_

#include <string>
#include <string_view>

#include "client_core/base/metrics.h"

namespace onetrip {

class Server;

inline constexpr std::string_view kOnetripSection = "onetrip";

// Appends the section's "field:value\r\n" lines, summed over all workers. Any thread, while the
// workers run.
void AppendOnetripSection(const Server& server, std::string* out);

// "1=100,2=7": how often each value was recorded; a bucket of several values shows its largest.
std::string HistogramText(const Histogram& histogram);

}  // namespace onetrip

#endif  // ONETRIP_FRONTEND_ONETRIP_INFO_H_
