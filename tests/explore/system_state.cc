#include "tests/explore/system_state.h"

#include <sstream>

namespace onetrip {
namespace {

constexpr std::string_view kLetters = "satdqhwxn";  // by Choice::Kind

}  // namespace

std::string ChoiceText(const Choice& choice) {
  std::ostringstream text;
  text << kLetters[static_cast<size_t>(choice.kind)] << static_cast<int>(choice.client) << '.'
       << static_cast<int>(choice.node) << '.' << static_cast<int>(choice.round) << '.'
       << static_cast<int>(choice.lost);
  return text.str();
}

std::string PathText(const CellTable& cells, const std::vector<Choice>& path) {
  std::ostringstream text;
  for (const Cell& cell : cells.cells()) {
    if (cell.slot < 0) continue;
    text << '@' << cell.at.node.value << '.' << cell.at.offset << '.' << cell.writers << '.'
         << cell.accessors << ' ';
  }
  for (const Choice& choice : path) text << ChoiceText(choice) << ' ';
  return text.str();
}

std::optional<std::vector<Choice>> ParsePath(std::string_view text, CellTable* cells) {
  std::vector<Choice> path;
  std::istringstream words{std::string(text)};
  std::string word;
  while (words >> word) {
    std::istringstream fields(word.substr(1));
    std::array<uint64_t, 4> number{};
    for (size_t i = 0; i < number.size(); ++i) {
      if (i > 0 && fields.get() != '.') return std::nullopt;
      if (!(fields >> number[i])) return std::nullopt;
    }
    if (fields.peek() != std::istringstream::traits_type::eof()) return std::nullopt;
    if (word[0] == '@') {
      const RemoteAddr at{NodeId{static_cast<uint16_t>(number[0])}, number[1]};
      for (size_t client = 0; client < kClientsMax; ++client) {
        const bool writes = (number[2] >> client & 1) != 0;
        const auto kind = writes ? FabricOpKind::kCas : FabricOpKind::kRead;
        if ((number[3] >> client & 1) != 0) cells->Touch(at, client, kind);
      }
      continue;
    }
    const size_t kind = kLetters.find(word[0]);
    if (kind == std::string_view::npos) return std::nullopt;
    path.push_back({static_cast<Choice::Kind>(kind), static_cast<uint8_t>(number[0]),
                    static_cast<uint8_t>(number[1]), static_cast<uint16_t>(number[2]),
                    static_cast<uint8_t>(number[3])});
  }
  return path;
}

}  // namespace onetrip
