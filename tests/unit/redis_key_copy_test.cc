// Values that move between keys: what is removed, and what is overwritten, when others write
// meanwhile.
#include <gtest/gtest.h>

#include "redis_compat/dispatch/key_copy.h"

namespace onetrip {
namespace {

RecordView Record(std::string_view value, uint64_t version) {
  return {value, value.size(), 0, version, static_cast<uint8_t>(ValueType::kString)};
}

// If two RENAMEs crossed, each would remove what the other has stored, and both values were gone.
TEST(KeyCopyTest, OnlyTheVeryWriteThatWasReadIsRemoved) {
  const RecordCopy copy = RecordCopy::Of(Record("x", 7));
  RemoveIfSame remove(copy.version);
  const RecordView another = Record("x", 8);
  (void)remove.Apply(&another);
  EXPECT_TRUE(remove.changed());
  const RecordView same = Record("x", 7);
  (void)remove.Apply(&same);
  EXPECT_FALSE(remove.changed());
}

TEST(KeyCopyTest, ALaterTryReplacesOnlyWhatTheOneBeforeHasStored) {
  const RecordCopy now = RecordCopy::OfString("new");
  StoreCopy store(now, /*replace=*/false, /*over=*/3);
  const RecordView ours = Record("old", 3);
  (void)store.Apply(&ours);
  EXPECT_TRUE(store.stored());
  const RecordView theirs = Record("old", 4);
  (void)store.Apply(&theirs);
  EXPECT_FALSE(store.stored());
}

}  // namespace
}  // namespace onetrip
