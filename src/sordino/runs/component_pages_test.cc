// The pages of docs/ that list components hold what the registries print:
//
//   <!-- components: optimizer -->
//   ... the tables of ComponentList::Page() ...
//   <!-- end of components -->
//
// SORDINO_WRITE_PAGES=1 runs_test --gtest_filter='ComponentPages.*' writes them anew.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "sordino/clipping/clipping_component.h"
#include "sordino/clipping/norms_component.h"
#include "sordino/noise/noise_component.h"
#include "sordino/optimizers/optimizer_component.h"
#include "sordino/sampling/sampler_component.h"
#include "sordino/schedules/schedule_shape.h"

namespace sordino {
namespace {

std::vector<const ComponentList*> AllKinds() {
  return {&Samplers(), &ClippingPolicies(), &NormMethods(),
          &Noises(),   &Optimizers(),       &ScheduleShapes()};
}

std::filesystem::path Docs() {
  const std::filesystem::path source = __FILE__;
  return source.parent_path().parent_path().parent_path().parent_path() / "docs";
}

std::string ContentOf(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream content;
  content << in.rdbuf();
  return content.str();
}

// The page with every block as its registry prints it; the kinds that it holds go into `seen`.
std::string Rewritten(const std::string& page, std::multiset<std::string>& seen) {
  constexpr std::string_view kBegin = "<!-- components: ";
  constexpr std::string_view kEnd = "<!-- end of components -->";
  std::string text;
  std::size_t place = 0;
  while (true) {
    const std::size_t begin = page.find(kBegin, place);
    if (begin == std::string::npos) return text + page.substr(place);
    const std::size_t name = begin + kBegin.size();
    const std::string kind = page.substr(name, page.find(" -->", name) - name);
    const std::size_t end = page.find(kEnd, begin);
    EXPECT_NE(end, std::string::npos) << "the block of '" << kind << "' has no end";
    const auto kinds = AllKinds();
    const auto list = std::find_if(kinds.begin(), kinds.end(),
                                   [&](const ComponentList* k) { return k->kind() == kind; });
    EXPECT_NE(list, kinds.end()) << "no kind of component is called '" << kind << "'";
    if (end == std::string::npos || list == kinds.end()) return page;
    seen.insert(kind);
    text += page.substr(place, page.find('\n', begin) + 1 - place);
    text += "\n" + (*list)->Page() + "\n";
    place = end;
  }
}

TEST(ComponentPages, HoldWhatTheRegistriesPrint) {
  std::multiset<std::string> seen;
  for (const auto& entry : std::filesystem::directory_iterator(Docs())) {
    if (entry.path().extension() != ".md") continue;
    const std::string page = ContentOf(entry.path());
    const std::string rewritten = Rewritten(page, seen);
    if (std::getenv("SORDINO_WRITE_PAGES") != nullptr && page != rewritten) {
      std::ofstream(entry.path(), std::ios::binary) << rewritten;
    } else {
      EXPECT_EQ(page, rewritten) << "SORDINO_WRITE_PAGES=1 runs_test "
                                    "--gtest_filter='ComponentPages.*' writes it anew";
    }
  }
  for (const ComponentList* list : AllKinds()) {
    EXPECT_EQ(seen.count(std::string(list->kind())), 1U) << list->kind();
  }
}

// Flags and keys are made from options, so an option that two kinds have has to be one.
TEST(ComponentOptions, OfAllKindsHaveKeysAndFlagsOfTheirOwn) {
  std::map<std::string_view, const OptionSpec*> keys;
  std::map<std::string_view, const OptionSpec*> flags;
  for (const ComponentList* list : AllKinds()) {
    EXPECT_FALSE(list->names().empty());
    for (const OptionSpec* spec : list->options()) {
      EXPECT_EQ(keys.try_emplace(spec->key, spec).first->second, spec) << spec->key;
      EXPECT_EQ(flags.try_emplace(spec->flag, spec).first->second, spec) << spec->flag;
    }
  }
}

}  // namespace
}  // namespace sordino
