#include "redis_compat/values/sorted_set_algebra.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <span>

namespace onetrip {
namespace {

PackedElements ElementsOf(const ScoredSource& source) {
  return PackedElements(source.value, /*has_values=*/!source.is_set);
}

double ScoreIn(const ScoredSource& source, std::string_view bytes) {
  return source.is_set ? 1 : LoadScore(bytes);
}

// An infinite score times 0 counts as 0.
double FirstScore(const ScoredSource& source, std::string_view bytes) {
  const double score = source.weight * ScoreIn(source, bytes);
  return std::isnan(score) ? 0 : score;
}

void Combine(double more, Aggregate aggregate, double* score) {
  switch (aggregate) {
    case Aggregate::kSum:
      *score += more;
      // Two infinities.
      if (std::isnan(*score)) *score = 0;
      break;
    case Aggregate::kMin:
      if (more < *score) *score = more;
      break;
    case Aggregate::kMax:
      if (more > *score) *score = more;
      break;
  }
}

// Members of sources by name. The same value named many times is one map, looked up once a member.
class SourceMaps {
 public:
  // `sources` outlive it. The first one is not looked up.
  explicit SourceMaps(std::span<const ScoredSource> sources) {
    absl::flat_hash_map<const char*, size_t> known;
    for (const ScoredSource& source : sources.subspan(1)) {
      const auto [place, is_new] = known.emplace(source.value.data(), maps_.size());
      if (is_new) maps_.emplace_back(source.value, /*has_values=*/!source.is_set);
      by_position_.push_back(place->second);
    }
    values_.resize(maps_.size());
  }

  // Looks a member up in every source. False: in one it is not.
  bool FindInAll(std::string_view member) {
    for (size_t i = 0; i < maps_.size(); ++i) {
      if (!maps_[i].Find(member, &values_[i])) return false;
    }
    return true;
  }
  bool FindInAny(std::string_view member) {
    return std::any_of(maps_.begin(), maps_.end(),
                       [member](PackedMap& map) { return map.Find(member); });
  }
  // The member's value in source `position`, behind FindInAll().
  [[nodiscard]] std::string_view ValueIn(size_t position) const {
    return values_[by_position_[position - 1]];
  }

 private:
  std::deque<PackedMap> maps_;
  std::vector<size_t> by_position_;
  std::vector<std::string_view> values_;
};

void SmallestFirst(std::vector<ScoredSource>* sources) {
  std::stable_sort(sources->begin(), sources->end(),
                   [](const ScoredSource& a, const ScoredSource& b) {
                     return ElementsOf(a).size() < ElementsOf(b).size();
                   });
}

void Sort(std::vector<ScoredMember>* members) {
  std::sort(members->begin(), members->end(), StandsBefore);
}

// Calls visit(member, score), which returns false at the end, for every member of all sources.
template <typename Visit>
void ForEachCommon(std::vector<ScoredSource> sources, Aggregate aggregate, Visit visit) {
  SmallestFirst(&sources);
  SourceMaps others(sources);
  PackedElements elements = ElementsOf(sources.front());
  PackedElement element;
  while (elements.Next(&element)) {
    if (!others.FindInAll(element.key)) continue;
    double score = FirstScore(sources.front(), element.value);
    for (size_t i = 1; i < sources.size(); ++i) {
      const ScoredSource& source = sources[i];
      Combine(ScoreIn(source, others.ValueIn(i)) * source.weight, aggregate, &score);
    }
    if (!visit(element.key, score)) return;
  }
}

}  // namespace

std::vector<ScoredMember> UniteScored(std::vector<ScoredSource> sources, Aggregate aggregate) {
  SmallestFirst(&sources);
  absl::flat_hash_map<std::string_view, double> scores;
  for (const ScoredSource& source : sources) {
    PackedElements elements = ElementsOf(source);
    PackedElement element;
    while (elements.Next(&element)) {
      const double score = FirstScore(source, element.value);
      const auto [place, is_new] = scores.emplace(element.key, score);
      if (!is_new) Combine(score, aggregate, &place->second);
    }
  }
  std::vector<ScoredMember> members;
  members.reserve(scores.size());
  for (const auto& [member, score] : scores) members.push_back({member, score});
  Sort(&members);
  return members;
}

std::vector<ScoredMember> IntersectScored(std::vector<ScoredSource> sources, Aggregate aggregate) {
  std::vector<ScoredMember> members;
  ForEachCommon(std::move(sources), aggregate, [&](std::string_view member, double score) {
    members.push_back({member, score});
    return true;
  });
  Sort(&members);
  return members;
}

std::vector<ScoredMember> SubtractScored(const std::vector<ScoredSource>& sources) {
  SourceMaps others(sources);
  std::vector<ScoredMember> members;
  PackedElements elements = ElementsOf(sources.front());
  PackedElement element;
  while (elements.Next(&element)) {
    if (!others.FindInAny(element.key))
      members.push_back({element.key, ScoreIn(sources.front(), element.value)});
  }
  Sort(&members);
  return members;
}

uint64_t CountIntersection(std::vector<ScoredSource> sources, uint64_t limit) {
  uint64_t count = 0;
  ForEachCommon(std::move(sources), Aggregate::kMin,
                [&](std::string_view /*member*/, double /*score*/) { return ++count != limit; });
  return count;
}

}  // namespace onetrip
