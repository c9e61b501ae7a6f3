// Questions of the tool to agents, as any Redis client could ask them.
#ifndef ONETRIP_TOOL_RESP_PROBE_H_
#define ONETRIP_TOOL_RESP_PROBE_H_

#include <map>
#include <optional>
#include <string>

namespace onetrip {

// True if the agent at HOST:PORT answers PING, also with -NOAUTH or -DENIED, within a second.
bool Answers(const std::string& address);

// Every field of its INFO everything, sections joined, and kKeysNotCounted if it is so; nothing
// when it does not answer. `password` may be empty.
std::optional<std::map<std::string, std::string>> AgentInfo(const std::string& address,
                                                            const std::string& password);

// The text that it answers to `command`, waited for without a bound; nothing when it does not
// answer in text: *reason then says what it does.
std::optional<std::string> AskForText(const std::string& address, const std::string& password,
                                      const std::string& command, std::string* reason);

}  // namespace onetrip

#endif  // ONETRIP_TOOL_RESP_PROBE_H_
