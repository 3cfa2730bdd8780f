#include "sordino/cli/program.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/known_meaning.h"
#include "sordino/base/shown_text.h"
#include "sordino/base/stop.h"
#include "sordino/cli/report_json.h"

namespace sordino {
namespace {

// The end of a sentence about an unknown name: the known one that means the same, or that is
// nearest by its letters, if any is near.
std::string Suggestion(std::string_view given, const std::vector<std::string>& known) {
  const std::vector<std::string_view> names(known.begin(), known.end());
  const std::string likely = LikelyName(given, names);
  return likely.empty() ? "." : "; did you mean '" + likely + "'?";
}

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> FlagNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// CLI11 says "--rate: At Most 1 required but received 2" and "--rate: 1 required NUMBER missing".
std::string ExplainCount(const std::string& told) {
  const std::size_t colon = told.find(": ");
  const std::string option = told.substr(0, colon);
  std::istringstream rest(colon == std::string::npos ? "" : told.substr(colon + 2));
  const std::vector<std::string> words{std::istream_iterator<std::string>(rest), {}};
  if (words.size() == 7 && words[0] == "At") {
    return words[1] == "Most" ? fmt::format("'{}' was given {} values; give at most {}", option,
                                            words[6], words[2])
                              : fmt::format("'{}' was given {} values; give at least {}", option,
                                            words[6], words[2]);
  }
  if (words.size() == 4 && words[3] == "missing") {
    return fmt::format("'{}' has no value; give one ({})", option, words[2]);
  }
  return told;
}

// The sentence for a command line that CLI11 refused. What nobody knows is named first: a
// misspelt flag would otherwise be reported as the absence of the right one.
std::string Explain(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = &app;
  std::string program = "sordino";
  for (auto chosen = app.get_subcommands(); !chosen.empty(); chosen = command->get_subcommands()) {
    command = chosen.front();
    program += " " + command->get_name();
  }
  const std::string help = " See '" + program + " --help' for an example.";

  const std::vector<std::string> unknown = command->remaining(true);
  const auto is_flag = [](const std::string& word) { return word.size() > 1 && word[0] == '-'; };
  if (!unknown.empty() && !is_flag(unknown.front()) && !CommandNames(*command).empty()) {
    return "'" + unknown.front() + "' is not a command" +
           (command == &app ? "" : " of '" + program + "'") +
           Suggestion(unknown.front(), CommandNames(*command)) + help;
  }
  if (const auto word = std::find_if(unknown.begin(), unknown.end(), is_flag);
      word != unknown.end()) {
    const std::string flag = word->substr(0, word->find('='));
    return "'" + flag + "' is not a flag of '" + program + "'" +
           Suggestion(flag, FlagNames(*command)) + help;
  }
  if (!unknown.empty()) {
    return "'" + unknown.front() + "' was not expected after '" + program + "'." + help;
  }
  std::string sentence =
      error.get_name() == "ArgumentMismatch" ? ExplainCount(error.what()) : error.what();
  while (!sentence.empty() && (sentence.back() == '.' || sentence.back() == '\n')) {
    sentence.pop_back();
  }
  return sentence + "." + help;
}

[[noreturn]] void RefuseEmpty(const std::string& name) {
  throw Error(fmt::format(
      "the value of '{}' is empty; give one, or leave it out (is a shell variable unset?).", name));
}

// An empty value would mean the same as a flag that was left out: a release that nobody charges, a
// ledger that nobody finds again. So none is taken, whatever the flag.
void RefuseEmptyValues(CLI::App& app) {
  for (CLI::Option* option : app.get_options([](const CLI::Option*) { return true; })) {
    if (option->get_expected_max() == 0) continue;  // a switch
    option->check([name = option->get_name()](const std::string& value) {
      if (value.empty()) RefuseEmpty(name);
      return std::string();
    });
  }
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    RefuseEmptyValues(*command);
  }
}

// CLI11 reads the word after `--flag=` as its value.
void RefuseEmptyAfterEquals(const std::vector<std::string>& words) {
  for (const std::string_view word : words) {
    if (word == "--") return;
    if (word.starts_with("--") && word.find('=') == word.size() - 1) {
      RefuseEmpty(std::string(word.substr(0, word.size() - 1)));
    }
  }
}

// As a shell takes it.
std::string QuotedWord(const std::string& word) {
  constexpr std::string_view kPlain = "_-./:=,+@%~";
  const bool plain = std::all_of(word.begin(), word.end(), [&](unsigned char c) {
    return std::isalnum(c) != 0 || kPlain.find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain && !word.empty()) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string& LineOfProcess() {
  static std::string line = "sordino";
  return line;
}

bool ReaderIsGone() {
  struct pollfd output = {STDOUT_FILENO, POLLOUT, 0};
  return poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

// Results that could not be written are a failure, with one exception: a reader that went away
// (`sordino ... | head`) has had all that it wanted.
int FlushOutput(int code, bool json) {
  std::cout.flush();
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good();
  if (written || ReaderIsGone()) return code;
  return Report(kFailure, "the output could not be written; is the disk full?", json);
}

int Run(CLI::App& app, std::vector<std::string> words, bool json) {
  try {
    if (words.empty()) {
      std::cerr << app.help();
      return kMistake;
    }
    RefuseEmptyAfterEquals(words);
    RefuseEmptyValues(app);
    std::reverse(words.begin(), words.end());  // as CLI11 takes them
    app.parse(std::move(words));
    return kOk;
  } catch (const CLI::Success& asked) {
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    return Report(kMistake, Explain(app, error), json);
  } catch (const EndWith& end) {
    return end.code;
  } catch (const Stopped& stopped) {
    return Report(kSignal + stopped.signal(), stopped.what(), json);
  } catch (const Error& error) {
    return Report(kMistake, error.what(), json);
  } catch (const std::exception& error) {
    return Report(kFailure, error.what(), json);
  }
}

}  // namespace

void AddForceFlag(CLI::App& command, bool& force) {
  command.add_flag("--force", force,
                   "Overwrite a file of another kind; never an input, a ledger or a run's file");
}

bool WantsJson(const std::vector<std::string>& words) {
  const auto end = std::find(words.begin(), words.end(), "--");
  return std::find(words.begin(), end, "--json") != end;
}

int Report(int code, std::string_view sentence, bool json) {
  if (json) {
    nlohmann::ordered_json report = NewReport();
    report["error"] = {{"message", sentence}, {"exit_code", code}};
    PrintReport(report);
  }
  std::cout.flush();
  std::cerr << "sordino: " << ShownText(sentence) << '\n';
  return code;
}

std::string GivenLine() { return LineOfProcess(); }

int RunCommandLine(CLI::App& app, std::vector<std::string> words) {
  for (const std::string& word : words) LineOfProcess() += ' ' + QuotedWord(word);
  // A closed pipe, and a file that may not grow, show as failed writes instead of signals.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  const bool json = WantsJson(words);
  return FlushOutput(Run(app, std::move(words), json), json);
}

}  // namespace sordino
