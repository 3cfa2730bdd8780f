#include "sordino/cli/help_page.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <memory>

namespace sordino {
namespace {

constexpr std::size_t kColumnWidth = 34;

struct CommandGroup {
  std::string_view title;
  std::array<std::string_view, 6> commands;  // in their order; the rest is empty
};

constexpr std::array<CommandGroup, 5> kCommandGroups = {{
    {"Models and statistics", {"train", "fit", "tune", "predict", "data", "release"}},
    {"Budgets", {"ledger", "account", "calibrate", "sensitivity"}},
    {"What came out", {"report", "audit"}},
    {"Research", {"plan", "kernel", "experiment", "bench"}},
    {"Help", {"help", "completion", "manual"}},
}};

// Headings in the order in which people need them; those that are not here come behind them, and
// that of CLI11 ("Options", which has --help) last.
constexpr std::array<std::string_view, 7> kHeadings = {"Data",     "Privacy", "Model", "Method",
                                                       "Training", "Tries",   "Run"};
constexpr std::string_view kLastHeading = "Options";

struct PageFlags {
  std::string_view command;
  std::array<std::string_view, 24> flags;  // in any order; the rest is empty
};

constexpr std::array<PageFlags, 7> kPages = {{
    {"train",
     {"--config",     "--schema", "--columns", "--shape",  "--resize",        "--class-names",
      "--vocabulary", "--length", "--records", "--test",   "--rows-per-user", "--epsilon",
      "--delta",      "--clip",   "--model",   "--script", "--batch",         "--epochs",
      "--lr",         "--out",    "--ledger",  "--resume", "--dry-run",       "--json"}},
    {"tune", {"--config", "--schema",        "--columns", "--shape",   "--class-names", "--records",
              "--test",   "--rows-per-user", "--epsilon", "--delta",   "--clip",        "--model",
              "--script", "--batch",         "--epochs",  "--lr",      "--try",         "--tries",
              "--select", "--out",           "--ledger",  "--dry-run", "--json"}},
    {"fit",
     {"--schema", "--columns", "--records", "--test", "--rows-per-user", "--epsilon", "--delta",
      "--ledger", "--model", "--out", "--non-private", "--baseline", "--dry-run", "--json"}},
    {"predict",
     {"--out", "--probabilities", "--threshold", "--id", "--public-labels", "--force", "--json",
      "--labels"}},
    {"data",
     {"--schema", "--columns", "--shape", "--resize", "--class-names", "--vocabulary", "--length",
      "--test", "--rows-per-user", "--declare", "--declaration", "--picture", "--formats",
      "--json"}},
    {"kernel",
     {"--schema", "--columns", "--shape", "--class-names", "--public-data", "--model", "--clip",
      "--clipping", "--examples", "--picture", "--json"}},
    {"audit membership",
     {"--members", "--others", "--labels", "--other-labels", "--shadows", "--picture", "--json"}},
}};

std::string WholeName(const CLI::App& command) {
  const CLI::App* const above = command.get_parent();
  if (above == nullptr || above->get_parent() == nullptr) return command.get_name();
  return WholeName(*above) + ' ' + command.get_name();
}

const PageFlags* PageOf(const CLI::App& command) {
  const std::string name = WholeName(command);
  const auto* const found = std::find_if(
      kPages.begin(), kPages.end(), [&](const PageFlags& page) { return page.command == name; });
  return found == kPages.end() ? nullptr : found;
}

bool IsOn(const PageFlags& page, const CLI::Option& option) {
  return std::any_of(page.flags.begin(), page.flags.end(), [&](std::string_view flag) {
    return !flag.empty() && option.check_lname(std::string(flag.substr(2)));
  });
}

std::size_t PlaceOfHeading(std::string_view heading) {
  if (heading == kLastHeading) return kHeadings.size() + 1;
  return static_cast<std::size_t>(std::find(kHeadings.begin(), kHeadings.end(), heading) -
                                  kHeadings.begin());
}

class PageFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    return make_description(app) + make_usage(app, std::move(name)) + make_positionals(app) +
           FlagsOf(app, mode) + make_subcommands(app, mode) + '\n' + make_footer(app);
  }
  // Commands are listed, never written out.
  std::string make_subcommands(const CLI::App* app, CLI::AppFormatMode mode) const override {
    static_cast<void>(mode);
    if (app->get_parent() != nullptr) {
      return CLI::Formatter::make_subcommands(app, CLI::AppFormatMode::Normal);
    }
    std::string text;
    const auto add = [&](std::string_view title, const std::vector<const CLI::App*>& commands) {
      if (commands.empty()) return;
      text += fmt::format("\n{}:\n", title);
      for (const CLI::App* command : commands) text += make_subcommand(command);
    };
    const std::vector<const CLI::App*> others = app->get_subcommands([](const CLI::App* command) {
      return PlaceOfCommand(command->get_name()) == PlaceOfCommand("");
    });
    for (const CommandGroup& group : kCommandGroups) {
      std::vector<const CLI::App*> commands;
      for (const std::string_view name : group.commands) {
        for (const CLI::App* command : app->get_subcommands([&](const CLI::App* candidate) {
               return !name.empty() && candidate->get_name() == name;
             })) {
          commands.push_back(command);
        }
      }
      add(group.title, commands);
    }
    add("Others", others);
    return text;
  }

 private:
  std::string FlagsOf(const CLI::App* app, CLI::AppFormatMode mode) const {
    const PageFlags* const page = mode == CLI::AppFormatMode::Normal ? PageOf(*app) : nullptr;
    std::vector<std::string> headings = app->get_groups();
    std::stable_sort(headings.begin(), headings.end(), [](const auto& a, const auto& b) {
      return PlaceOfHeading(a) < PlaceOfHeading(b);
    });
    std::size_t left_out = 0;
    std::string text;
    for (const std::string& heading : headings) {
      if (heading.empty()) continue;
      std::vector<const CLI::Option*> shown;
      for (const CLI::Option* option : app->get_options([&](const CLI::Option* candidate) {
             return candidate->get_group() == heading && candidate->nonpositional();
           })) {
        const bool is_help = option == app->get_help_ptr() || option == app->get_help_all_ptr();
        if (page == nullptr || is_help || IsOn(*page, *option)) {
          shown.push_back(option);
        } else {
          ++left_out;
        }
      }
      if (shown.empty()) continue;
      text += make_group(heading, false, shown);
    }
    if (left_out > 0) {
      text += fmt::format("\n{} more flags: sordino {} --help-all\n", left_out, WholeName(*app));
    }
    return text;
  }
};

}  // namespace

void UseHelpPages(CLI::App& app) {
  app.formatter(std::make_shared<PageFormatter>());
  app.get_formatter()->column_width(kColumnWidth);
  app.set_help_flag("-h,--help", "What people need first, with examples");
  app.set_help_all_flag("--help-all", "Every flag");
}

std::vector<std::pair<std::string_view, std::string_view>> FlagsOfHelpPages() {
  std::vector<std::pair<std::string_view, std::string_view>> flags;
  for (const PageFlags& page : kPages) {
    for (const std::string_view flag : page.flags) {
      if (!flag.empty()) flags.emplace_back(page.command, flag);
    }
  }
  return flags;
}

std::size_t PlaceOfCommand(std::string_view name) {
  std::size_t place = 0;
  for (const CommandGroup& group : kCommandGroups) {
    for (const std::string_view known : group.commands) {
      if (!known.empty() && known == name) return place;
      ++place;
    }
  }
  return place;
}

}  // namespace sordino
