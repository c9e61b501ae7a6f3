#include "client_core/base/program_text.h"

#include "client_core/base/arguments.h"
#include "client_core/base/parameter_values.h"

namespace onetrip {
namespace {

constexpr const char* kExitCodes =
    "0 after SIGTERM or SIGINT, and after --help and --version. 1 when it could not start; stderr "
    "says why in one line.";

ProgramText DescribeAgent() {
  ProgramText text;
  text.summary = "serve the Redis protocol from replicated memory nodes";
  text.help =
      "Serves the Redis protocol; every command becomes one-sided operations on replicated memory "
      "nodes: those of the cluster of --master, or without it three that this program embeds.";
  text.variable = "ONETRIP_PORT=6379";
  text.file_line = "port = 6379";
  text.commands = {{.examples = {{"A cluster of its own, in one process",
                                  "onetrip-agent --port 6379 --memory 2GiB"},
                                 {"The agent of a host, for the cluster of a master",
                                  "onetrip-agent --master 10.0.0.1:7400 --secret-file "
                                  "/etc/onetrip/secret --threads 2"},
                                 {"With its options in a file, and one of them otherwise",
                                  "onetrip-agent --config agent.toml --port 6380"}}}};
  return text;
}

ProgramText DescribeMemnode() {
  ProgramText text;
  text.summary = "hold memory for a cluster";
  text.help =
      "Holds memory for the cluster of --master: agents read and write it by one-sided operations, "
      "over shared memory on this host and over tcp.";
  text.variable = "ONETRIP_MEMORY=2GiB";
  text.file_line = "memory = \"2GiB\"";
  text.commands = {{.examples = {{"Memory for agents of this host",
                                  "onetrip-memnode --master 127.0.0.1:7400 --memory 2GiB"},
                                 {"Memory for other hosts, kept in a file over restarts",
                                  "onetrip-memnode --master 10.0.0.1:7400 --fabric tcp --listen "
                                  "10.0.0.2:7500 --secret-file /etc/onetrip/secret --backing "
                                  "/var/lib/onetrip/memory.img"}}}};
  return text;
}

// The flags that only a rebuild has; master/rebuild_command.h reads them.
constexpr ParameterRow kRebuildRows[] = {
    {.name = "state",
     .type = ParameterType::kPath,
     .help = "The IMAGE.state beside the image of a memory node that does not run; may be given "
             "several times"},
    {.name = "wait-s",
     .type = ParameterType::kInteger,
     .default_text = "30",
     .unit = "s",
     .max = 86'400,
     .help = "Wait this long for members that have not answered"},
    {.name = "force",
     .type = ParameterType::kSwitch,
     .help = "Go on with what too few memory nodes know"},
};

ProgramText DescribeMaster() {
  ProgramText text;
  text.summary = "say who is a member of a cluster, and where its data lies";
  text.help =
      "Says who is a member of the cluster and where its data lies. Never on the data path.";
  text.variable = "ONETRIP_LEASE_MS=2000";
  text.file_line = "lease-ms = 2000";
  CommandText rebuild;
  rebuild.name = "rebuild";
  rebuild.summary = "Make the state of a master whose data directory is lost anew";
  rebuild.help =
      "Makes the state of a master whose data directory is lost anew, from what memory nodes and "
      "agents know. Takes the flags of onetrip-master, and those below.";
  for (const ParameterRow& row : kRebuildRows) rebuild.parameters.push_back(&row);
  rebuild.examples = {{"With the address and the secret of the lost master",
                       "onetrip-master rebuild --listen 10.0.0.1:7400 --data-dir "
                       "/var/lib/onetrip/master --secret-file /etc/onetrip/secret"}};
  text.commands = {
      {.examples = {{"A master for memory nodes and agents of this host",
                     "onetrip-master --data-dir /tmp/onetrip --nodes 3 --replicas 3"},
                    {"One for other hosts",
                     "onetrip-master --listen 0.0.0.0:7400 --data-dir /var/lib/onetrip/master "
                     "--secret-file /etc/onetrip/secret"}}},
      rebuild};
  return text;
}

// `text`, broken between words so that no line is longer than `columns`, each after `indent`.
std::string Wrap(std::string_view text, std::string_view indent, size_t columns) {
  std::string out;
  std::string line(indent);
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (line.size() > indent.size() && line.size() + 1 + end > columns) {
      out += line + "\n";
      line = indent;
    }
    if (line.size() > indent.size()) line += ' ';
    line += text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out + line + "\n";
}

constexpr size_t kColumns = 100;

std::string ExamplesText(const std::vector<ExampleText>& examples) {
  if (examples.empty()) return "";
  std::string text = "\nExamples:\n";
  for (const ExampleText& example : examples) {
    text +=
        Wrap(std::string(example.what) + ":", "  ", kColumns) + "      " + example.command + "\n";
  }
  return text;
}

std::string UsageText(const ProgramText& program, const CommandText& command) {
  std::string usage = std::string("Usage: ") + program.name;
  for (const char* part : {command.name, command.words}) {
    if (*part != '\0') usage += std::string(" ") + part;
  }
  if (!command.parameters.empty()) usage += " [--OPTION VALUE]...";
  return usage + "\n\n";
}

}  // namespace

ProgramText DescribeProgram(ParameterUser user) {
  ProgramText text = user == kUserAgent     ? DescribeAgent()
                     : user == kUserMemnode ? DescribeMemnode()
                                            : DescribeMaster();
  text.name = ProgramName(user);
  text.man_section = '8';
  text.exit_codes = kExitCodes;
  text.commands.front().parameters = ParametersOf(user);
  return text;
}

const CommandText* FindCommandText(const ProgramText& program, std::string_view name) {
  for (const CommandText& command : program.commands) {
    if (name == command.name) return &command;
  }
  return nullptr;
}

std::string ValueText(const ParameterRow& row) {
  switch (row.type) {
    case ParameterType::kSwitch:
      return "";
    case ParameterType::kChoice:
      return row.choices;
    case ParameterType::kYesNo:
      return "yes|no";
    case ParameterType::kSize:
      return "<size>";
    case ParameterType::kPath:
      return "<path>";
    case ParameterType::kAddress:
      return "<HOST:PORT>";
    case ParameterType::kOctal:
      return "<octal mode>";
    default:
      break;
  }
  if (*row.unit != '\0') return std::string("<") + row.unit + ">";
  return row.type == ParameterType::kInteger ? "<number>" : "<text>";
}

std::string NotesText(const ParameterRow& row) {
  std::string notes = row.is_required ? "required" : "";
  const auto add = [&notes](const std::string& note) {
    notes += (notes.empty() || note.empty() ? "" : "; ") + note;
  };
  if (*row.default_text != '\0') add(std::string("default ") + row.default_text);
  if (*row.implied_text != '\0') add(std::string(row.implied_text) + " without a value");
  add(LimitsText(row));
  return notes;
}

std::string HelpText(const ProgramText& program, const CommandText& command) {
  const bool is_program = *command.name == '\0';
  std::string text = UsageText(program, command) +
                     Wrap(*command.help != '\0' ? command.help : program.help, "", kColumns);
  if (is_program && *program.file_line != '\0') {
    text += "\n" + Wrap(std::string("Every option may also stand in the config file (") +
                            program.file_line + ") or in the environment (" + program.variable +
                            "). Flags win over the environment, which wins over the file.",
                        "", kColumns);
  }
  for (const CommandText& other : program.commands) {
    if (!is_program || *other.name == '\0') continue;
    text += std::string("\n") + program.name + " " + other.name + ": " + other.summary + "; see " +
            program.name + " " + other.name + " --help.\n";
  }
  text += "\nOptions:\n";
  for (const ParameterRow* row : command.parameters) {
    const std::string value = ValueText(*row);
    const std::string notes = NotesText(*row);
    text += std::string("  --") + row->name + (value.empty() ? "" : " ") + value;
    if (!notes.empty()) text += "  (" + notes + ")";
    text += "\n" + Wrap(std::string(row->help) + ".", "      ", kColumns);
  }
  text += "  --help\n      Print this and exit.\n";
  if (is_program) text += "  --version\n      Print the version and exit.\n";
  return text + ExamplesText(command.examples);
}

std::string OverviewText(const ProgramText& program) {
  constexpr size_t kNameColumn = 20;
  std::string text = std::string("Usage: ") + program.name + " COMMAND [--OPTION VALUE]...\n\n" +
                     Wrap(program.help, "", kColumns) + "\nCommands:\n";
  for (const CommandText& command : program.commands) {
    std::string name = std::string("  ") + command.name;
    name.resize(std::max(kNameColumn, name.size() + 1), ' ');
    text += name + command.summary + "\n";
  }
  return text + "\n" + program.name + " help COMMAND, or " + program.name +
         " COMMAND --help, explains one with its options.\n";
}

}  // namespace onetrip
