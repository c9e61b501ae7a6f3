// CompletionScript(): one script per shell for all programs.
//
// Bash and zsh get a function of three tables, as `case` statements: which words make up a command,
// what the value of a flag can be, and which flags and commands there are.
#include <algorithm>
#include <cstdint>
#include <string>

#include "client_core/base/parameter_values.h"
#include "client_core/base/program_text.h"

namespace onetrip {
namespace {

std::string Join(const std::vector<std::string>& words, const char* separator) {
  std::string joined;
  for (const std::string& word : words) joined += (joined.empty() ? "" : separator) + word;
  return joined;
}

std::string FirstWord(std::string_view name) { return std::string(name.substr(0, name.find(' '))); }

// In single quotes, for all three shells.
std::string Quoted(std::string_view text, const char* quote = "'\\''") {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += quote;
    } else {
      out += c;
    }
  }
  return out + "'";
}

// The words that may follow `command` ("", "node", "node add") as first word, each with its
// summary.
struct NextWord {
  std::string word;
  std::string summary;
};
enum class WordKind : uint8_t { kCommands, kAll };
std::vector<NextWord> NextWords(const ProgramText& program, const std::string& command,
                                WordKind kind = WordKind::kAll) {
  std::vector<NextWord> next;
  const std::string prefix = command.empty() ? "" : command + " ";
  for (const CommandText& other : program.commands) {
    const std::string_view name = other.name;
    if (name.size() <= prefix.size() || !name.starts_with(prefix)) continue;
    const std::string_view rest = name.substr(prefix.size());
    const std::string word = FirstWord(rest);
    // A word that several commands begin with is explained by the words behind it.
    const std::string summary =
        word == rest ? other.summary : std::string(rest.substr(word.size() + 1));
    if (next.empty() || next.back().word != word) {
      next.push_back({word, summary});
    } else {
      next.back().summary += ", " + summary;
    }
  }
  const CommandText* text = FindCommandText(program, command);
  if (text == nullptr || kind == WordKind::kCommands) return next;
  for (const std::string& choice : text->choices) next.push_back({choice, text->words});
  return next;
}

std::vector<std::string> WordsOf(const std::vector<NextWord>& next) {
  std::vector<std::string> words(next.size());
  std::transform(next.begin(), next.end(), words.begin(),
                 [](const NextWord& word) { return word.word; });
  return words;
}

// Every command, and the words that several begin with.
std::vector<std::string> CommandNames(const ProgramText& program) {
  std::vector<std::string> names = {""};
  for (const CommandText& command : program.commands) {
    const std::string first = FirstWord(command.name);
    if (first != command.name && names.back() != first && !names.back().starts_with(first + " ")) {
      names.push_back(first);
    }
    if (*command.name != '\0') names.emplace_back(command.name);
  }
  return names;
}

std::vector<const ParameterRow*> FlagsOf(const ProgramText& program, const std::string& command) {
  const CommandText* text = FindCommandText(program, command);
  return text == nullptr ? std::vector<const ParameterRow*>() : text->parameters;
}

// Lines of a `case` over "PROGRAM|COMMAND|WORD": that word makes the command longer.
std::string CommandCases(std::span<const ProgramText> programs) {
  std::string cases;
  for (const ProgramText& program : programs) {
    for (const std::string& command : CommandNames(program)) {
      for (const NextWord& next : NextWords(program, command, WordKind::kCommands)) {
        cases += "      '" + std::string(program.name) + "|" + command + "|" + next.word +
                 "') command='" + (command.empty() ? "" : command + " ") + next.word + "' ;;\n";
      }
    }
  }
  return cases;
}

// Lines of a `case` over "PROGRAM|COMMAND|FLAG": what completes the flag's value.
template <typename ToText>
std::string ValueCases(std::span<const ProgramText> programs, const ToText& text) {
  std::string cases;
  for (const ProgramText& program : programs) {
    for (const std::string& command : CommandNames(program)) {
      for (const ParameterRow* row : FlagsOf(program, command)) {
        if (row->type == ParameterType::kSwitch) continue;
        cases += "    '" + std::string(program.name) + "|" + command + "|--" + row->name + "') " +
                 text(*row) + "; return ;;\n";
      }
    }
  }
  return cases;
}

// Lines of a `case` over "PROGRAM|COMMAND": what may stand there.
template <typename ToText>
std::string WordCases(std::span<const ProgramText> programs, const ToText& text) {
  std::string cases;
  for (const ProgramText& program : programs) {
    for (const std::string& command : CommandNames(program)) {
      cases += "    '" + std::string(program.name) + "|" + command + "') " +
               text(NextWords(program, command), FlagsOf(program, command)) + " ;;\n";
    }
  }
  return cases;
}

std::string ProgramNames(std::span<const ProgramText> programs) {
  std::vector<std::string> names;
  for (const ProgramText& program : programs) names.emplace_back(program.name);
  return Join(names, " ");
}

std::string Bash(std::span<const ProgramText> programs) {
  const auto value = [](const ParameterRow& row) -> std::string {
    if (row.type == ParameterType::kPath) {
      return "compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")";
    }
    const std::vector<std::string> choices = ChoicesOf(row);
    if (choices.empty()) return "COMPREPLY=()";
    return "mapfile -t COMPREPLY < <(compgen -W " + Quoted(Join(choices, " ")) + " -- \"$cur\")";
  };
  const auto words = [](const std::vector<NextWord>& next,
                        const std::vector<const ParameterRow*>& flags) {
    std::vector<std::string> all = WordsOf(next);
    for (const ParameterRow* row : flags) all.push_back(std::string("--") + row->name);
    all.emplace_back("--help");
    return "words=" + Quoted(Join(all, " "));
  };
  return R"(# bash completion of Onetrip's programs; source it, or put it into a folder of completions.
_onetrip() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
  local program=${COMP_WORDS[0]##*/} command= word words=
  # --name=VALUE comes as three words.
  if [[ $cur == = ]]; then cur=
  elif [[ $prev == = && $COMP_CWORD -gt 1 ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}
  fi
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$program|$command|$word" in
)" + CommandCases(programs) +
         R"(    esac
  done
  case "$program|$command|$prev" in
)" + ValueCases(programs, value) +
         R"(  esac
  case "$program|$command" in
)" + WordCases(programs, words) +
         R"(  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}
complete -F _onetrip )" +
         ProgramNames(programs) + "\n";
}

std::string Zsh(std::span<const ProgramText> programs) {
  const auto value = [](const ParameterRow& row) -> std::string {
    if (row.type == ParameterType::kPath) return "_files";
    const std::vector<std::string> choices = ChoicesOf(row);
    if (choices.empty()) return "_message " + Quoted(ValueText(row));
    return "compadd -- " + Join(choices, " ");
  };
  const auto words = [](const std::vector<NextWord>& next,
                        const std::vector<const ParameterRow*>& flags) {
    std::string text = "commands=(";
    for (const NextWord& word : next) text += Quoted(word.word + ":" + word.summary) + " ";
    text += ") flags=(";
    for (const ParameterRow* row : flags) {
      text += Quoted(std::string("--") + row->name + ":" + row->help) + " ";
    }
    return text + "'--help:Print help and exit')";
  };
  const std::string names = ProgramNames(programs);
  return "#compdef " + names + R"(
# zsh completion of Onetrip's programs; put it into a folder of $fpath as _onetrip, or source it.
_onetrip() {
  local program=${words[1]:t} command= word
  local -a commands flags
  for word in "${(@)words[2,CURRENT-1]}"; do
    case "$program|$command|$word" in
)" + CommandCases(programs) +
         R"(    esac
  done
  case "$program|$command|${words[CURRENT-1]}" in
)" + ValueCases(programs, value) +
         R"(  esac
  case "$program|$command" in
)" + WordCases(programs, words) +
         R"(  esac
  (( $#commands )) && _describe command commands
  _describe -o option flags
}
if [[ ${funcstack[1]} == _onetrip ]]; then _onetrip "$@"; else compdef _onetrip )" +
         names + "; fi\n";
}

// True where `command` stands, and none of the words that would make it longer.
std::string FishCondition(const std::string& command, const std::vector<NextWord>& next) {
  std::vector<std::string> terms;
  for (size_t begin = 0; begin < command.size();) {
    const size_t end = std::min(command.find(' ', begin), command.size());
    terms.push_back("__fish_seen_subcommand_from " + command.substr(begin, end - begin));
    begin = end + 1;
  }
  const std::vector<std::string> words = WordsOf(next);
  if (!words.empty()) terms.push_back("not __fish_seen_subcommand_from " + Join(words, " "));
  return Join(terms, "; and ");
}

std::string Fish(std::span<const ProgramText> programs) {
  constexpr const char* kQuote = "\\'";
  std::string out =
      "# fish completion of Onetrip's programs; put it into ~/.config/fish/completions.\n";
  for (const ProgramText& program : programs) {
    const std::string complete = std::string("complete -c ") + program.name;
    out += complete + " -f\n";
    for (const std::string& command : CommandNames(program)) {
      const std::vector<NextWord> words = NextWords(program, command);
      const std::string condition = FishCondition(command, words);
      const std::string where = condition.empty() ? "" : " -n " + Quoted(condition, kQuote);
      for (const NextWord& next : words) {
        out += complete + where + " -a " + next.word + " -d " + Quoted(next.summary, kQuote) + "\n";
      }
      for (const ParameterRow* row : FlagsOf(program, command)) {
        out += complete + where + " -l " + row->name + " -d " + Quoted(row->help, kQuote);
        const std::vector<std::string> choices = ChoicesOf(*row);
        if (row->type == ParameterType::kPath) {
          out += " -rF";
        } else if (!choices.empty()) {
          out += " -xa " + Quoted(Join(choices, " "), kQuote);
        } else if (row->type != ParameterType::kSwitch) {
          out += " -x";
        }
        out += "\n";
      }
    }
  }
  return out;
}

}  // namespace

std::string CompletionScript(std::string_view shell, std::span<const ProgramText> programs) {
  if (shell == "bash") return Bash(programs);
  if (shell == "zsh") return Zsh(programs);
  if (shell == "fish") return Fish(programs);
  return "";
}

}  // namespace onetrip
