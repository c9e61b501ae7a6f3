#include "redis_compat/values/hyperloglog.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace onetrip {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is, too");

constexpr uint32_t kIndexBits = 14;
constexpr uint32_t kCountBits = 64 - kIndexBits;
constexpr uint32_t kRegisterBits = 6;
constexpr uint8_t kRegisterMax = (1U << kRegisterBits) - 1;
constexpr size_t kHeaderBytes = 16;
constexpr size_t kCountOffset = 8;
constexpr size_t kDenseBytes = kHeaderBytes + kHllRegisters * kRegisterBits / 8;
// A sparse value that would grow beyond becomes dense (hll-sparse-max-bytes).
constexpr size_t kSparseBytesMax = 3000;
constexpr char kDense = 0;
constexpr char kSparse = 1;
constexpr size_t kEncodingOffset = 4;

constexpr uint32_t kShortZerosMax = 64;
constexpr uint8_t kRunValueMax = 32;
constexpr uint32_t kRunLengthMax = 4;

// MurmurHash64A by Austin Appleby, with the seed that Redis takes.
uint64_t Hash(std::string_view bytes) {
  constexpr uint64_t kMultiplier = 0xc6a4a7935bd1e995ULL;
  constexpr int kShift = 47;
  constexpr uint64_t kSeed = 0xadc83b19ULL;
  uint64_t hash = kSeed ^ (bytes.size() * kMultiplier);
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), 8);
    word *= kMultiplier;
    word ^= word >> kShift;
    word *= kMultiplier;
    hash = (hash ^ word) * kMultiplier;
  }
  if (!bytes.empty()) {
    uint64_t rest = 0;
    std::memcpy(&rest, bytes.data(), bytes.size());
    hash = (hash ^ rest) * kMultiplier;
  }
  hash ^= hash >> kShift;
  hash *= kMultiplier;
  return hash ^ (hash >> kShift);
}

// A run of a sparse value.
struct Run {
  size_t bytes = 0;     // that it takes in the value; 0: damaged
  uint32_t length = 0;  // registers
  uint8_t count = 0;    // 0: zeros

  static Run At(std::string_view value, size_t at) {
    const auto first = static_cast<uint8_t>(value[at]);
    if ((first & 0x80) != 0) {
      return {1, (first & 3U) + 1, static_cast<uint8_t>(((first >> 2) & 31) + 1)};
    }
    if ((first & 0x40) == 0) return {1, (first & 63U) + 1, 0};
    if (at + 1 >= value.size()) return {};
    return {2, ((first & 63U) << 8 | static_cast<uint8_t>(value[at + 1])) + 1, 0};
  }
};

void AppendRun(uint32_t length, uint8_t count, std::string* out) {
  if (length == 0) return;
  if (count > 0) {
    out->push_back(static_cast<char>(0x80 | (count - 1) << 2 | (length - 1)));
  } else if (length <= kShortZerosMax) {
    out->push_back(static_cast<char>(length - 1));
  } else {
    out->push_back(static_cast<char>(0x40 | (length - 1) >> 8));
    out->push_back(static_cast<char>((length - 1) & 0xff));
  }
}

// Calls visit(first register, run) for each run. False: they are not 16,384 registers.
template <typename Visit>
bool ForEachRun(std::string_view value, Visit visit) {
  uint32_t first = 0;
  for (size_t at = kHeaderBytes; at < value.size();) {
    const Run run = Run::At(value, at);
    if (run.bytes == 0 || first + run.length > kHllRegisters) return false;
    visit(first, run);
    first += run.length;
    at += run.bytes;
  }
  return first == kHllRegisters;
}

// A register lies in one or two bytes, lowest bits first.
uint8_t DenseRegister(std::string_view value, uint32_t index) {
  const size_t at = kHeaderBytes + index * kRegisterBits / 8;
  const uint32_t shift = index * kRegisterBits % 8;
  uint32_t bits = static_cast<uint8_t>(value[at]);
  if (at + 1 < value.size())
    bits |= static_cast<uint32_t>(static_cast<uint8_t>(value[at + 1])) << 8;
  return static_cast<uint8_t>((bits >> shift) & kRegisterMax);
}

void SetDenseRegister(uint32_t index, uint8_t count, std::string* value) {
  const size_t at = kHeaderBytes + index * kRegisterBits / 8;
  const uint32_t shift = index * kRegisterBits % 8;
  const uint32_t clear = ~(static_cast<uint32_t>(kRegisterMax) << shift);
  const uint32_t set = static_cast<uint32_t>(count) << shift;
  const auto put = [&](size_t byte, uint32_t byte_shift) {
    char& here = (*value)[byte];
    here = static_cast<char>((static_cast<uint8_t>(here) & (clear >> byte_shift)) |
                             (set >> byte_shift));
  };
  put(at, 0);
  if (at + 1 < value->size()) put(at + 1, 8);
}

// Neighbouring runs of one value become one, among the five runs from `at` on that an update can
// have touched.
void MergeRuns(size_t at, std::string* value) {
  constexpr int kRuns = 5;
  for (int i = 0; i < kRuns && at < value->size(); ++i) {
    const Run run = Run::At(*value, at);
    if (run.count > 0 && at + 1 < value->size()) {
      const Run next = Run::At(*value, at + 1);
      if (next.count == run.count && run.length + next.length <= kRunLengthMax) {
        std::string merged;
        AppendRun(run.length + next.length, run.count, &merged);
        value->replace(at, 2, merged);
        continue;
      }
    }
    at += run.bytes;
  }
}

HllChange PromoteAndRaise(uint32_t index, uint8_t count, std::string* value) {
  return MakeHllDense(value) ? RaiseHllRegister(index, count, value) : HllChange::kDamaged;
}

HllChange RaiseSparse(uint32_t index, uint8_t count, std::string* value) {
  if (count > kRunValueMax) return PromoteAndRaise(index, count, value);
  // The run that holds the register, and the one before it.
  size_t before = kHeaderBytes;
  size_t at = kHeaderBytes;
  uint32_t first = 0;
  Run run;
  while (true) {
    if (at >= value->size()) return HllChange::kDamaged;
    run = Run::At(*value, at);
    if (run.bytes == 0) return HllChange::kDamaged;
    if (index < first + run.length) break;
    before = at;
    at += run.bytes;
    first += run.length;
  }
  if (run.count >= count) return HllChange::kUnchanged;
  std::string runs;
  AppendRun(index - first, run.count, &runs);
  AppendRun(1, count, &runs);
  AppendRun(first + run.length - 1 - index, run.count, &runs);
  if (runs.size() > run.bytes && value->size() + runs.size() - run.bytes > kSparseBytesMax) {
    return PromoteAndRaise(index, count, value);
  }
  value->replace(at, run.bytes, runs);
  MergeRuns(before, value);
  return HllChange::kChanged;
}

// Otmar Ertl, "New cardinality estimation algorithms for HyperLogLog sketches" (2017): sigma, tau.
double Sigma(double x) {
  if (x == 1.0) return std::numeric_limits<double>::infinity();
  double y = 1;
  double z = x;
  double previous = 0;
  do {
    x *= x;
    previous = z;
    z += x * y;
    y += y;
  } while (previous != z);
  return z;
}

double Tau(double x) {
  if (x == 0.0 || x == 1.0) return 0.0;
  double y = 1.0;
  double z = 1 - x;
  double previous = 0;
  do {
    x = std::sqrt(x);
    previous = z;
    y *= 0.5;
    z -= std::pow(1 - x, 2) * y;
  } while (previous != z);
  return z / 3;
}

}  // namespace

std::string NewHll() {
  std::string value("HYLL");
  value.resize(kHeaderBytes, '\0');
  value[kEncodingOffset] = kSparse;
  AppendRun(kHllRegisters, 0, &value);
  return value;
}

bool IsHll(std::string_view value) {
  if (value.size() < kHeaderBytes || !value.starts_with("HYLL")) return false;
  const char encoding = value[kEncodingOffset];
  return encoding == kSparse || (encoding == kDense && value.size() == kDenseBytes);
}

bool IsDenseHll(std::string_view value) { return value[kEncodingOffset] == kDense; }

HllChange AddToHll(std::string_view element, std::string* value) {
  const uint64_t hash = Hash(element);
  // The end mark bounds the count.
  const uint64_t rest = (hash >> kIndexBits) | (1ULL << kCountBits);
  const auto count = static_cast<uint8_t>(std::countr_zero(rest) + 1);
  return RaiseHllRegister(static_cast<uint32_t>(hash % kHllRegisters), count, value);
}

HllChange RaiseHllRegister(uint32_t index, uint8_t count, std::string* value) {
  if (!IsDenseHll(*value)) return RaiseSparse(index, count, value);
  if (DenseRegister(*value, index) >= count) return HllChange::kUnchanged;
  SetDenseRegister(index, count, value);
  return HllChange::kChanged;
}

bool MakeHllDense(std::string* value) {
  if (IsDenseHll(*value)) return true;
  std::string dense(*value, 0, kHeaderBytes);
  dense[kEncodingOffset] = kDense;
  dense.resize(kDenseBytes, '\0');
  const bool sound = ForEachRun(*value, [&dense](uint32_t first, const Run& run) {
    for (uint32_t i = 0; run.count > 0 && i < run.length; ++i) {
      SetDenseRegister(first + i, run.count, &dense);
    }
  });
  if (sound) *value = std::move(dense);
  return sound;
}

std::string DescribeHllRuns(std::string_view value) {
  std::string text;
  for (size_t at = kHeaderBytes; at < value.size();) {
    const Run run = Run::At(value, at);
    if (run.bytes == 0) break;
    if (!text.empty()) text.push_back(' ');
    if (run.count == 0) {
      text.append(run.bytes == 1 ? "z:" : "Z:");
    } else {
      text.append("v:").append(std::to_string(run.count)).append(",");
    }
    text.append(std::to_string(run.length));
    at += run.bytes;
  }
  return text;
}

bool MergeHll(std::string_view value, HllRegisters* registers) {
  if (!IsDenseHll(value)) {
    return ForEachRun(value, [registers](uint32_t first, const Run& run) {
      for (uint32_t i = 0; run.count > 0 && i < run.length; ++i) {
        uint8_t& here = (*registers)[first + i];
        here = std::max(here, run.count);
      }
    });
  }
  for (uint32_t i = 0; i < kHllRegisters; ++i) {
    (*registers)[i] = std::max((*registers)[i], DenseRegister(value, i));
  }
  return true;
}

uint64_t CountHll(const HllRegisters& registers) {
  constexpr double kAlphaInfinity = 0.721347520444481703680;  // 0.5 / ln 2
  std::array<uint32_t, kRegisterMax + 1> histogram{};
  for (const uint8_t count : registers) ++histogram[count & kRegisterMax];
  const double m = kHllRegisters;
  double z = m * Tau((m - histogram[kCountBits + 1]) / m);
  for (uint32_t count = kCountBits; count >= 1; --count) {
    z += histogram[count];
    z *= 0.5;
  }
  z += m * Sigma(histogram[0] / m);
  return static_cast<uint64_t>(std::llroundl(kAlphaInfinity * m * m / z));
}

bool HllHasCount(std::string_view value, uint64_t* count) {
  std::memcpy(count, value.data() + kCountOffset, sizeof(*count));
  return (*count >> 63) == 0;
}

void RememberHllCount(uint64_t count, std::string* value) {
  std::memcpy(value->data() + kCountOffset, &count, sizeof(count));
}

void ForgetHllCount(std::string* value) {
  (*value)[kHeaderBytes - 1] = static_cast<char>((*value)[kHeaderBytes - 1] | 0x80);
}

}  // namespace onetrip
