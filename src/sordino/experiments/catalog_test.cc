#include "sordino/experiments/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sordino/base/error.h"

namespace sordino {
namespace {

// Both forms can be read, and each says what a list of them shows.
TEST(Catalog, EveryExperimentIsComplete) {
  EXPECT_FALSE(ExperimentCatalog().empty());
  for (const CatalogEntry& entry : ExperimentCatalog()) {
    SCOPED_TRACE(entry.name);
    for (const bool quick : {false, true}) {
      const Experiment experiment = FindExperiment(std::string(entry.name), quick);
      EXPECT_EQ(experiment.name, entry.name);
      EXPECT_NE(experiment.title, experiment.name);
      EXPECT_NE(experiment.source, "");
      EXPECT_NE(experiment.about, "");
      EXPECT_NE(experiment.document, "");
      EXPECT_NE(experiment.differs, "");
      EXPECT_GT(experiment.minutes, 0);
      EXPECT_FALSE(experiment.pictures.empty());
      if (quick) {
        EXPECT_LE(experiment.minutes, 2);
      }
    }
  }
}

TEST(Catalog, SuggestsTheNearestName) {
  try {
    FindExperiment("compositon", false);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("did you mean 'composition'"));
  }
  EXPECT_THROW(FindExperiment("gone.toml", false), Error);
  EXPECT_THROW(FindExperiment("./composition", false), Error);
}

}  // namespace
}  // namespace sordino
