#include "client_core/memory/blocks_in_transit.h"

#include <algorithm>

#include "client_core/base/planted_bug.h"

namespace onetrip {
namespace {

// Selects the block of that address.
auto StartsAt(GlobalAddr start) {
  return [start](const auto& one) { return one.start == start; };
}

}  // namespace

BlocksInTransit::Mark::~Mark() { set_.erase(std::ranges::find(set_, start_)); }

bool BlocksInTransit::Has(const std::vector<GlobalAddr>& set, GlobalAddr start) {
  return std::ranges::find(set, start) != set.end();
}

bool BlocksInTransit::HasComeBack(GlobalAddr start) {
  if (Planted(Bug::kOpenedTwice)) return true;
  DropOpening(start);
  (void)DropReturn(start);
  return !IsOpeningNow(start) && !Has(returning_to_backups_, start);
}

void BlocksInTransit::ClaimLater(GlobalAddr start, SizeClass size_class) {
  if (Planted(Bug::kHalfTakenForgotten)) return;
  to_claim_.push_back({start, size_class});
}

void BlocksInTransit::DropClaim(GlobalAddr start) { std::erase_if(to_claim_, StartsAt(start)); }

BlocksInTransit::Granted BlocksInTransit::NextClaim() {
  const Granted one = to_claim_.front();
  to_claim_.pop_front();
  return one;
}

bool BlocksInTransit::DropReturn(GlobalAddr start) {
  return std::erase_if(to_return_, StartsAt(start)) != 0;
}

size_t BlocksInTransit::ReturnsWaiting(NodeId primary, SizeClass size_class) const {
  return static_cast<size_t>(std::ranges::count_if(to_return_, [&](const Returning& one) {
    return one.primary == primary && one.size_class == size_class;
  }));
}

BlocksInTransit::Returning BlocksInTransit::NextReturn() {
  const Returning one = to_return_.front();
  to_return_.pop_front();
  return one;
}

void BlocksInTransit::DropOpening(GlobalAddr start) { std::erase_if(opening_, StartsAt(start)); }

std::vector<BlocksInTransit::Opening>& BlocksInTransit::BeginTelling() {
  std::swap(telling_, opening_);
  return telling_;
}

bool BlocksInTransit::IsOpening(GlobalAddr start) const {
  return std::ranges::any_of(opening_, StartsAt(start)) || IsOpeningNow(start);
}

bool BlocksInTransit::IsOpeningNow(GlobalAddr start) const {
  return std::ranges::any_of(telling_, StartsAt(start));
}

bool BlocksInTransit::OpensOneOf(SizeClass size_class) const {
  const auto is_alike = [&](const Opening& one) { return one.size_class == size_class; };
  return std::ranges::any_of(opening_, is_alike) || std::ranges::any_of(telling_, is_alike);
}

bool BlocksInTransit::IsGoing(GlobalAddr start) const {
  return std::ranges::any_of(to_return_, StartsAt(start)) || IsReturning(start) || IsOpening(start);
}

void BlocksInTransit::UseView(const View& view) {
  const auto is_gone = [&](const auto& one) { return !view.Contains(one.start); };
  std::erase_if(opening_, is_gone);
  std::erase_if(to_return_, is_gone);
  std::erase_if(to_claim_, is_gone);
}

}  // namespace onetrip
