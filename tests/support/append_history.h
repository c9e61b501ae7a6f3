// Several keys at one moment: is there one order of all appends, reads and flushes?
//
// CheckHistory() judges each key alone, so a flush may happen to each key at another moment there.
// Here tokens that are appended to lists tell what came before what, in the manner of Elle's
// list-append histories (Kingsbury and Alvaro, VLDB 2020): a token that is read was there before
// the read; tokens of one value were appended in their order; a token that is missing although it
// was there before has been flushed in between, and one that is still there has not. What follows
// from that, and from which operation had ended before which began, are edges that every order has
// to have, for all keys together; a cycle says that there is none. Only what must be so is an edge:
// a history that fails this is wrong, one that passes may be, too.
#ifndef ONETRIP_TESTS_SUPPORT_APPEND_HISTORY_H_
#define ONETRIP_TESTS_SUPPORT_APPEND_HISTORY_H_

#include <string>
#include <string_view>
#include <vector>

#include "tests/support/history.h"

namespace onetrip {

// Keys whose names begin so are lists.
inline constexpr std::string_view kListPrefix = "list:";

// Why no order explains the history; empty: nothing speaks against it. Looks at APPEND to and GET
// of lists, and at FLUSHALL; everything else is passed over. REQUIRES: nothing else is done to
// lists, and each APPEND to one brings a token of its own, which ends with its only ';'.
std::string CheckAppends(const std::vector<HistoryOp>& ops);

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SUPPORT_APPEND_HISTORY_H_
