#include "sordino/cli/manual.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sordino/base/error.h"
#include "sordino/cli/program.h"

namespace sordino {
namespace {

struct Page {
  std::string name;                  // "sordino-ledger-init"
  std::vector<std::string> command;  // "sordino", "ledger", "init"
  const CommandNode* node = nullptr;
};

void AddPages(const CommandNode& node, std::vector<std::string> command, std::vector<Page>& pages) {
  pages.push_back({fmt::format("{}", fmt::join(command, "-")), command, &node});
  for (const CommandNode& child : node.commands) {
    std::vector<std::string> below = command;
    below.push_back(child.name);
    AddPages(child, std::move(below), pages);
  }
}

std::vector<Page> Pages(const CommandNode& root) {
  std::vector<Page> pages;
  AddPages(root, {"sordino"}, pages);
  return pages;
}

// Hyphens stay hyphens, so that commands can be copied; a line cannot begin a request.
std::string Roff(const std::string& text) {
  std::string escaped;
  bool line_start = true;
  for (const char c : text) {
    if (line_start && (c == '.' || c == '\'')) escaped += "\\&";
    line_start = c == '\n';
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string OptionEntry(const OptionNode& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.names) {
    names.push_back(option.is_place ? "\\fI" + Roff(name) + "\\fR" : "\\fB" + Roff(name) + "\\fR");
  }
  std::string entry = fmt::format(".TP\n{}", fmt::join(names, ", "));
  if (!option.is_place && !option.value.empty()) entry += " \\fI" + Roff(option.value) + "\\fR";
  entry += "\n" + Roff(option.help) + (option.is_required ? " (needed)" : "") + "\n";
  return entry;
}

std::string OptionSections(const CommandNode& node) {
  std::vector<std::string> groups;
  for (const OptionNode& option : node.options) {
    if (std::find(groups.begin(), groups.end(), option.group) == groups.end()) {
      groups.push_back(option.group);
    }
  }
  std::string text;
  for (const std::string& group : groups) {
    text += groups.size() > 1 ? ".SS " + Roff(group) + "\n" : "";
    for (const OptionNode& option : node.options) {
      if (option.group == group) text += OptionEntry(option);
    }
  }
  return text.empty() ? "" : ".SH OPTIONS\n" + text;
}

std::string Synopsis(const Page& page) {
  std::string text = fmt::format(".B {}\n", Roff(fmt::format("{}", fmt::join(page.command, " "))));
  if (!page.node->commands.empty()) return text + "\\fICOMMAND\\fR ...\n";
  for (const OptionNode& option : page.node->options) {
    if (!option.is_place) continue;
    const std::string name = "\\fI" + Roff(option.names.front()) + "\\fR";
    text += option.is_required ? name + " " : "[" + name + "] ";
  }
  return text + "[\\fIoptions\\fR]\n";
}

std::string CommandList(const Page& page) {
  if (page.node->commands.empty()) return "";
  std::string text = ".SH COMMANDS\n";
  for (const CommandNode& child : page.node->commands) {
    text += fmt::format(".TP\n\\fB{}\\fR\n{}\n", Roff(child.name), Roff(child.summary));
  }
  return text;
}

// Lines as they are.
std::string Verbatim(const std::string& text) { return ".nf\n" + Roff(text) + "\n.fi\n"; }

std::string ExitStatus() {
  std::string text = ".SH EXIT STATUS\n";
  for (const auto& [code, meaning] : kExitCodes) {
    text += fmt::format(".TP\n{}\n{}\n", Roff(std::string(code)), Roff(std::string(meaning)));
  }
  return text;
}

}  // namespace

std::vector<std::string> ManualNames(const CommandNode& root) {
  std::vector<std::string> names;
  for (const Page& page : Pages(root)) names.push_back(page.name);
  return names;
}

std::string ManualPage(const CommandNode& root, const std::string& name,
                       const std::string& version) {
  const std::vector<Page> pages = Pages(root);
  const auto page = std::find_if(pages.begin(), pages.end(),
                                 [&](const Page& known) { return known.name == name; });
  if (page == pages.end()) {
    const std::vector<std::string> known = ManualNames(root);
    const std::vector<std::string_view> names(known.begin(), known.end());
    const std::string nearest = NearestName(name, names);
    throw Error(fmt::format("there is no manual page '{}'{}; 'sordino manual' lists them.", name,
                            nearest.empty() ? "" : "; the nearest is '" + nearest + "'"));
  }
  std::string title = page->name;
  std::transform(title.begin(), title.end(), title.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  std::string text = fmt::format(".TH \"{}\" 1 \"\" \"sordino {}\" \"Sordino\"\n", title, version);
  text += fmt::format(".SH NAME\n{} \\- {}\n", Roff(page->name), Roff(page->node->summary));
  text += ".SH SYNOPSIS\n" + Synopsis(*page) + CommandList(*page) + OptionSections(*page->node);
  if (!page->node->footer.empty()) text += ".SH EXAMPLES\n" + Verbatim(page->node->footer);
  text += ExitStatus();
  if (page->command.size() > 1) text += ".SH SEE ALSO\n.BR sordino (1)\n";
  return text;
}

}  // namespace sordino
