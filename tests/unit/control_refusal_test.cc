// A member ends or not when the process at the master's address refuses it: every combination of
// facts.
#include <gtest/gtest.h>

#include "client_core/control/refusal.h"

namespace onetrip {
namespace {

TEST(RefusalTest, AMemberEndsForOneReasonOnly) {
  int ends = 0;
  for (int bits = 0; bits < 1 << 7; ++bits) {
    RefusalFacts facts;
    facts.was_member = (bits & 1) != 0;
    facts.is_node = (bits & 2) != 0;
    facts.is_proved = (bits & 4) != 0;
    facts.is_cluster = (bits & 8) != 0;
    facts.is_older = (bits & 16) != 0;
    facts.is_expelled = (bits & 32) != 0;
    facts.may_retry = (bits & 64) != 0;
    if (!facts.was_member) {
      EXPECT_EQ(EndsProcess(facts), !facts.may_retry) << bits;
      continue;
    }
    const bool ended = EndsProcess(facts);
    ends += ended ? 1 : 0;
    if (facts.is_node || !facts.is_proved || !facts.is_cluster || facts.is_older ||
        !facts.is_expelled) {
      EXPECT_FALSE(ended) << bits;
    }
  }
  EXPECT_EQ(ends, 2);  // an agent that its own cluster's newest master has expelled
}

}  // namespace
}  // namespace onetrip
