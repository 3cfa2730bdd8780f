#include "sordino/cli/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>

namespace sordino {
namespace {

// Between single quotes, as all three shells read them.
std::string Quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::vector<std::string> Names(const std::vector<CommandNode>& commands) {
  std::vector<std::string> names;
  names.reserve(commands.size());
  for (const CommandNode& command : commands) names.push_back(command.name);
  return names;
}

// What may stand at a place of the line, where that is known.
std::vector<std::string> PlaceWords(const CommandNode& command) {
  std::vector<std::string> words = Names(command.commands);
  for (const OptionNode& option : command.options) {
    if (option.is_place) words.insert(words.end(), option.choices.begin(), option.choices.end());
  }
  return words;
}

std::vector<std::string> Flags(const CommandNode& command) {
  std::vector<std::string> flags;
  for (const OptionNode& option : command.options) {
    if (!option.is_place) flags.insert(flags.end(), option.names.begin(), option.names.end());
  }
  return flags;
}

using Visit = std::function<void(const CommandNode&, const std::vector<std::string>& path)>;

// The program itself has the empty path.
void ForEachCommand(const CommandNode& command, const Visit& visit,
                    const std::vector<std::string>& path = {}) {
  visit(command, path);
  for (const CommandNode& child : command.commands) {
    std::vector<std::string> below = path;
    below.push_back(child.name);
    ForEachCommand(child, visit, below);
  }
}

// The pattern of a case of bash: the path and, after it, each name of the flag.
std::string BashFlagPattern(const OptionNode& option, const std::string& path) {
  std::vector<std::string> patterns;
  for (const std::string& name : option.names)
    patterns.push_back(Quoted(fmt::format("{} {}", path, name)));
  return fmt::format("{}", fmt::join(patterns, "|"));
}

// "[help]" of zsh's _arguments, in which brackets and colons mean something.
std::string ZshText(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string ZshValue(const OptionNode& option) {
  if (option.value.empty()) return "";
  std::string action;
  if (!option.choices.empty()) {
    action = fmt::format("({})", fmt::join(option.choices, " "));
  } else if (option.TakesFile()) {
    action = "_files";
  }
  return fmt::format(":{}:{}", ZshText(option.value), action);
}

std::vector<std::string> ZshSpecs(const CommandNode& command) {
  std::vector<std::string> specs;
  for (const OptionNode& option : command.options) {
    const std::string many = option.repeats ? "*" : "";
    if (option.is_place) {
      specs.push_back(Quoted(many + ZshValue(option)));
      continue;
    }
    for (const std::string& flag : option.names) {
      specs.push_back(
          Quoted(fmt::format("{}{}[{}]{}", many, flag, ZshText(option.help), ZshValue(option))));
    }
  }
  if (!command.commands.empty()) {
    specs.insert(specs.end(), {"'1:command:->command'", "'*::argument:->argument'"});
  }
  return specs;
}

void AddZshFunction(const CommandNode& command, const std::vector<std::string>& path,
                    std::string& script) {
  const std::string name =
      fmt::format("_sordino{}{}", path.empty() ? "" : "_", fmt::join(path, "_"));
  script += fmt::format("{}() {{\n", name);
  const bool has_commands = !command.commands.empty();
  if (has_commands) {
    script += "  local curcontext=\"$curcontext\" state line\n  local -a commands\n  commands=(\n";
    for (const CommandNode& child : command.commands) {
      script += fmt::format("    {}\n", Quoted(child.name + ":" + ZshText(child.summary)));
    }
    script += "  )\n";
  }
  script += fmt::format("  _arguments{} \\\n    {}\n", has_commands ? " -C" : "",
                        fmt::join(ZshSpecs(command), " \\\n    "));
  if (has_commands) {
    script += fmt::format(
        "  case $state in\n"
        "    command) _describe command commands ;;\n"
        "    argument) (( $+functions[{0}_$words[1]] )) && {0}_$words[1] ;;\n"
        "  esac\n",
        name);
  }
  script += "}\n";
}

}  // namespace

std::string BashCompletion(const CommandNode& root) {
  std::string paths;
  std::string values;
  std::string words;
  ForEachCommand(root, [&](const CommandNode& command, const std::vector<std::string>& path) {
    const std::string place = path.empty() ? "" : fmt::format(" {}", fmt::join(path, " "));
    if (!path.empty()) paths += fmt::format("{}{}", paths.empty() ? "" : "|", Quoted(place));
    for (const OptionNode& option : command.options) {
      if (option.is_place || option.value.empty() || option.TakesFile()) continue;
      values += option.choices.empty()
                    ? fmt::format("    {}) compopt +o default; return ;;\n",
                                  BashFlagPattern(option, place))
                    : fmt::format("    {}) words={} ;;\n", BashFlagPattern(option, place),
                                  Quoted(fmt::format("{}", fmt::join(option.choices, " "))));
    }
    words += fmt::format("      {}) commands={} flags={} ;;\n", Quoted(place),
                         Quoted(fmt::format("{}", fmt::join(PlaceWords(command), " "))),
                         Quoted(fmt::format("{}", fmt::join(Flags(command), " "))));
  });
  return "# Completions of sordino for bash: source <(sordino completion bash)\n"
         "_sordino() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
         "  local path='' word words='' commands='' flags=''\n"
         "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
         "    case \"$path $word\" in\n      " +
         paths +
         ") path=\"$path $word\" ;;\n    esac\n  done\n"
         "  case \"$path $previous\" in\n" +
         values +
         "  esac\n"
         "  if [ -z \"$words\" ]; then\n"
         "    case \"$path\" in\n" +
         words +
         "    esac\n"
         "    case $current in\n"
         "      -*) words=$flags ;;\n"
         "      *) words=$commands ;;\n"
         "    esac\n"
         "  fi\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
         "}\n"
         "complete -o default -F _sordino sordino\n";
}

std::string ZshCompletion(const CommandNode& root) {
  std::string script =
      "#compdef sordino\n"
      "# Completions of sordino for zsh: sordino completion zsh > FOLDER/_sordino, with FOLDER in "
      "fpath\n";
  ForEachCommand(root, [&](const CommandNode& command, const std::vector<std::string>& path) {
    AddZshFunction(command, path, script);
  });
  return script +
         "if [ \"$funcstack[1]\" = _sordino ]; then _sordino \"$@\"; else compdef _sordino "
         "sordino; fi\n";
}

std::string FishCompletion(const CommandNode& root) {
  std::string script =
      "# Completions of sordino for fish: sordino completion fish | source\n"
      "complete -c sordino -f\n";
  ForEachCommand(root, [&](const CommandNode& command, const std::vector<std::string>& path) {
    std::string here = "__fish_use_subcommand";
    if (!path.empty()) {
      std::vector<std::string> seen;
      seen.reserve(path.size());
      for (const std::string& name : path) seen.push_back("__fish_seen_subcommand_from " + name);
      here = fmt::format("{}", fmt::join(seen, "; and "));
    }
    const std::string line = fmt::format("complete -c sordino -n {}", Quoted(here));
    for (const CommandNode& child : command.commands) {
      script += fmt::format("{} -a {} -d {}\n", line, child.name, Quoted(child.summary));
    }
    for (const OptionNode& option : command.options) {
      if (option.is_place) {
        if (option.TakesFile()) script += line + " -F\n";
        continue;
      }
      script += line;
      for (const std::string& name : option.names) {
        script += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (!option.choices.empty()) {
        script += " -x -a " + Quoted(fmt::format("{}", fmt::join(option.choices, " ")));
      } else if (!option.value.empty()) {
        script += option.TakesFile() ? " -r -F" : " -x";
      }
      script += " -d " + Quoted(option.help) + "\n";
    }
  });
  return script;
}

}  // namespace sordino
