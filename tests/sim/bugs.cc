#include "tests/sim/bugs.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace onetrip {
namespace {

constexpr PlantedBug kBugs[] = {
    {Bug::kLoserDoesNotWait, "loser-does-not-wait", "small"},
    {Bug::kWinnerLeavesBackups, "winner-leaves-backups", "small", 4000, 10},
    {Bug::kRulesOfOneBackup, "rules-of-one-backup", "small"},
    {Bug::kReadsAheadOfCas, "reads-ahead-of-cas", "small", 4000, 400},
    {Bug::kSealedMutatesTheRead, "sealed-mutates-the-read", "mixed"},
    {Bug::kQueuedSeeTheOld, "queued-see-the-old", "calm"},
    {Bug::kBlindLoserAlwaysOk, "blind-loser-always-ok", "small"},
    {Bug::kBlindLoserForgetsKey, "blind-loser-forgets-key", "twins", 12'000, 20718},
    {Bug::kCountingWritesBlind, "counting-writes-blind", "small"},
    {Bug::kCountingLoserDone, "counting-loser-done", "small"},
    {Bug::kStagedStoreBlind, "staged-store-blind", "small"},
    {Bug::kDeleteLoserCounts, "delete-loser-counts", "small"},
    {Bug::kExpiryRemovesWhatIsNow, "expiry-removes-what-is-now", "expiry"},
    {Bug::kWalkRemovesWhatIsNow, "walk-removes-what-is-now", "expiry"},
    {Bug::kNoSecondSearch, "no-second-search", "small"},
    {Bug::kClaimsIgnored, "claims-ignored", "small"},
    {Bug::kFirstClaimCommits, "first-claim-commits", "small"},
    {Bug::kDecidedPassedBy, "decided-passed-by", "small"},
    {Bug::kClaimNotSeenAgain, "claim-not-seen-again", "small", 4000, 45},
    {Bug::kSplitPassesClaims, "split-passes-claims", "growth", 4000, 505},
    {Bug::kResolveKeepsClaims, "resolve-keeps-claims", "turnover"},
    {Bug::kConstantEmpty, "constant-empty", "calm"},
    {Bug::kStaleCacheBelieved, "stale-cache-believed", "small", 4000, 2},
    {Bug::kSplitEmptiesFirst, "split-empties-first", "crowded", 4000, 2134},
    {Bug::kFillingParentNotAsked, "filling-parent-not-asked", "crowded"},
    {Bug::kSplitLeftUnfinished, "split-left-unfinished", "growth", 4000, 33},
    {Bug::kSplitHeaderWritten, "split-header-written", "growth", 4000, 767},
    {Bug::kSplitOpensEarly, "split-opens-early", "growth"},
    {Bug::kEpochTooEarly, "epoch-too-early", "tight"},
    {Bug::kPassedWhilePinned, "passed-while-pinned", "tight"},
    {Bug::kRetiredAtOnce, "retired-at-once", "tight"},
    {Bug::kBitsCollectedTwice, "bits-collected-twice", "tight"},
    {Bug::kRetiredRegistersKept, "retired-registers-kept", "tight"},
    {Bug::kRestingNotForgotten, "resting-not-forgotten", "tight", 4000, 296},
    {Bug::kRingLeftEarly, "ring-left-early", "tight", 4000, 127},
    {Bug::kExtentsKept, "extents-kept", "extents"},
    {Bug::kExtentsNotNamed, "extents-not-named", "extents"},
    {Bug::kExtentsUnchecked, "extents-unchecked", "extents"},
    {Bug::kTreeRootNotCompared, "tree-root-not-compared", "collections", 4000, 810},
    {Bug::kPageCountKept, "page-count-kept", "collections"},
    {Bug::kJoinDropsLeaf, "join-drops-leaf", "collections"},
    {Bug::kPagesKept, "pages-kept", "collections"},
    {Bug::kPagesNotNamed, "pages-not-named", "collections"},
    {Bug::kPagesFreedEarly, "pages-freed-early", "collections"},
    {Bug::kLosersPagesKept, "losers-pages-kept", "collections"},
    {Bug::kPageCachedByAddr, "page-cached-by-addr", "collections"},
    {Bug::kHotBelieved, "hot-believed", "calm"},
    {Bug::kHotLoserDone, "hot-loser-done", "small", 4000, 81},
    {Bug::kSealNotRead, "seal-not-read", "small"},
    {Bug::kMaxSetsBack, "max-sets-back", "small", 4000, 75},
    {Bug::kReadBesideOfAny, "read-beside-of-any", "twins"},
    {Bug::kAbdStaleTimestamp, "abd-stale-timestamp", "small"},
    {Bug::kLanesBeforeSeal, "lanes-before-seal", "tight"},
    {Bug::kInterruptedAlwaysRedone, "interrupted-always-redone", "small"},
    {Bug::kInterruptedNeverRedone, "interrupted-never-redone", "small"},
    {Bug::kInterruptedAsksSlotOnly, "interrupted-asks-slot-only", "small"},
    {Bug::kFinalNotWritten, "final-not-written", "tight", 4000, 37},
    {Bug::kDeleteOfMajority, "delete-of-majority", "small", 4000, 101},
    {Bug::kDeleteCreditForgotten, "delete-credit-forgotten", "small"},
    {Bug::kReadAwaitsVerified, "read-awaits-verified", "frozen", 4000, 743},
    {Bug::kReadAwaitsEnd, "read-awaits-end", "frozen"},
    {Bug::kNoHold, "no-hold", "flush", 4000, 377},
    {Bug::kCommitsBeforeAllHold, "commits-before-all-hold", "flush", 20'000, 11856},
    {Bug::kSwapUnderOperations, "swap-under-operations", "swap"},
    {Bug::kHoldForgetsAway, "hold-forgets-away", "members", 4000, 1304},
    {Bug::kAnswersBeforeInForce, "answers-before-in-force", "turnover", 4000, 2050},
    {Bug::kFencedOnOneNode, "fenced-on-one-node", "turnover"},
    {Bug::kViewNotDurable, "view-not-durable", "members"},
    {Bug::kRestartKeepsEpoch, "restart-keeps-epoch", "members", 4000, 2480},
    {Bug::kSeatNotDurable, "seat-not-durable", "members"},
    {Bug::kRefusalBelieved, "refusal-believed", "control"},
    {Bug::kResetIsDeath, "reset-is-death", "control"},
    {Bug::kTimeFromWallClock, "time-from-wall-clock", "control"},
    {Bug::kOldStateWelcomes, "old-state-welcomes", "control"},
    {Bug::kResolveTakesBackup, "resolve-takes-backup", "repairs", 4000, 10188},
    {Bug::kOpenedWithoutBits, "opened-without-bits", "scarce"},
    {Bug::kOpenedStillAllocates, "opened-still-allocates", "scarce"},
    {Bug::kOpenIsOrphan, "open-is-orphan", "scarce", 4000, 89},
    {Bug::kNotLetGo, "not-let-go", "scarce", 4000, 3262, false, true},
    {Bug::kOwnBuffersLost, "own-buffers-lost", "scarce", 4000, 85},
    {Bug::kAccountedAtOnce, "accounted-at-once", "scarce", 4000, 305},
    {Bug::kMovedFreedAtOnce, "moved-freed-at-once", "scarce", 4000, 58},
    {Bug::kCopyForgetsBlock, "copy-forgets-block", "repairs"},
    {Bug::kMoveUncopied, "move-uncopied", "moves"},
    {Bug::kMoveUnderWrites, "move-under-writes", "moves"},
    {Bug::kMoveUnreached, "move-unreached", "moves", 4000, 3538},
    {Bug::kMovesRegisters, "moves-registers", "moves", 4000, 95},
    {Bug::kCutWhileUsed, "cut-while-used", "joins", 4000, 49},
    {Bug::kDirectoryRemembered, "directory-remembered", "joins", 4000, 58},
    {Bug::kGrownUnformatted, "grown-unformatted", "joins"},
    {Bug::kGrownNotDurable, "grown-not-durable", "joins", 4000, 93},
    {Bug::kReportsIgnored, "reports-ignored", "cuts"},
    {Bug::kOneReportForAll, "one-report-for-all", "cuts"},
    {Bug::kSweepEndsWithWorker, "sweep-ends-with-worker", "storm", 4000, 12},
    {Bug::kPostedAtMinority, "posted-at-minority", "minority"},
    {Bug::kInlineReadOfOne, "inline-read-of-one", "repairs", 4000, 4524, true},
    {Bug::kInlineWriteOverLarger, "inline-write-over-larger", "frozen", 4000, 1, true},
    {Bug::kInlineVotesNotCounted, "inline-votes-not-counted", "calm", 4000, 1, true},
    {Bug::kOvertakenIsLost, "overtaken-is-lost", "repairs", 4000, 765},
    {Bug::kLanesNotNamed, "lanes-not-named", "turnover"},
    {Bug::kTakenOverAtOnce, "taken-over-at-once", "turnover"},
    {Bug::kInheritedTwice, "inherited-twice", "growth", 4000, 272, false, true},
    {Bug::kAcknowledgedBeforeDurable, "acknowledged-before-durable", "members", 4000, 320},
};

}  // namespace

Plan PlantedBug::MakePlan(const Scenario& in, uint64_t seed) const {
  Plan plan = in.make(seed);
  if (inline_agents) plan.inline_agents = ~uint32_t{0};
  if (!sets_twice) return plan;
  for (std::vector<Command>& client : plan.program) {
    std::vector<Command> twice;
    for (const Command& command : client) {
      twice.push_back(command);
      if (command.front() == "SET") twice.push_back(command);
    }
    client = std::move(twice);
  }
  return plan;
}

std::span<const PlantedBug> PlantedBugs() { return kBugs; }

const PlantedBug* FindPlantedBug(std::string_view name) {
  const auto* found = std::find_if(std::begin(kBugs), std::end(kBugs),
                                   [name](const PlantedBug& known) { return known.name == name; });
  return found == std::end(kBugs) ? nullptr : found;
}

bool PlantBug(std::string_view name) {
#ifdef ONETRIP_PLANTED_BUGS
  if (name == "none") {
    TEST_planted_bug = Bug::kNone;
    return true;
  }
  if (const PlantedBug* bug = FindPlantedBug(name); bug != nullptr) {
    TEST_planted_bug = bug->bug;
    return true;
  }
#else
  (void)name;
#endif
  return false;
}

}  // namespace onetrip
