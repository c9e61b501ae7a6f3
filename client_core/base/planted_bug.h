// Planted bugs: deliberate breaches of protocol rules, by which the simulation proves that it would
// find them (docs/SIMULATION.md, "Planted bugs").
//
// In every build but the one of the preset `tests` Planted() is a constant false and no code is
// left of it. There, one bug at a time is switched on by TEST_planted_bug.
#ifndef ONETRIP_CLIENT_CORE_BASE_PLANTED_BUG_H_
#define ONETRIP_CLIENT_CORE_BASE_PLANTED_BUG_H_

#include <cstdint>

namespace onetrip {

enum class Bug : uint8_t {
  kNone,
  // replication
  kLoserDoesNotWait,     // a loser of a round returns before the primary has changed
  kWinnerLeavesBackups,  // the winner does not turn the backups that others took
  kRoundLeft,            // a writer that gives up leaves the round without an end
  kRulesOfOneBackup,     // the rules are applied to the first answer, not to all
  kOvertakenIsLost,      // a writer that was cut short and overtaken takes itself for beaten
  kReadsAheadOfCas,      // READs behind the CAS of a primary slot go ahead of it
  kSlotsLeftUnsettled,   // a write leaves the slots while what failed may still take effect
  kAnswersByOneBackup,   // a commit answers ahead of the primary by one backup, too
  kCommitNotTakenBack,   // a commit that has lost its claim leaves its word in backups
  // kv
  kBlindLoserAlwaysOk,      // a blind loser returns success whoever won
  kBlindLoserForgetsKey,    // ... if the winner was blind, on whatever key
  kCountingWritesBlind,     // a read-modify-write sets the blind bit
  kCountingLoserDone,       // a read-modify-write that lost its round takes itself for done
  kSealedMutatesTheRead,    // a mutation changes what it read of a register before it sealed it
  kQueuedSeeTheOld,         // read-modify-writes that one write carries out do not see each other
  kStagedStoreBlind,        // a transaction stores its outcome whatever the key has become
  kScanForgetsGrowth,       // a walk over keys ends where the index ended when it began
  kDeleteLoserCounts,       // a DEL that lost its round says that it removed the key
  kExpiryRemovesWhatIsNow,  // an expired record's slot is emptied whatever it holds meanwhile
  kWalkRemovesWhatIsNow,    // ... by a walk that found it expired a little earlier
  // index
  kNoSecondSearch,         // an insert commits without searching again
  kClaimsIgnored,          // ... or looks for committed entries alone
  kFirstClaimCommits,      // the first of two claims commits without waiting for the other one
  kDecidedPassedBy,        // a search passes a claim by that is decided
  kOneBackupDecides,       // ... or asks one backup whether it is
  kClaimNotSeenAgain,      // ... or does not look at it again when it is not
  kScanPassesClaims,       // a walk over keys passes decided claims by
  kSplitPassesClaims,      // a split moves what is committed, and leaves claims behind
  kResolveKeepsClaims,     // a resolution of slots takes a claim for a word like any other
  kConstantEmpty,          // a freed slot always holds the same word
  kStaleCacheBelieved,     // a cached slot word is used as the expected one, unread
  kSplitEmptiesFirst,      // a split empties the parent's slot before it fills the child's
  kFillingParentNotAsked,  // a search in a subtable that is being filled does not ask its parent
  kSplitLeftUnfinished,    // a split that its splitter has left is never finished
  kSplitHeaderWritten,     // ... or by WRITEs of headers, which may come late
  kSplitOpensEarly,        // ... or opens a group in the child before the parent's is moved
  kSplitUnlocksLate,       // ... or opens the child's directory entry though others split it again
  kSweepOfFillingGroup,    // a sweep removes what a split has yet to take out of the parent
  // memory
  kEpochTooEarly,         // memory is reused one epoch too early
  kPassedWhilePinned,     // a worker publishes an epoch that its operations have not left
  kRetiredAtOnce,         // an unlinked object is reusable at once
  kBitsCollectedTwice,    // the owner of a block does not clear the bits that it collects
  kRetiredRegistersKept,  // a worker does not forget registers that others retired
  kRestingNotForgotten,   // ... or, of those, the ones that rest
  kRingLeftEarly,         // a worker leaves the ring of its seat before the others have read it
  kExtentsKept,           // a writer that replaces or removes a root does not retire its extents
  kExtentsNotNamed,       // blocks are taken over that hold extents of roots which slots name
  kPageCountKept,         // a page that is written anew keeps the count of elements below it
  kJoinDropsLeaf,         // leaves are joined, and what was in one of them is gone
  kPagesKept,             // a writer that replaces or removes a tree retires none of its pages
  kPagesNotNamed,         // blocks are taken over that hold pages of trees which slots name
  kPagesFreedEarly,       // a change of a tree gives back pages before its root is in the index
  kLosersPagesKept,       // who loses the slot does not retire the pages that it has written
  kPageCachedByAddr,      // a page that was kept is believed to be there whatever has replaced it
  kPageUnchecked,         // a page that is read is believed whatever bytes it has
  kExtentsUnchecked,      // a value in extents replaces whatever its key has become meanwhile
  kTreeRootNotCompared,   // a large change of a tree goes by the version of what it has read alone
  // registers
  kNoAnnounce,              // a writer locks before what overtook its guess is at a majority
  kNoWriteBack,             // a read returns what is not at a majority
  kWriteBackWithoutBytes,   // a write-back carries the word alone
  kSeenPerRegister,         // a read that saw any other tuple before takes that for complete
  kInPlaceHashWithoutWord,  // the in-place hash does not cover the metadata word
  kFirstWordPlain,          // the first word of a lane is installed by WRITE
  kLooksByRead,             // a write looks by a READ where its CAS may overtake that
  kMaxSetsBack,             // MAX replaces whatever is there
  kFirstCopiedOver,         // a copy takes the place of the first value ahead of its word
  kLockAtMinority,          // a timestamp lock is taken at one replica
  kNoWriteLock,             // a writer rewrites without locking readers out
  kNoReaderLock,            // a reader returns a guess without locking the writer out
  kNoSecondRead,            // a reader locks a guess that it has read once
  kNeverRewrite,            // a writer returns although its guess may have been stale
  kSameWriterNewest,        // the same-writer rule returns the second tuple
  kAbdStaleTimestamp,       // an ABD writer goes by its own last timestamp alone
  kSecondhandCounts,        // a read takes a guess for everywhere where others have put it
  kMajorityIsEverywhere,    // ... or that is at a majority
  kBesideOfAnyWrite,        // a buffer read beside the lanes counts for whichever write is found
  kReadBesideOfAny,         // a read beside the search counts for whichever key is found
  kReadAwaitsVerified,      // a read of a guess waits until its writer has verified it
  kBytesNotBeside,          // a write's bytes go only where its register is live
  kPostedAtMinority,        // a write is posted although it cannot reach a majority
  // the same where operations complete inline
  kInlineReadOfOne,        // a read takes one replica for a majority
  kInlineBufferNotFound,   // ... or a word whose buffer is not where the register is
  kInlineWriteOverLarger,  // a write stands that is not first-hand everywhere
  kInlineVotesNotCounted,  // a slot's writer goes on to the primary whatever the backups say
  // records that are written without a search
  kHotBelieved,   // a mutation that changes nothing believes what is remembered
  kHotLoserDone,  // a blind writer that loses takes what it remembered for read
  // the two forms of a key
  kSealNotRead,              // a step on a register counts whatever the seal says
  kLanesBeforeSeal,          // a freeze reads the lanes ahead of its seal
  kInterruptedAlwaysRedone,  // an interrupted write is done again without asking
  kInterruptedNeverRedone,   // ... or never
  kInterruptedAsksSlotOnly,  // ... or by the slot's word alone
  kFinalNotWritten,          // a writer that replaces a register's object does not record its end
  kDeleteOfMajority,         // a DEL that sealed a majority counts without looking at the slot
  kDeleteCreditForgotten,    // a DEL that lost the slot says 0 whoever is credited
  kReadAwaitsEnd,            // a GET that meets a seal waits for the worker that put it there
  // the cluster and its master
  kSweepsAtOnce,          // flushed keys are removed under operations that began before the flush
  kNoHold,                // a worker that is asked to quiesce goes on
  kCommitsBeforeAllHold,  // a flush is committed when the first agents are quiesced
  kSwapUnderOperations,   // databases are swapped while operations are under way
  kHoldForgetsExpelled,   // a quiesce does not wait for agents that are not fenced yet
  kHoldForgetsAway,       // a quiesce does not wait for agents of before a restart
  kAnswersBeforeInForce,  // a change is answered before every member has its view
  kFencedOnOneNode,       // an agent's seats are free when one node has fenced it
  kViewNotDurable,        // a view is not stored before it is sent
  kRestartKeepsEpoch,     // a master starts without a view of its own
  kSeatNotDurable,        // which agent took which seat is not stored
  kRefusalBelieved,       // a member ends when any process at the master's address refuses it
  kResetIsDeath,          // a member whose stream ends is taken for dead at once
  kTimeFromWallClock,     // a master that starts again takes its host's wall clock
  kOldStateWelcomes,      // a master of an old state welcomes members that know a newer one
  kOutUnresolved,         // slots stay as a lost node has left them
  kOutIsFenced,           // a seat is free although agents may still ask a node that is out
  kAcknowledgedBeforeDurable,  // messages do not wait for the store
  kResolveTakesBackup,         // a half-done slot write is carried on although readers saw the old
  kNoScrub,                    // words of registers stay where a lost node has left them
  kScrubLeavesBytes,           // ... or their bytes
  kNoWitnesses,                // slots are read from the primary alone
  kLanesNotNamed,              // blocks are taken over that registers' words still name
  kTakenOverAtOnce,            // ... while operations may still use or free what is there
  kInheritedTwice,             // ... and a buffer met twice, amid a split, is freed twice
  kOpenedWhileHeld,            // a block is opened in which an operation holds what nothing names
  kOpenedWithoutBits,          // ... or whose bitmap lacks bits of what is free
  kOpenedStillAllocates,       // ... and its owner goes on allocating there
  kOpenIsOrphan,               // open blocks are taken over like those of the dead
  kOpenedTwice,                // ... or tells nodes again of a block that it has got back since
  kReturnForgotten,            // a block is not given back to a node that did not answer
  kHalfTakenForgotten,         // ... nor claimed when a take-over has ended behind its primary
  kReplicaNotAsked,            // a block is granted though a replica came to the map meanwhile
  kLateBitShown,               // the primary shows a bit that may yet arrive at a backup
  kRetiredNotTold,             // memory retired in own blocks does not hold a take-over up
  kNotLetGo,                   // the worker that opened a block still frees others' buffers there
  kOwnBuffersLost,             // memory that a worker's own words name is freed as lost
  kAccountedAtOnce,            // ... and what operations hold that nothing names yet
  kBackupBitsIgnored,          // ... and what a backup alone knows to be free
  kOpenNotLookedAt,            // no agent looks for memory that is lost in open blocks
  kUnseenRemembered,           // a worker keeps buffers of registers whose end no worker told it
  kReserveGiven,               // a memory node grants its reserve to any worker that asks
  kCapacityCountedTwice,       // a region's blocks count on each of its nodes
  kCompactionTakesReserve,     // compaction takes memory of the reserve, and then serves new keys
  kMovedFreedAtOnce,           // compaction frees what it moved while an operation may read it
  kLocksNotCleared,            // memory of others serves as buffers with the locks that it held
  kCopyForgetsBlock,           // a block of a region does not come to its new replica
  kMoveUncopied,               // a region is on another node before the copy there is whole
  kMoveUnderWrites,            // ... or copied while operations are under way
  kMoveUnreached,              // ... before every agent has a channel to its new node
  kMovesRegisters,             // registers are kept while their regions move
  kCutWhileUsed,               // regions are given up in which something is in use
  kDirectoryRemembered,        // a worker keeps what it knew of a directory that is not in force
  kGrownUnformatted,           // added regions keep what lay there before
  kGrownUnderOperations,       // regions are added while operations are under way
  kGrownNotDurable,            // ... and not stored
  kGrownTakenForZeroed,        // ... and what is free in them counts as never used
  kOldImageBelieved,      // memory that is an older copy counts as if it had all that was written
  kOlderMasterServes,     // a master goes on with a state that is older than what nodes were told
  kIdsStartOver,          // a master gives worker ids out again that nodes have seen
  kDamagedKeyNotHealed,   // a key whose bytes are damaged stays so whoever writes to it
  kReportsIgnored,        // the master ignores agents' reports of nodes that they do not reach
  kLeftRoundUnseen,       // a quiesce of all does not wait for rounds that outlast their commands
  kWalkResumedAnyway,     // a walk goes on where it was left though more has to be walked since
  kOneReportForAll,       // a node that one agent does not reach goes out for all
  kFlushBehindSweepLost,  // a flush in the last pause of a sweep starts no sweep of its own
  kSweepEndsWithWorker,   // no worker ends the sweep of one that is gone
  kEmptyNodeStays,        // a node on which nothing lives stays in, whoever does not reach it
};

#ifdef ONETRIP_PLANTED_BUGS
inline Bug TEST_planted_bug = Bug::kNone;
inline bool Planted(Bug bug) { return TEST_planted_bug == bug; }
#else
constexpr bool Planted(Bug /*bug*/) { return false; }
#endif

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_BASE_PLANTED_BUG_H_
