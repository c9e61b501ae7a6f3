// Trees under random changes, against vectors. A failure prints the seed and the steps that are
// needed for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "client_core/base/rng.h"
#include "client_core/tree/tree.h"
#include "tests/support/scale.h"
#include "tests/unit/tree_pages.h"

namespace onetrip {
namespace {

enum class Mood : uint8_t { kGrow, kStay, kShrink };

// One step; all that it does follows from its seed and from the collection as it finds it, so that
// steps before it may be left out.
struct ModelStep {
  uint64_t seed = 0;
  Mood mood = Mood::kStay;
};

struct ModelShape {
  TreeLimits limits;
  std::vector<bool> has_keys;
  size_t text_bytes_max = 8;
  size_t prefix_bytes = 0;  // that all keys share
  uint64_t letters = 4;     // few: keys meet
  size_t many = 100;        // elements that come in one change, at most
  // Elements above which no more come.
  size_t elements_max = 1500;
};

ModelShape SomeShape(uint64_t seed) {
  Rng rng(seed * 31 + 7);
  ModelShape shape;
  shape.limits.leaf_bytes = static_cast<uint32_t>(64 + rng.Below(137));
  shape.limits.inner_bytes = static_cast<uint32_t>(80 + rng.Below(121));
  shape.limits.root_bytes = static_cast<uint32_t>(60 + rng.Below(141));
  shape.has_keys = std::vector<std::vector<bool>>{
      {false}, {true}, {true, true}, {false, true, true}}[rng.Below(4)];
  shape.text_bytes_max = rng.Below(4) == 0 ? 100 : 3 + rng.Below(12);
  shape.prefix_bytes = rng.Below(3) == 0 ? rng.Below(40) : 0;
  shape.letters = rng.Below(2) == 0 ? 4 : 256;
  return shape;
}

ModelShape DefaultLimitsShape(uint64_t seed) {
  ModelShape shape = SomeShape(seed);
  shape.limits = TreeLimits();
  shape.elements_max = 15000;
  shape.many = 3000;
  shape.text_bytes_max = 40;
  return shape;
}

class ModelRun {
 public:
  explicit ModelRun(ModelShape shape) : shape_(std::move(shape)), model_(shape_.has_keys.size()) {
    Tree tree(header_, std::vector<std::vector<NewLeaf>>(model_.size()), shape_.limits);
    root_ = PlaceTree(&tree, &memory_, nullptr);
  }

  // Empty, or what went wrong.
  std::string Step(const ModelStep& step) {
    Rng rng(step.seed);
    const uint64_t kind = rng.Below(100);
    ++steps_;
    if (kind == 0) return Build(&rng);
    if (kind < 4) return Renew(&rng);
    if (kind < 14) return Look(&rng);
    return Change(&rng, step.mood);
  }

  [[nodiscard]] const TreeContents& contents() const { return contents_; }
  [[nodiscard]] const ModelShape& shape() const { return shape_; }
  [[nodiscard]] int highest() const { return highest_; }

 private:
  // A root whose pages are still there.
  struct Old {
    uint64_t step = 0;
    std::string root;
    std::string header;
    std::vector<Texts> model;
  };

  using Use = std::function<std::string(Tree&)>;

  std::string SomeText(Rng* rng) {
    std::string text(shape_.prefix_bytes, 'p');
    for (uint64_t left = rng->Below(shape_.text_bytes_max + 1); left > 0; --left) {
      text.push_back(static_cast<char>('a' + rng->Below(shape_.letters)));
    }
    return text;
  }

  // Has `use` a tree until all that it needs is loaded; the tree is `*used` then.
  std::string WithTree(LoadedPages* loaded, std::unique_ptr<Tree>* used, const Use& use) {
    for (int attempt = 0; attempt < 500; ++attempt) {
      TreeRoot root;
      TREE_EXPECT(LoadTreeRoot(root_, &root));
      auto tree = std::make_unique<Tree>(std::move(root), *loaded, shape_.limits);
      const std::string error = use(*tree);
      TREE_EXPECT(!tree->is_damaged());
      if (tree->missing().empty()) {
        *used = std::move(tree);
        return error;
      }
      for (const PageRef& page : tree->missing()) {
        TREE_EXPECT(live_.contains(page.addr.bits()));
        TREE_EXPECT(loaded->Load(memory_, page));
      }
    }
    return "the same pages are missing again and again";
  }

  std::string Build(Rng* rng) {
    std::vector<Texts> model(model_.size());
    std::vector<std::vector<NewLeaf>> leaves;
    for (size_t order = 0; order < model.size(); ++order) {
      uint64_t count = rng->Below(10) == 0 ? 0 : rng->Below(shape_.elements_max / 2);
      for (; count > 0; --count) model[order].push_back(SomeText(rng));
      if (shape_.has_keys[order]) MakeKeys(&model[order]);
      leaves.push_back(LeavesOf(model[order], shape_.has_keys[order], shape_.limits.leaf_bytes));
    }
    if (rng->Below(2) == 0) leaves[0].push_back(NewLeaf());
    Tree tree("built " + std::to_string(rng->Below(100)), std::move(leaves), shape_.limits);
    TREE_EXPECT(tree.changed());
    // All pages of the old tree go with its root.
    Remember();
    garbage_.emplace_back(steps_, live_);
    live_.clear();
    model_ = std::move(model);
    return Commit(&tree);
  }

  static void MakeKeys(Texts* texts) {
    std::sort(texts->begin(), texts->end());
    texts->erase(std::unique(texts->begin(), texts->end()), texts->end());
  }

  std::string Change(Rng* rng, Mood mood) {
    LoadedPages loaded;
    std::unique_ptr<Tree> tree;
    std::vector<Texts> model;
    const uint64_t seed = rng->Next();
    const std::string error = WithTree(&loaded, &tree, [&](Tree& changing) -> std::string {
      Rng again(seed);
      model = model_;
      if (again.Below(10) == 0) changing.set_header("header " + std::to_string(again.Below(5)));
      for (uint64_t left = 1 + again.Below(again.Below(3) == 0 ? 6 : 1); left > 0; --left) {
        const std::string went_wrong = ChangeOnce(&again, mood, &changing, &model);
        if (!went_wrong.empty() || !changing.missing().empty()) return went_wrong;
      }
      return "";
    });
    if (!error.empty()) return error;
    Remember();
    model_ = std::move(model);
    return Commit(tree.get());
  }

  // A stretch of elements is replaced by others.
  std::string ChangeOnce(Rng* rng, Mood mood, Tree* tree, std::vector<Texts>* model) {
    const size_t order = rng->Below(model->size());
    Texts& texts = (*model)[order];
    uint64_t take = 0;
    uint64_t put = 0;
    const bool is_many = rng->Below(30) == 0;
    const uint64_t more = is_many ? 1 + rng->Below(shape_.many) : 1 + rng->Below(3);
    const uint64_t chance = mood == Mood::kGrow ? 8 : mood == Mood::kStay ? 5 : 2;
    (rng->Below(10) < chance ? put : take) = more;
    if (rng->Below(4) == 0) (put == 0 ? put : take) = rng->Below(3);
    if (texts.size() > shape_.elements_max) std::swap(take, put);
    if (put > 2 && mood == Mood::kShrink) put = 2;
    uint64_t at = rng->Below(texts.size() + 1);
    if (rng->Below(5) == 0) at = rng->Below(2) == 0 ? 0 : texts.size();
    take = std::min<uint64_t>(take, texts.size() - at);
    if (take == 0 && put == 0) put = 1;
    Texts added;
    for (; put > 0; --put) added.push_back(SomeText(rng));
    if (shape_.has_keys[order]) {
      MakeKeys(&added);
      if (take == 0) at = KeyAt(texts, added.front());
      // A key has its place in a leaf that takes its neighbours.
      std::erase_if(added, [&](const std::string& text) {
        return take == 0 ? at < texts.size() && text >= texts[at]
                         : text < texts[at] || text > texts[at + take - 1];
      });
    }
    return Splice(order, at, take, std::move(added), tree, &texts);
  }

  static size_t KeyAt(const Texts& texts, const std::string& key) {
    return static_cast<size_t>(std::lower_bound(texts.begin(), texts.end(), key) - texts.begin());
  }

  // Both, what a collection's code does and the same on the model.
  std::string Splice(size_t order, size_t at, size_t take, Texts added, Tree* tree, Texts* texts) {
    LeafPlace from;
    LeafPlace to;
    Texts head;
    Texts tail;
    if (!texts->empty()) {
      // One that is put behind all is put behind the last one.
      const bool is_key = shape_.has_keys[order] && take == 0 && !added.empty();
      const bool is_found = is_key ? tree->SeekKey(order, added.front(), &from)
                                   : tree->Seek(order, at - (at == texts->size() ? 1 : 0), &from);
      if (!is_found || (take > 0 && !tree->Seek(order, at + take - 1, &to))) {
        TREE_EXPECT(!tree->missing().empty());
        return "";
      }
      if (take == 0) to = from;
      if (is_key && !from.last.empty()) {
        std::erase_if(added, [&](const std::string& text) { return text >= from.last; });
      }
      TREE_EXPECT(from.before <= at && at <= from.before + from.elements);
      TREE_EXPECT(at + take <= to.before + to.elements);
      TREE_EXPECT(AppendElementsOf(from.bytes, &head) && head.size() == from.elements);
      TREE_EXPECT(AppendElementsOf(to.bytes, &tail) && tail.size() == to.elements);
      head.resize(at - from.before);
      tail.erase(tail.begin(), tail.begin() + static_cast<ptrdiff_t>(at + take - to.before));
    }
    head.insert(head.end(), added.begin(), added.end());
    head.insert(head.end(), tail.begin(), tail.end());
    std::vector<NewLeaf> leaves = LeavesOf(head, shape_.has_keys[order], shape_.limits.leaf_bytes);
    if (at % 7 == 0)
      leaves.insert(leaves.begin() + static_cast<ptrdiff_t>(at % (leaves.size() + 1)), NewLeaf());
    const size_t dropped = tree->dropped().size();
    const uint64_t elements = tree->elements(order);
    TREE_EXPECT(elements == texts->size());
    const bool is_done = from.path == to.path
                             ? tree->Replace(order, from, std::move(leaves))
                             : tree->ReplaceRange(order, from, to, std::move(leaves));
    if (!is_done) {
      TREE_EXPECT(!tree->missing().empty());
      TREE_EXPECT(tree->dropped().size() == dropped && tree->elements(order) == elements);
      return "";
    }
    const auto begin = texts->begin() + static_cast<ptrdiff_t>(at);
    texts->erase(begin, begin + static_cast<ptrdiff_t>(take));
    texts->insert(texts->begin() + static_cast<ptrdiff_t>(at), added.begin(), added.end());
    TREE_EXPECT(tree->elements(order) == texts->size() && tree->changed());
    return "";
  }

  std::string Renew(Rng* rng) {
    const uint64_t sort = 1 + rng->Below(5);
    const uint64_t most = rng->Below(8);
    const auto wanted = [&](const PageRef& page) {
      return page.addr.bits() / kObjectAlignBytes % sort == 0;
    };
    LoadedPages loaded;
    std::unique_ptr<Tree> tree;
    size_t renewed = 0;
    const std::string error = WithTree(&loaded, &tree, [&](Tree& renewing) -> std::string {
      renewed = renewing.Renew(wanted, most);
      TREE_EXPECT(renewing.missing().empty() || (renewed == 0 && !renewing.changed()));
      return "";
    });
    if (!error.empty()) return error;
    size_t there = 0;
    for (const uint64_t addr : live_) there += addr / kObjectAlignBytes % sort == 0 ? 1 : 0;
    TREE_EXPECT(renewed == std::min(there, most));
    TREE_EXPECT(tree->changed() == (renewed > 0));
    const auto gone = std::count_if(tree->dropped().begin(), tree->dropped().end(), wanted);
    TREE_EXPECT(static_cast<size_t>(gone) >= renewed);
    Remember();
    return Commit(tree.get());
  }

  // Reads here and there; changes nothing.
  std::string Look(Rng* rng) {
    LoadedPages loaded;
    std::unique_ptr<Tree> tree;
    const size_t order = rng->Below(model_.size());
    const Texts& texts = model_[order];
    const uint64_t number = rng->Below(texts.size() + 2);
    const std::string key = SomeText(rng);
    const uint64_t walk = rng->Below(10);
    const bool forwards = rng->Below(2) == 0;
    return WithTree(&loaded, &tree, [&](Tree& reading) -> std::string {
      LeafPlace place;
      const bool is_found = reading.Seek(order, number, &place);
      if (!reading.missing().empty()) return "";
      TREE_EXPECT(is_found == (number < texts.size()));
      if (is_found) {
        TREE_EXPECT(place.before <= number && number < place.before + place.elements);
        std::string error = Walk(order, walk, forwards, place, &reading);
        if (!error.empty() || !reading.missing().empty()) return error;
      }
      if (shape_.has_keys[order]) {
        const bool is_any = reading.SeekKey(order, key, &place);
        if (!reading.missing().empty()) return "";
        TREE_EXPECT(is_any == !texts.empty());
        const size_t at = KeyAt(texts, key);
        TREE_EXPECT(!is_any || (place.before <= at && at <= place.before + place.elements));
        TREE_EXPECT(!is_any || at == texts.size() || texts[at] != key ||
                    at < place.before + place.elements);
        TREE_EXPECT(!is_any || place.last.empty() || key < place.last);
      }
      TREE_EXPECT(!reading.changed() && reading.dropped().empty());
      return "";
    });
  }

  std::string Walk(size_t order, uint64_t leaves, bool forwards, LeafPlace place, Tree* tree) {
    const Texts& texts = model_[order];
    for (;;) {
      Texts found;
      TREE_EXPECT(AppendElementsOf(place.bytes, &found) && found.size() == place.elements);
      TREE_EXPECT(place.before + found.size() <= texts.size());
      TREE_EXPECT(std::equal(found.begin(), found.end(),
                             texts.begin() + static_cast<ptrdiff_t>(place.before)));
      if (leaves-- == 0) return "";
      const LeafPlace old = place;
      if (forwards ? tree->Next(order, &place) : tree->Previous(order, &place)) {
        TREE_EXPECT(forwards ? place.before == old.before + old.elements
                             : place.before + place.elements == old.before);
        continue;
      }
      TREE_EXPECT(place.path == old.path && place.before == old.before);
      if (!tree->missing().empty()) return "";
      TREE_EXPECT(forwards ? old.before + old.elements == texts.size() : old.before == 0);
      return "";
    }
  }

  void Remember() {
    if (steps_ % 5 == 0) olds_.push_back({steps_, root_, contents_.header, model_});
    if (olds_.size() > 4) olds_.pop_front();
  }

  // Changes the root, and looks at everything.
  std::string Commit(Tree* tree) {
    std::vector<PageRef> placed;
    tree->Balance();
    TREE_EXPECT(tree->changed() || tree->NewPageBytes().empty());
    const size_t root_bytes = tree->RootBytes();
    const std::string header = tree->header();
    root_ = PlaceTree(tree, &memory_, &placed);
    TREE_EXPECT(root_.size() == root_bytes && tree->NewPageBytes().empty());
    std::set<uint64_t> gone;
    for (const PageRef& page : tree->dropped()) {
      TREE_EXPECT(live_.erase(page.addr.bits()) == 1);
      gone.insert(page.addr.bits());
    }
    garbage_.emplace_back(steps_, std::move(gone));
    for (const PageRef& page : placed) TREE_EXPECT(live_.insert(page.addr.bits()).second);
    contents_ = TreeContents();
    std::string error = TreeCheck(memory_, shape_.limits, shape_.has_keys).Read(root_, &contents_);
    if (!error.empty()) return error;
    TREE_EXPECT(contents_.orders == model_ && contents_.header == header);
    TREE_EXPECT(contents_.pages == live_);
    highest_ = std::max(highest_, contents_.height);
    error = CountPages();
    if (error.empty() && steps_ % 5 == 1) error = CheckOlds();
    return error;
  }

  // The tree names its pages, and loads no others.
  std::string CountPages() {
    if (steps_ % 20 != 0) return "";
    LoadedPages loaded;
    std::unique_ptr<Tree> tree;
    const bool inner_only = steps_ % 40 == 0;
    const std::string error = WithTree(&loaded, &tree, [&](Tree& reading) -> std::string {
      TREE_EXPECT(reading.NeedAll(inner_only) == reading.missing().empty());
      return "";
    });
    if (!error.empty()) return error;
    TREE_EXPECT(loaded.size() == contents_.inner_pages + (inner_only ? 0 : contents_.leaves));
    std::set<uint64_t> pages;
    uint64_t leaves = 0;
    tree->ForEachPage([&](const PageName& name, bool is_leaf) {
      pages.insert(name.page.addr.bits());
      leaves += is_leaf ? 1 : 0;
    });
    TREE_EXPECT(pages == live_ && leaves == contents_.leaves);
    return "";
  }

  // Older trees read as they did.
  std::string CheckOlds() {
    for (const Old& old : olds_) {
      TreeContents contents;
      std::string error =
          TreeCheck(memory_, shape_.limits, shape_.has_keys).Read(old.root, &contents);
      if (!error.empty()) return error;
      TREE_EXPECT(contents.orders == old.model);
    }
    while (!garbage_.empty() && (olds_.empty() || garbage_.front().first < olds_.front().step)) {
      for (const uint64_t addr : garbage_.front().second) {
        PageRef page;
        page.addr = GlobalAddr(addr);
        memory_.Free(page);
      }
      garbage_.pop_front();
    }
    return "";
  }

  const ModelShape shape_;
  std::vector<Texts> model_;
  std::string header_ = "header";
  std::string root_;
  PageMemory memory_;
  std::set<uint64_t> live_;  // the tree's pages
  // Pages that a step took out of the tree.
  std::deque<std::pair<uint64_t, std::set<uint64_t>>> garbage_;
  std::deque<Old> olds_;
  TreeContents contents_;
  uint64_t steps_ = 0;
  int highest_ = 0;
};

std::vector<ModelStep> SomeSteps(uint64_t seed, size_t count) {
  Rng rng(seed);
  std::vector<ModelStep> steps;
  Mood mood = Mood::kGrow;
  for (size_t i = 0; i < count; ++i) {
    if (rng.Below(150) == 0) mood = static_cast<Mood>(rng.Below(3));
    steps.push_back({rng.Next(), mood});
  }
  return steps;
}

// The steps up to the one that fails; empty if none does.
std::vector<ModelStep> FailingSteps(const ModelShape& shape, const std::vector<ModelStep>& steps,
                                    std::string* error) {
  ModelRun run(shape);
  for (size_t i = 0; i < steps.size(); ++i) {
    *error = run.Step(steps[i]);
    if (!error->empty()) return {steps.begin(), steps.begin() + static_cast<ptrdiff_t>(i) + 1};
  }
  return {};
}

// Leaves out steps as long as others still fail.
std::string Shrunk(const ModelShape& shape, std::vector<ModelStep> steps, std::string error) {
  const size_t all = steps.size();
  for (size_t chunk = all / 2; chunk > 0; chunk /= 2) {
    for (size_t begin = 0; begin + chunk < steps.size();) {
      std::vector<ModelStep> fewer = steps;
      fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(begin),
                  fewer.begin() + static_cast<ptrdiff_t>(begin + chunk));
      std::string other;
      fewer = FailingSteps(shape, fewer, &other);
      if (fewer.empty()) {
        begin += chunk;
      } else {
        steps = std::move(fewer);
        error = std::move(other);
      }
    }
  }
  std::string text = error + "\n" + std::to_string(all) + " steps, of which these are enough:";
  for (const ModelStep& step : steps) {
    text +=
        " {" + std::to_string(step.seed) + "," + std::to_string(static_cast<int>(step.mood)) + "}";
  }
  return text;
}

// The highest tree that there was.
int RunSteps(const ModelShape& shape, uint64_t seed, size_t count) {
  const std::vector<ModelStep> steps = SomeSteps(seed, count);
  std::string error;
  ModelRun run(shape);
  for (size_t i = 0; i < steps.size(); ++i) {
    error = run.Step(steps[i]);
    if (error.empty()) continue;
    const std::vector<ModelStep> failing(steps.begin(),
                                         steps.begin() + static_cast<ptrdiff_t>(i) + 1);
    ADD_FAILURE() << "seed " << seed << ": " << Shrunk(shape, failing, error);
    break;
  }
  return run.highest();
}

TEST(TreeModelTest, SmallPagesAreWhatTheModelIs) {
  int highest = 0;
  for (uint64_t seed = 0; seed < static_cast<uint64_t>(Scaled(24)); ++seed) {
    highest = std::max(highest, RunSteps(SomeShape(seed), seed, 1000));
    if (HasFailure()) return;
  }
  EXPECT_GE(highest, 4);
}

TEST(TreeModelTest, PagesOfTheUsualSizeAreWhatTheModelIs) {
  int highest = 0;
  for (uint64_t seed = 0; seed < static_cast<uint64_t>(Scaled(4)); ++seed) {
    highest = std::max(highest, RunSteps(DefaultLimitsShape(seed), seed, 300));
    if (HasFailure()) return;
  }
  EXPECT_GE(highest, 1);
}

// Elements go one by one, until few are left.
TEST(TreeModelTest, PagesAreNotLeftAlmostEmpty) {
  for (uint64_t seed = 0; seed < static_cast<uint64_t>(Scaled(12)); ++seed) {
    ModelShape shape = SomeShape(seed);
    shape.text_bytes_max = std::min<size_t>(shape.text_bytes_max, 15);
    ModelRun run(shape);
    Rng rng(seed);
    for (int i = 0; i < 1200; ++i) {
      const std::string error = run.Step({rng.Next(), i < 200 ? Mood::kGrow : Mood::kShrink});
      ASSERT_EQ(error, "") << "seed " << seed;
      const TreeContents& now = run.contents();
      const double leaf_fill = static_cast<double>(now.leaf_bytes) /
                               static_cast<double>(now.leaves * shape.limits.leaf_bytes);
      const double inner_fill = static_cast<double>(now.inner_bytes) /
                                static_cast<double>(now.inner_pages * shape.limits.inner_bytes);
      ASSERT_TRUE(now.leaves < 8 || leaf_fill > 0.25) << "seed " << seed << " step " << i;
      ASSERT_TRUE(now.inner_pages < 8 || inner_fill > 0.25) << "seed " << seed << " step " << i;
    }
  }
}

}  // namespace
}  // namespace onetrip
