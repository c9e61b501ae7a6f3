// The meaning of commands on lists, hashes, sets, sorted sets and streams: the part of the
// sequential specification that is about collections.
//
// Written from the documentation of Redis, not with the code under test. A collection is a text: a
// mark, a letter for its type, then its elements.
#ifndef ONETRIP_TESTS_SUPPORT_COLLECTION_MODEL_H_
#define ONETRIP_TESTS_SUPPORT_COLLECTION_MODEL_H_

#include <optional>
#include <string>
#include <string_view>

#include "tests/support/history.h"

namespace onetrip {

// True if the model knows the command of that name, in lower case.
bool IsCollectionCommand(std::string_view name);
// True if the command, as above, changes nothing.
bool CollectionCommandReads(std::string_view name);

// The reply of a command that may tell elements in any order, in the one that the model tells them
// in; of other commands the reply as it is.
std::string ReplyInOrder(const Command& argv, std::string reply);

// True if the text is a collection and no string.
bool IsCollection(std::string_view value);
// The word that TYPE answers. REQUIRES: IsCollection(value).
std::string_view CollectionTypeName(std::string_view value);

struct CollectionOutcome {
  std::string reply;                // RESP2
  std::optional<std::string> next;  // nothing: there is no such key any more
};
// The outcome of a command on what its key holds, if it holds something. REQUIRES:
// IsCollectionCommand(), with arguments in the right number.
CollectionOutcome StepCollection(const Command& argv, std::optional<std::string_view> value);

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SUPPORT_COLLECTION_MODEL_H_
