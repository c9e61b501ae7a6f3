// Fuzz target: what RESTORE is given is a collection, or refused; one that is taken is sound, and
// is dumped and loaded as it is.
//
// The first byte of an input chooses how much is loaded at a time, the second one the limits of the
// compact encodings; the rest is the payload without its footer, which is not looked at here.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <string_view>

#include "client_core/base/check.h"
#include "redis_compat/protocol/numbers.h"
#include "redis_compat/values/rdb_collection.h"

namespace onetrip {
namespace {

constexpr uint64_t kValueBytesMax = uint64_t{1} << 20;
using State = CollectionLoader::State;

struct Loaded {
  ValueType type = ValueType::kString;
  std::string value;
};

State Load(std::string_view payload, size_t piece, const CollectionLimits& limits, Loaded* loaded) {
  CollectionLoader loader(payload, limits, kValueBytesMax);
  State state = State::kMore;
  while (state == State::kMore) state = loader.Advance(piece);
  if (state != State::kDone) return state;
  loaded->type = loader.type();
  loaded->value = loader.TakeValue();
  return state;
}

double ScoreOf(std::string_view bytes) {
  double score = 0;
  CHECK(bytes.size() == sizeof(score));
  std::memcpy(&score, bytes.data(), sizeof(score));
  CHECK(!std::isnan(score));
  return score;
}

void CheckSound(const Loaded& loaded, const CollectionLimits& limits) {
  const bool is_sorted_set = loaded.type == ValueType::kSortedSet;
  const bool has_values = is_sorted_set || loaded.type == ValueType::kHash;
  CHECK(loaded.value.size() <= kValueBytesMax);
  PackedElements elements(loaded.value, has_values);
  const bool are_integers = (elements.flags() & kPackedIntegers) != 0;
  CHECK(elements.size() > 0);
  CHECK(!are_integers ||
        (loaded.type == ValueType::kSet && elements.size() <= limits.integer_set_members));
  PackedElement before;
  PackedElement element;
  std::set<std::string_view> keys;
  uint64_t count = 0;
  for (; elements.Next(&element); ++count, before = element) {
    CHECK(loaded.type == ValueType::kList || keys.insert(element.key).second);
    if (are_integers) {
      const auto number = ParseInt64(element.key);
      CHECK(number && (count == 0 || *ParseInt64(before.key) < *number));
    }
    if (!is_sorted_set) continue;
    const double score = ScoreOf(element.value);
    if (count == 0) continue;
    const double score_before = ScoreOf(before.value);
    CHECK(score_before < score || (score_before == score && before.key < element.key));
  }
  CHECK(count == elements.size() && elements.at() == elements.entries().size());
}

std::string Dump(const Loaded& loaded, size_t piece) {
  std::string made(CollectionDumper::BytesMax(loaded.value), '\0');
  CollectionDumper dumper(loaded.type, loaded.value, made);
  while (dumper.Advance(piece)) {
  }
  CHECK(dumper.made() + kDumpFooterBytes <= made.size());
  made.resize(dumper.made());
  return made + DumpFooter(Crc64(made));
}

}  // namespace
}  // namespace onetrip

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using onetrip::State;
  if (size < 2) return 0;
  const size_t piece = size_t{1} + data[0];
  const uint64_t limit = data[1];
  const onetrip::CollectionLimits limits = {{limit, limit}, {limit, limit}, limit};
  std::string payload(reinterpret_cast<const char*>(data) + 2, size - 2);
  payload += onetrip::DumpFooter(0);
  onetrip::Loaded loaded;
  const State state = onetrip::Load(payload, piece, limits, &loaded);
  CHECK(state != State::kMore);
  if (state != State::kDone) return 0;
  onetrip::CheckSound(loaded, limits);
  onetrip::Loaded again;
  CHECK(onetrip::Load(onetrip::Dump(loaded, piece), piece, limits, &again) == State::kDone);
  onetrip::CheckSound(again, limits);
  CHECK(again.type == loaded.type && again.value.size() == loaded.value.size());
  // The compact forms keep long elements and a score of -0: the flags may differ, and the score.
  const size_t same_from = onetrip::kPackedHeaderBytes;
  CHECK(again.type == onetrip::ValueType::kSortedSet ||
        again.value.substr(same_from) == loaded.value.substr(same_from));
  onetrip::Loaded last;
  CHECK(onetrip::Load(onetrip::Dump(again, piece), piece, limits, &last) == State::kDone);
  CHECK(last.value == again.value);
  return 0;
}
