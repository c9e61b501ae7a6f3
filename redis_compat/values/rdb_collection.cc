#include "redis_compat/values/rdb_collection.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <utility>

#include "client_core/base/check.h"
#include "redis_compat/protocol/numbers.h"

namespace onetrip {
namespace {

// An entry costs this much beside its bytes: a turn of small ones takes as long as one of large.
constexpr size_t kEntryCost = 16;
// Redis makes no integer set of more.
constexpr uint64_t kIntegerMembersMax = uint64_t{1} << 30;
constexpr uint64_t kContainerPlain = 1;
constexpr uint64_t kContainerPacked = 2;

enum RdbType : uint8_t {
  kRdbList = 1,
  kRdbSet = 2,
  kRdbSortedSet = 3,
  kRdbHash = 4,
  kRdbSortedSet2 = 5,
  kRdbHashZipmap = 9,
  kRdbListZiplist = 10,
  kRdbSetIntset = 11,
  kRdbSortedSetZiplist = 12,
  kRdbHashZiplist = 13,
  kRdbListQuicklist = 14,
  kRdbHashListpack = 16,
  kRdbSortedSetListpack = 17,
  kRdbListQuicklist2 = 18,
};

constexpr bool HasValues(ValueType type) {
  return type == ValueType::kHash || type == ValueType::kSortedSet;
}

constexpr RdbType PlainType(ValueType type) {
  switch (type) {
    case ValueType::kList:
      return kRdbList;
    case ValueType::kSet:
      return kRdbSet;
    case ValueType::kSortedSet:
      return kRdbSortedSet2;
    default:
      return kRdbHash;
  }
}

std::string_view ScoreBytes(const double& score) {
  return {reinterpret_cast<const char*>(&score), sizeof(score)};
}

// As strtod() does; false: it is none, or none that can be sorted.
bool ParseScore(std::string_view text, double* score) {
  constexpr size_t kTextMax = 252;  // longer lengths in RDB say something else
  std::array<char, kTextMax + 1> copy;
  if (text.empty() || text.size() > kTextMax) return false;
  std::memcpy(copy.data(), text.data(), text.size());
  copy[text.size()] = '\0';
  char* end = nullptr;
  *score = std::strtod(copy.data(), &end);
  return end == copy.data() + text.size() && !std::isnan(*score);
}

double ScoreOf(const PackedElement& element) {
  double score = 0;
  std::memcpy(&score, element.value.data(), std::min(sizeof(score), element.value.size()));
  return score;
}

bool IsBefore(const PackedElement& a, const PackedElement& b) {
  const double score_a = ScoreOf(a);
  const double score_b = ScoreOf(b);
  return score_a != score_b ? score_a < score_b : a.key < b.key;
}

// Behind a byte of its length, or one that says it all.
bool TakeTextScore(RdbReader* payload, double* score) {
  constexpr uint8_t kNegative = 255;
  constexpr uint8_t kPositive = 254;
  uint8_t size = 0;
  if (!payload->Take(&size)) return false;
  *score = std::numeric_limits<double>::infinity();
  if (size == kPositive) return true;
  if (size == kNegative) *score = -*score;
  std::string_view text;
  return size == kNegative || (payload->Take(size, &text) && ParseScore(text, score));
}

void AppendElement(const PackedElement& element, std::string* to) {
  AppendPackedEntry(element.key, to);
  AppendPackedEntry(element.value, to);
}

}  // namespace

size_t CollectionDumper::BytesMax(std::string_view value) {
  return sizeof(RdbType) + kRdbLength32Bytes + PackedEntries(value).size() + kDumpFooterBytes;
}

CollectionDumper::CollectionDumper(ValueType type, std::string_view value, std::span<char> to)
    : type_(type), elements_(value, HasValues(type)), to_(to) {
  CHECK(to_.size() >= BytesMax(value));
  to_[0] = PlainType(type);
  made_ = sizeof(RdbType) + kRdbLength32Bytes;
  // Redis inserts each in front of the ones before, which is where it looks first.
  if (type_ == ValueType::kSortedSet) elements_.GoToEnd();
}

bool CollectionDumper::Advance(size_t bytes) {
  size_t spent = 0;
  while (spent < bytes) {
    const size_t before = made_;
    if (!DumpElement()) {
      StoreRdbLength32(dumped_, to_.data() + sizeof(RdbType));
      return false;
    }
    ++dumped_;
    spent += made_ - before + kEntryCost;
  }
  return true;
}

bool CollectionDumper::DumpElement() {
  PackedElement element;
  if (type_ == ValueType::kSortedSet) {
    if (!elements_.Previous(&element) || element.value.size() != sizeof(double)) return false;
    PutString(element.key);
    Put(element.value);
    return true;
  }
  if (!elements_.Next(&element)) return false;
  PutString(element.key);
  if (type_ == ValueType::kHash) PutString(element.value);
  return true;
}

void CollectionDumper::Put(std::string_view bytes) {
  CHECK(bytes.size() <= to_.size() - made_);
  if (!bytes.empty()) std::memcpy(to_.data() + made_, bytes.data(), bytes.size());
  made_ += bytes.size();
}

// No string takes more than its entry in a packed collection.
void CollectionDumper::PutString(std::string_view string) {
  head_.clear();
  const std::string_view plain = AppendRdbHead(string, &head_);
  Put(head_);
  Put(plain);
}

// A type of payload, and the strings it consists of.
struct CollectionLoader::Form {
  RdbType rdb_type;
  ValueType type;
  enum class Holds : uint8_t { kElements, kAll, kNodes, kTaggedNodes } holds;
  std::unique_ptr<EntryReader> (*read)(std::string_view) = nullptr;  // null: elements
  // Redis looks at the length of elements to choose the encoding.
  bool limits_bytes = false;
};

const CollectionLoader::Form CollectionLoader::kForms[] = {
    {kRdbList, ValueType::kList, Form::Holds::kElements},
    {kRdbSet, ValueType::kSet, Form::Holds::kElements},
    {kRdbSortedSet, ValueType::kSortedSet, Form::Holds::kElements, nullptr, true},
    {kRdbHash, ValueType::kHash, Form::Holds::kElements, nullptr, true},
    {kRdbSortedSet2, ValueType::kSortedSet, Form::Holds::kElements, nullptr, true},
    {kRdbHashZipmap, ValueType::kHash, Form::Holds::kAll, ReadZipmap, true},
    {kRdbListZiplist, ValueType::kList, Form::Holds::kAll, ReadZiplist},
    {kRdbSetIntset, ValueType::kSet, Form::Holds::kAll, ReadIntset},
    {kRdbSortedSetZiplist, ValueType::kSortedSet, Form::Holds::kAll, ReadZiplist},
    {kRdbHashZiplist, ValueType::kHash, Form::Holds::kAll, ReadZiplist},
    {kRdbListQuicklist, ValueType::kList, Form::Holds::kNodes, ReadZiplist},
    {kRdbHashListpack, ValueType::kHash, Form::Holds::kAll, ReadListpack},
    {kRdbSortedSetListpack, ValueType::kSortedSet, Form::Holds::kAll, ReadListpack},
    {kRdbListQuicklist2, ValueType::kList, Form::Holds::kTaggedNodes, ReadListpack},
};

CollectionLoader::CollectionLoader(std::string_view payload, const CollectionLimits& limits,
                                   uint64_t bytes_max)
    : limits_(limits),
      bytes_max_(bytes_max),
      payload_(DumpBody(payload)),
      made_(kPackedHeaderBytes, '\0') {
  Begin();
}

ValueType CollectionLoader::type() const { return form_->type; }

uint64_t CollectionLoader::memory_bytes() const {
  return made_.capacity() + ordered_.capacity() + string_.memory_bytes() +
         keys_.capacity() * (sizeof(std::string_view) + 1) + integers_.capacity() * sizeof(int64_t);
}

void CollectionLoader::Begin() {
  uint8_t type = 0;
  if (!payload_.Take(&type)) return End(State::kDamaged);
  const Form* const form = std::find_if(std::begin(kForms), std::end(kForms),
                                        [type](const Form& f) { return f.rdb_type == type; });
  if (form == std::end(kForms)) return End(State::kDamaged);
  form_ = form;
  are_integers_ = form_->type == ValueType::kSet;
  strings_left_ = 1;
  if (form_->holds == Form::Holds::kAll) return;
  uint64_t length = 0;
  // Every string takes a byte.
  if (!payload_.TakeLength(&length) || length == 0 || length > payload_.bytes_left()) {
    return End(State::kDamaged);
  }
  strings_left_ = form_->rdb_type == kRdbHash ? 2 * length : length;
}

CollectionLoader::State CollectionLoader::Advance(size_t bytes) {
  for (spent_ = 0; state_ == State::kMore && spent_ < bytes;) {
    spent_ += kEntryCost;
    switch (step_) {
      case Step::kStrings:
        TakeString();
        break;
      case Step::kString:
        Decompress(bytes - std::min(bytes, spent_));
        break;
      case Step::kEntries:
        TakeEntry();
        break;
      case Step::kKeys:
        CheckKey();
        break;
      case Step::kReverse:
        ReverseElement();
        break;
    }
  }
  return state_;
}

void CollectionLoader::TakeString() {
  if (strings_left_ == 0) return BeginChecks();
  --strings_left_;
  is_element_ = form_->read == nullptr;
  if (form_->holds == Form::Holds::kTaggedNodes) {
    uint64_t container = 0;
    if (!payload_.TakeLength(&container)) return End(State::kDamaged);
    is_element_ = container == kContainerPlain;
    if (!is_element_ && container != kContainerPacked) return End(State::kDamaged);
  }
  DumpedString dumped;
  if (!payload_.TakeString(bytes_max_, &dumped)) return End(State::kDamaged);
  GoOnWith(string_.Begin(std::move(dumped)));
}

void CollectionLoader::Decompress(size_t bytes) {
  spent_ += bytes;
  GoOnWith(string_.Advance(std::max<size_t>(bytes, 1)));
}

void CollectionLoader::GoOnWith(StringUnpacker::State string) {
  step_ = string == StringUnpacker::State::kMore ? Step::kString : Step::kStrings;
  if (string == StringUnpacker::State::kDamaged) return End(State::kDamaged);
  if (string == StringUnpacker::State::kNoMemory) return End(State::kNoMemory);
  if (string == StringUnpacker::State::kDone) OnString(string_.bytes());
}

void CollectionLoader::OnString(std::string_view string) {
  const bool is_node =
      form_->holds == Form::Holds::kNodes || form_->holds == Form::Holds::kTaggedNodes;
  if (is_node && string.empty()) return End(State::kDamaged);
  if (!is_element_) {
    entries_ = form_->read(string);
    step_ = Step::kEntries;
    return;
  }
  AddEntry(string);
  if (form_->type != ValueType::kSortedSet || state_ != State::kMore) return;
  double score = 0;
  const bool taken =
      form_->rdb_type == kRdbSortedSet2 ? payload_.Take(&score) : TakeTextScore(&payload_, &score);
  if (!taken || std::isnan(score)) return End(State::kDamaged);
  AddScore(score);
}

void CollectionLoader::TakeEntry() {
  std::string_view entry;
  const EntryReader::Taken taken = entries_->Next(&entry);
  if (taken == EntryReader::Taken::kDamaged) return End(State::kDamaged);
  if (taken == EntryReader::Taken::kEnd) {
    entries_.reset();
    step_ = Step::kStrings;
    return;
  }
  const bool is_score = form_->type == ValueType::kSortedSet && added_ % 2 == 1;
  if (!is_score) return AddEntry(entry);
  double score = 0;
  if (!ParseScore(entry, &score)) return End(State::kDamaged);
  AddScore(score);
}

// A key, an element of a list, or the value of a field.
void CollectionLoader::AddEntry(std::string_view entry) {
  longest_ = std::max(longest_, entry.size());
  if (are_integers_) AddToIntegers(entry);
  Append(entry);
}

void CollectionLoader::AddScore(double score) { Append(ScoreBytes(score)); }

void CollectionLoader::AddToIntegers(std::string_view member) {
  const auto number = ParseInt64(member);
  const uint64_t members_max = std::min(limits_.integer_set_members, kIntegerMembersMax);
  are_integers_ = number && integers_.size() < members_max;
  if (are_integers_) integers_.push_back(*number);
}

void CollectionLoader::Append(std::string_view entry) {
  ++added_;
  spent_ += entry.size();
  if (PackedEntryBytes(entry.size()) > bytes_max_ - made_.size()) return End(State::kTooLarge);
  AppendPackedEntry(entry, &made_);
}

void CollectionLoader::StoreHeader(uint8_t flags) {
  const uint64_t elements = HasValues(form_->type) ? added_ / 2 : added_;
  StorePackedHeader({flags, static_cast<uint32_t>(elements)}, &made_);
}

void CollectionLoader::BeginChecks() {
  entries_.reset();
  string_ = StringUnpacker();
  const bool has_values = HasValues(form_->type);
  if (added_ == 0 || (has_values && added_ % 2 != 0)) return End(State::kDamaged);
  if (are_integers_) return SortIntegers();
  const CompactLimits& limits = form_->type == ValueType::kHash ? limits_.hash : limits_.sorted_set;
  // A set is either of integers or a table.
  const bool is_set = form_->type == ValueType::kSet;
  const bool is_table =
      is_set || (has_values && (added_ / 2 > limits.elements ||
                                (form_->limits_bytes && longest_ > limits.bytes)));
  StoreHeader(is_table ? kPackedTable : 0);
  if (form_->type == ValueType::kList) return End(State::kDone);
  checked_ = PackedElements(made_, has_values);
  keys_.reserve(checked_.size());
  step_ = Step::kKeys;
}

void CollectionLoader::SortIntegers() {
  std::sort(integers_.begin(), integers_.end());
  const auto twice = std::adjacent_find(integers_.begin(), integers_.end());
  if (twice != integers_.end()) return End(State::kDamaged);
  made_.resize(kPackedHeaderBytes);
  std::array<char, kInt64TextMax> text;
  for (const int64_t number : integers_) {
    const char* const end = FormatInt64(number, text.data());
    AppendPackedEntry({text.data(), static_cast<size_t>(end - text.data())}, &made_);
  }
  StoreHeader(kPackedIntegers);
  End(State::kDone);
}

void CollectionLoader::CheckKey() {
  PackedElement element;
  if (!checked_.Next(&element)) return EndChecks();
  if (!keys_.insert(element.key).second) return End(State::kDamaged);
  spent_ += element.key.size();
  if (form_->type != ValueType::kSortedSet) return;
  // Redis makes an integer of a score as it makes such a payload compact.
  const bool is_made_compact = form_->read == nullptr && (checked_.flags() & kPackedTable) == 0;
  if (is_made_compact && ScoreOf(element) == 0) {
    std::memset(made_.data() + (element.value.data() - made_.data()), 0, element.value.size());
  }
  if (keys_.size() > 1) {
    ascends_ = ascends_ && IsBefore(before_, element);
    descends_ = descends_ && IsBefore(element, before_);
  }
  before_ = element;
}

void CollectionLoader::EndChecks() {
  keys_ = {};
  if (form_->type != ValueType::kSortedSet || ascends_) {
    return End(State::kDone);
  }
  if (!descends_) return SortElements();
  ordered_ = made_.substr(0, kPackedHeaderBytes);
  ordered_.reserve(made_.size());
  step_ = Step::kReverse;
}

// As Redis dumps a sorted set.
void CollectionLoader::ReverseElement() {
  PackedElement element;
  if (checked_.Previous(&element)) {
    AppendElement(element, &ordered_);
    spent_ += element.key.size();
    return;
  }
  made_ = std::move(ordered_);
  End(State::kDone);
}

// In one go, which is slow only for what no Redis has dumped.
void CollectionLoader::SortElements() {
  std::vector<PackedElement> sorted;
  sorted.reserve(checked_.size());
  checked_.GoToBegin();
  PackedElement element;
  while (checked_.Next(&element)) sorted.push_back(element);
  std::sort(sorted.begin(), sorted.end(), IsBefore);
  ordered_ = made_.substr(0, kPackedHeaderBytes);
  ordered_.reserve(made_.size());
  for (const PackedElement& next : sorted) AppendElement(next, &ordered_);
  made_ = std::move(ordered_);
  End(State::kDone);
}

}  // namespace onetrip
