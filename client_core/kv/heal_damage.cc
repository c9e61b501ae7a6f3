#include "client_core/kv/heal_damage.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "client_core/base/planted_bug.h"
#include "client_core/coro/sync.h"
#include "client_core/layout/entry_codec.h"
#include "client_core/layout/extent.h"
#include "client_core/layout/record_codec.h"
#include "client_core/layout/region_layout.h"
#include "client_core/layout/register_codec.h"
#include "client_core/tree/page.h"

namespace onetrip {
namespace {

constexpr uint32_t kDirectoryStretch = 1024;  // words per READ
constexpr uint32_t kGroupsAtOnce = 16;
static_assert(kSubtableGroups % kGroupsAtOnce == 0);
constexpr size_t kNamesMax = 100;

uint32_t DirectoryEnd(uint32_t depth) {
  return std::min(kDirectoryEntries, 2U << std::min(depth, kMaxDepth));
}

// The word that more than half of the replicas have.
std::optional<uint64_t> MostSay(const uint64_t* words, int replicas) {
  for (int i = 0; i < replicas; ++i) {
    if (2 * std::count(words, words + replicas, words[i]) > replicas) return words[i];
  }
  return std::nullopt;
}

// The sound image that most others are equal to; -1: none is sound.
template <typename Same>
int MostAlike(const std::array<bool, kMaxReplicas>& sound, int replicas, Same same) {
  int best = -1;
  int most = 0;
  for (int i = 0; i < replicas; ++i) {
    if (!sound[i]) continue;
    int alike = 0;
    for (int j = 0; j < replicas; ++j) alike += sound[j] && same(i, j) ? 1 : 0;
    if (alike > most) best = i;
    most = std::max(most, alike);
  }
  return best;
}

bool KeyFits(SlotWord word, const std::byte* image, uint64_t bytes, std::string* name) {
  EntryKey key;
  if (!LoadEntryKey(word, image, bytes, &key)) return false;
  const auto fingerprint = static_cast<uint8_t>(HashKey(key.keyspace, key.bytes) >> 56);
  if (fingerprint != word.fingerprint()) return false;
  *name = key.bytes;
  return true;
}

}  // namespace

std::string DamageHealer::LostText() const {
  if (lost_ == 0) return "";
  std::string text = std::to_string(lost_) + " keys are lost, of which no replica was intact: ";
  for (const std::string& name : names_) text += name + ", ";
  const uint64_t rest = lost_ - names_.size();
  if (rest != 0) return text + std::to_string(rest) + " of unknown or further names";
  return text.substr(0, text.size() - 2);
}

void DamageHealer::Lose(const std::string& name) {
  ++lost_;
  if (name.empty() || names_.size() >= kNamesMax) return;
  std::string plain = name.substr(0, 80);
  std::replace_if(
      plain.begin(), plain.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  names_.push_back(plain);
}

Task<Status> DamageHealer::Run() {
  if (Planted(Bug::kDamagedKeyNotHealed)) co_return Status::Ok();
  std::vector<GlobalAddr> subtables;
  Status status = co_await HealDirectory(&subtables);
  for (size_t i = 0; status.ok() && i < subtables.size(); ++i) {
    status = co_await HealSubtable(subtables[i]);
  }
  co_return status;
}

Task<Status> DamageHealer::Put(GlobalAddr at, Words words, int replicas, uint64_t chosen) {
  RoundTripPtr round_trip = fabric_.NewRoundTrip();
  for (int i = 0; i < replicas; ++i) {
    if (words[i] != chosen) round_trip->Cas(view_.Locate(at, i), words[i], chosen);
  }
  if (round_trip->empty()) co_return Status::Ok();
  ++healed_;
  co_return co_await fabric_.Post(round_trip);
}

Task<Status> DamageHealer::HealDirectory(std::vector<GlobalAddr>* subtables) {
  uint32_t end = 2;
  uint32_t count = 0;
  for (uint32_t first = 0; first < end; first += count) {
    count = std::min(end - first, kDirectoryStretch);
    const int replicas = view_.LiveReplicas(DirectoryAddr(first, view_.directory));
    RoundTripPtr round_trip = fabric_.NewRoundTrip();
    Images images{};
    for (int i = 0; i < replicas; ++i) {
      images[i] =
          round_trip->Read(view_.Locate(DirectoryAddr(first, view_.directory), i), count * 8);
    }
    Status status = co_await fabric_.Post(round_trip);
    if (!status.ok()) co_return status;
    for (uint32_t entry = 0; entry < count; ++entry) {
      Words words{};
      for (int i = 0; i < replicas; ++i) std::memcpy(&words[i], images[i] + entry * 8, 8);
      uint64_t chosen = words[0];
      for (int i = replicas - 1; i >= 0; --i) {
        const DirectoryWord word(words[i]);
        if (word.is_used() && view_.Contains(word.subtable())) chosen = words[i];
      }
      chosen = MostSay(words.data(), replicas).value_or(chosen);
      status = co_await Put(DirectoryAddr(first + entry, view_.directory), words, replicas, chosen);
      if (!status.ok()) co_return status;
      const DirectoryWord word(chosen);
      if (!word.is_used() || !view_.Contains(word.subtable())) continue;
      end = std::max(end, DirectoryEnd(word.depth()));
      subtables->push_back(word.subtable());
    }
  }
  co_return Status::Ok();
}

Task<Status> DamageHealer::HealSubtable(GlobalAddr start) {
  const int replicas = view_.LiveReplicas(start);
  RoundTripPtr round_trip = fabric_.NewRoundTrip();
  std::vector<const uint64_t*> images;
  images.reserve(static_cast<size_t>(replicas));
  for (int i = 0; i < replicas; ++i) {
    images.push_back(reinterpret_cast<const uint64_t*>(
        round_trip->Read(view_.Locate(start, i), kSubtableBytes)));
  }
  Status status = co_await fabric_.Post(round_trip);
  if (status.ok()) status = co_await HealHeaders(start, images);
  for (uint32_t group = 0; status.ok() && group < kSubtableGroups; group += kGroupsAtOnce) {
    std::vector<Task<void>> groups;
    for (uint32_t i = group; i < group + kGroupsAtOnce; ++i) {
      std::vector<const uint64_t*> words;
      words.reserve(images.size());
      for (const uint64_t* image : images) words.push_back(image + i * kGroupWords);
      groups.push_back(HealGroup(start + i * kGroupBytes, std::move(words), &status));
    }
    co_await WhenAll(std::move(groups));
  }
  co_return status;
}

Task<void> DamageHealer::HealGroup(GlobalAddr group, std::vector<const uint64_t*> words,
                                   Status* failure) {
  const int replicas = static_cast<int>(words.size());
  for (uint32_t i = 0; i < kGroupWords; ++i) {
    if (i == kGroupHeaderWord) continue;
    Words slot{};
    for (int replica = 0; replica < replicas; ++replica) slot[replica] = words[replica][i];
    const Status status = co_await HealSlot(group + i * 8, slot, replicas);
    if (status.ok()) continue;
    *failure = status;
    co_return;
  }
}

// A header that no replica has is made from another group's: outside of a split all are alike.
Task<Status> DamageHealer::HealHeaders(GlobalAddr start, std::span<const uint64_t* const> images) {
  const int replicas = static_cast<int>(images.size());
  std::vector<GroupHeader> chosen(kSubtableGroups);
  GroupHeader any;
  for (uint32_t group = 0; group < kSubtableGroups; ++group) {
    Words words{};
    for (int i = 0; i < replicas; ++i) words[i] = images[i][group * kGroupWords + kGroupHeaderWord];
    const GroupHeader most(MostSay(words.data(), replicas).value_or(0));
    chosen[group] = most;
    // Without a majority the deepest, for a group only ever turns deeper.
    for (int i = 0; i < replicas && !most.is_valid(); ++i) {
      const GroupHeader header(words[i]);
      if (!header.is_valid()) continue;
      const bool is_deeper = !chosen[group].is_valid() || header.depth() > chosen[group].depth();
      if (is_deeper) chosen[group] = header;
    }
    if (chosen[group].is_valid() && !chosen[group].filling()) any = chosen[group];
  }
  for (uint32_t group = 0; group < kSubtableGroups; ++group) {
    Words words{};
    const uint32_t word = group * kGroupWords + kGroupHeaderWord;
    for (int i = 0; i < replicas; ++i) words[i] = images[i][word];
    const GroupHeader header = chosen[group].is_valid() ? chosen[group] : any;
    if (!header.is_valid()) continue;
    const Status status = co_await Put(start + word * 8, words, replicas, header.bits());
    if (!status.ok()) co_return status;
  }
  co_return Status::Ok();
}

Task<Status> DamageHealer::HealSlot(GlobalAddr at, Words words, int replicas) {
  // The majority's word counts; if what it names is lost the key is: an older one would be stale.
  const std::optional<uint64_t> most = MostSay(words.data(), replicas);
  std::optional<uint64_t> chosen;
  std::string name;
  for (int i = 0; i < replicas && !chosen.has_value(); ++i) {
    const SlotWord word(most.value_or(words[i]));
    if (word.is_empty()) {
      chosen = word.bits();
      break;
    }
    const Result<bool> whole = co_await HealObject(word, &name);
    if (!whole.ok()) co_return whole.status();
    if (*whole) chosen = word.bits();
    if (most.has_value()) break;
  }
  if (!chosen.has_value()) {
    Lose(name);
    chosen = new_empty_().bits();
  }
  co_return co_await Put(at, words, replicas, *chosen);
}

Task<Result<bool>> DamageHealer::HealObject(SlotWord word, std::string* name) {
  if (!word.size_class().is_valid() || !view_.Contains(word.addr())) co_return false;
  RoundTripPtr round_trip = fabric_.NewRoundTrip();
  Images images{};
  for (int i = 0; i < view_.LiveReplicas(word.addr()); ++i) {
    images[i] = round_trip->Read(view_.Locate(word.addr(), i),
                                 static_cast<uint32_t>(word.size_class().bytes()));
  }
  const Status status = co_await fabric_.Post(round_trip);
  if (!status.ok()) co_return status;
  if (word.is_register()) {
    co_return co_await HealRegister(word, images, std::move(round_trip), name);
  }
  co_return co_await HealRecord(word, images, std::move(round_trip), name);
}

Task<Result<bool>> DamageHealer::HealRecord(SlotWord word, Images images, RoundTripPtr /*holder*/,
                                            std::string* name) {
  const int replicas = view_.LiveReplicas(word.addr());
  const uint64_t bytes = word.size_class().bytes();
  std::array<bool, kMaxReplicas> sound{};
  for (int i = 0; i < replicas; ++i) {
    sound[i] = KeyFits(word, images[i], bytes, name) && RecordIsIntact(images[i], bytes) &&
               EntryHasItsClass(word, images[i]);
  }
  // The log word may differ.
  const auto same = [&](int a, int b) {
    const uint64_t length = RecordBytesOf(LoadRecordHeader(images[a]));
    return std::memcmp(images[a] + 8, images[b] + 8, length - 8) == 0;
  };
  const int best = MostAlike(sound, replicas, same);
  if (best < 0) co_return false;
  const RecordHeader header = LoadRecordHeader(images[best]);
  RoundTripPtr copies = fabric_.NewRoundTrip();
  for (int i = 0; i < replicas; ++i) {
    if (sound[i] && same(best, i)) continue;
    copies->Write(view_.Locate(word.addr(), i), images[best],
                  static_cast<uint32_t>(RecordBytesOf(header)));
  }
  if (!copies->empty()) {
    ++healed_;
    const Status status = co_await fabric_.Post(copies);
    if (!status.ok()) co_return status;
  }
  if (!word.size_class().is_root()) co_return true;
  TreeRoot tree;
  if (LoadTreeRoot(RecordValue(images[best]), &tree)) co_return co_await HealPages(tree);
  co_return co_await HealExtents(RecordValue(images[best]), header.version);
}

Task<Result<bool>> DamageHealer::HealBytes(GlobalAddr at, uint32_t bytes,
                                           const std::function<bool(const std::byte*)>& is_sound,
                                           RoundTripPtr* holder, const std::byte** best) {
  if (!view_.Contains(at)) co_return false;
  const int replicas = view_.LiveReplicas(at);
  *holder = fabric_.NewRoundTrip();
  Images images{};
  for (int i = 0; i < replicas; ++i) images[i] = (*holder)->Read(view_.Locate(at, i), bytes);
  Status status = co_await fabric_.Post(*holder);
  if (!status.ok()) co_return status;
  *best = nullptr;
  std::array<bool, kMaxReplicas> sound{};
  for (int i = 0; i < replicas; ++i) {
    sound[i] = is_sound(images[i]);
    if (sound[i]) *best = images[i];
  }
  if (*best == nullptr) co_return false;
  RoundTripPtr copies = fabric_.NewRoundTrip();
  for (int i = 0; i < replicas; ++i) {
    if (!sound[i]) copies->Write(view_.Locate(at, i), *best, bytes);
  }
  if (copies->empty()) co_return true;
  ++healed_;
  status = co_await fabric_.Post(copies);
  if (!status.ok()) co_return status;
  co_return true;
}

Task<Result<bool>> DamageHealer::HealExtents(std::string_view value, uint64_t version) {
  ExtentList list;
  if (!LoadExtentList(value, &list)) co_return false;
  for (uint32_t number = 0; number < list.extents.size(); ++number) {
    const uint32_t bytes = list.BytesOf(number);
    const auto is_sound = [&](const std::byte* image) {
      ExtentHeader header;
      std::memcpy(&header, image, sizeof(header));
      return ExtentIsIntact(header, version, number, image + kExtentHeaderBytes, bytes);
    };
    RoundTripPtr holder;
    const std::byte* best = nullptr;
    const Result<bool> healed = co_await HealBytes(
        list.extents[number].addr, kExtentHeaderBytes + bytes, is_sound, &holder, &best);
    if (!healed.ok() || !*healed) co_return healed;
  }
  co_return true;
}

Task<Result<bool>> DamageHealer::HealPages(const TreeRoot& tree) {
  std::vector<std::pair<PageName, int>> names;  // and their heights
  for (const TreeTop& top : tree.tops) {
    for (const PageName& name : top.names) names.emplace_back(name, top.height);
  }
  while (!names.empty()) {
    const std::pair<PageName, int> next = std::move(names.back());
    names.pop_back();
    const PageName& name = next.first;
    const int height = next.second;
    const auto page = [&name](const std::byte* image) {
      return std::string_view(reinterpret_cast<const char*>(image), name.page.bytes);
    };
    const auto is_sound = [&](const std::byte* image) {
      return PageChecksum(page(image)) == name.page.checksum;
    };
    RoundTripPtr holder;
    const std::byte* best = nullptr;
    const Result<bool> healed =
        co_await HealBytes(name.page.addr, name.page.bytes, is_sound, &holder, &best);
    if (!healed.ok() || !*healed) co_return healed;
    if (height == 0) continue;
    std::vector<PageName> below;
    if (!LoadInnerPage(page(best), &below)) co_return false;
    for (PageName& one : below) names.emplace_back(std::move(one), height - 1);
  }
  co_return true;
}

Task<Result<bool>> DamageHealer::HealBuffer(SlotWord word, MetaWord meta, Ticks birth,
                                            RegisterShape shape) {
  const auto [at, bytes] = PlaceOfValue(word.addr(), shape, meta);
  const auto is_sound = [&, bytes = bytes](const std::byte* image) {
    WrittenValue value{};
    return DecodePlaced(birth, meta, image, bytes, &value);
  };
  RoundTripPtr holder;
  const std::byte* best = nullptr;
  co_return co_await HealBytes(at, bytes, is_sound, &holder, &best);
}

// The largest whose value is there. One that another lane has overtaken names a buffer that may
// hold another value by now: it stays as most replicas have it.
Task<Result<uint64_t>> DamageHealer::ChooseLane(SlotWord word, Words lane, int replicas,
                                                Ticks birth, RegisterShape shape) {
  Words largest = lane;
  std::sort(largest.begin(), largest.begin() + replicas, std::greater<>());
  for (int i = 0; i < replicas && largest[i] != 0; ++i) {
    const Result<bool> whole = co_await HealBuffer(word, MetaWord(largest[i]), birth, shape);
    if (!whole.ok()) co_return whole.status();
    if (*whole) co_return largest[i];
  }
  co_return MostSay(lane.data(), replicas).value_or(0);
}

// The creator's part is alike on sound replicas; a lane's word counts if its value is anywhere.
Task<Result<bool>> DamageHealer::HealRegister(SlotWord word, Images images, RoundTripPtr /*holder*/,
                                              std::string* name) {
  const GlobalAddr addr = word.addr();
  const int replicas = view_.LiveReplicas(addr);
  const uint64_t bytes = word.size_class().bytes();
  std::array<bool, kMaxReplicas> sound{};
  std::array<RegisterHeader, kMaxReplicas> headers{};
  std::array<RegisterShape, kMaxReplicas> shapes{};
  for (int i = 0; i < replicas; ++i) {
    sound[i] = LoadRegisterShape(word, images[i], &headers[i], &shapes[i]) &&
               KeyFits(word, images[i], bytes, name);
  }
  const auto same = [&](int a, int b) {
    return std::memcmp(images[a] + 8, images[b] + 8, kFinalOffset - 8) == 0 &&
           std::memcmp(images[a] + kRegisterHeaderBytes, images[b] + kRegisterHeaderBytes,
                       headers[a].key_bytes) == 0;
  };
  const int best = MostAlike(sound, replicas, same);
  if (best < 0) co_return false;
  const RegisterShape shape = shapes[best];
  const Ticks birth{headers[best].birth_ticks};
  RoundTripPtr copies = fabric_.NewRoundTrip();
  for (int i = 0; i < replicas; ++i) {
    if (sound[i] && same(best, i)) continue;
    sound[i] = false;
    copies->Write(view_.Locate(addr + 8, i), images[best] + 8, kFinalOffset - 8);
    copies->Write(view_.Locate(addr + kRegisterHeaderBytes, i), images[best] + kRegisterHeaderBytes,
                  shape.lanes_offset() - kRegisterHeaderBytes);
  }
  if (!copies->empty()) {
    ++healed_;
    const Status status = co_await fabric_.Post(copies);
    if (!status.ok()) co_return status;
  }
  const auto load = [&](uint32_t offset) {
    Words words{};
    for (int i = 0; i < replicas; ++i) std::memcpy(&words[i], images[i] + offset, 8);
    return words;
  };
  bool has_value = false;
  for (uint32_t lane = 0; lane < shape.lanes; ++lane) {
    const Words words = load(shape.lane_offset(lane));
    Words counting = words;
    for (int i = 0; i < replicas; ++i) counting[i] = sound[i] ? words[i] : 0;
    const Result<uint64_t> lane_word = co_await ChooseLane(word, counting, replicas, birth, shape);
    if (!lane_word.ok()) co_return lane_word.status();
    const uint64_t chosen = *lane_word;
    has_value |= chosen != 0;
    const Status status = co_await Put(addr + shape.lane_offset(lane), words, replicas, chosen);
    if (!status.ok()) co_return status;
  }
  // The register's end: a sound replica that has not heard of it is behind.
  for (const uint32_t offset : {kFinalOffset, kSealOffset}) {
    const Words words = load(offset);
    Words heard = words;
    for (int i = 0; i < replicas; ++i) heard[i] = sound[i] ? words[i] : 0;
    const uint64_t largest = *std::max_element(heard.begin(), heard.begin() + replicas);
    const uint64_t chosen = MostSay(heard.data(), replicas).value_or(largest);
    const Status status = co_await Put(addr + offset, words, replicas, chosen);
    if (!status.ok()) co_return status;
  }
  co_return has_value;
}

}  // namespace onetrip
