#include "sordino/accounting/event.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "sordino/base/error.h"

namespace sordino {
namespace {

Event RandomLeaf(std::mt19937_64& random, Adjacency adjacency) {
  std::uniform_real_distribution<double> exponent(-12, 6);
  const auto positive = [&] { return std::exp(exponent(random)); };
  const auto fraction = [&] { return std::uniform_real_distribution<double>(0.001, 1)(random); };
  const auto small = [&] { return static_cast<std::uint32_t>(2 + random() % 9); };
  switch (random() % 11) {
    case 0:
      return Event::Gaussian(NoiseMultiplier(positive()), adjacency);
    case 1:
      return Event::Laplace(NoiseMultiplier(positive()), adjacency);
    case 2:
      return Event::DiscreteGaussian(positive(), small(), adjacency);
    case 3:
      return Event::DiscreteLaplace(positive(), small(), adjacency);
    case 4:
      return Event::Pure(Epsilon(positive()), adjacency);
    case 5:
      return Event::Approximate(Epsilon(positive()), Delta(fraction()), adjacency);
    case 6:
      return Event::Zcdp(Rho(positive()), adjacency);
    case 7:
      if (adjacency == Adjacency::kAddRemove) return Event::None(adjacency);
      return Event::RandomizedResponse(fraction(), small(), adjacency);
    case 8:
      return Event::Exponential(Epsilon(positive()), adjacency);
    case 9:
      return Event::Tree(NoiseMultiplier(positive()), random() % 1000000 + 1, adjacency);
    default: {
      const double p = fraction();
      return Event::MixtureGaussian(NoiseMultiplier(positive()), {{0, 1 - p}, {positive(), p}},
                                    adjacency);
    }
  }
}

Event RandomEvent(std::mt19937_64& random, Adjacency adjacency, int depth) {
  if (depth == 0 || random() % 4 == 0) return RandomLeaf(random, adjacency);
  const auto rate = [&] {
    return SamplingRate(std::uniform_real_distribution<double>(0, 1)(random));
  };
  switch (random() % 7) {
    case 6:
      if (adjacency == Adjacency::kReplaceOne) return Event::None(adjacency);
      return Event::Allocation(
          random() % 1000 + 1,
          Event::Repeat(Event::Gaussian(NoiseMultiplier(1.5), adjacency), random() % 3));
    case 0:
      return Event::Poisson(rate(), RandomEvent(random, adjacency, depth - 1));
    case 1:
      return Event::Fixed(rate(), RandomEvent(random, adjacency, depth - 1));
    case 2:
      return Event::TruncatedPoisson(random() % 1000 + 1, rate(), random() % 100 + 1,
                                     Event::Gaussian(NoiseMultiplier(1.5), adjacency));
    case 3:
      return Event::Repeat(RandomEvent(random, adjacency, depth - 1), random() % 100);
    default: {
      std::vector<std::pair<Event, std::uint64_t>> children;
      std::vector<Event> parts;
      for (std::uint64_t i = random() % 4; i > 0; --i) {
        parts.push_back(RandomEvent(random, adjacency, depth - 1));
        children.emplace_back(parts.back(), random() % 10000);
      }
      if (random() % 2 == 0) return Event::Parallel(parts, adjacency);
      return Event::Compose(children, adjacency);
    }
  }
}

Adjacency AdjacencyAt(int i) { return static_cast<Adjacency>(i % 3); }

TEST(Event, PrintsAndParsesBackToAnEqualEvent) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 5000; ++i) {
    const Event event = RandomEvent(random, AdjacencyAt(i), 5);
    const std::string text = event.ToString();
    const Event parsed = Event::Parse(text);
    ASSERT_EQ(parsed, event) << text;
    ASSERT_EQ(parsed.ToString(), text);
    ASSERT_EQ(parsed.Hash(), event.Hash());
    ASSERT_EQ(parsed.TotalCount(), event.TotalCount());
  }
}

TEST(Event, ParseOfRandomBytesThrowsErrorOrReturns) {
  std::mt19937_64 random(2);
  int parsed = 0;
  for (int i = 0; i < 50000; ++i) {
    std::string text = RandomEvent(random, AdjacencyAt(i), 3).ToString();
    if (i % 2 == 0) {
      for (std::uint64_t edits = random() % 4 + 1; edits > 0 && !text.empty(); --edits) {
        const std::size_t place = random() % text.size();
        switch (random() % 3) {
          case 0:
            text[place] = static_cast<char>(random() & 0xff);
            break;
          case 1:
            text.erase(place, random() % 5);
            break;
          default:
            text.insert(place, text.substr(random() % text.size(), 7));
        }
      }
    } else {
      for (char& c : text) c = static_cast<char>(random() & 0xff);
      text.insert(0, "add-remove: ");
    }
    try {
      const Event event = Event::Parse(text);
      ASSERT_EQ(Event::Parse(event.ToString()), event) << text;
      ++parsed;
    } catch (const Error&) {
    }
  }
  EXPECT_GT(parsed, 100) << "the mutations leave some texts valid";
  EXPECT_LT(parsed, 40000);
}

TEST(Event, HostileNestingAndHugeCountsAreRefused) {
  std::string deep = "add-remove: ";
  for (int i = 0; i < 200000; ++i) deep += "poisson(0.5, ";
  EXPECT_THROW(Event::Parse(deep), Error);
  std::string closed = "add-remove: ";
  for (int i = 0; i < 70; ++i) closed += "poisson(0.5, ";
  closed += "gaussian(1)" + std::string(70, ')');
  EXPECT_THROW(Event::Parse(closed), Error);
  EXPECT_THROW(Event::Parse("add-remove: 99999999999999999999*gaussian(1)"), Error);
  EXPECT_THROW(Event::Parse("add-remove: compose(4294967296*compose(4294967296*gaussian(1)))"),
               Error);
  EXPECT_THROW(Event::Parse("add-remove: gaussian(1e999)"), Error);
  EXPECT_THROW(Event::Parse("add-remove: gaussian(nan)"), Error);
}

TEST(Event, ErrorsNameThePlaceAndTheRemedy) {
  const auto message = [](std::string_view text) -> std::string {
    try {
      Event::Parse(text);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message("add-remove: gausian(1)").find("character 13"), std::string::npos);
  EXPECT_NE(message("add-remove: gausian(1)").find("'gaussian'"), std::string::npos);
  EXPECT_NE(message("add-remove: gaussian(-1)").find("greater than 0"), std::string::npos);
  EXPECT_NE(message("sideways: gaussian(1)").find("'zero-out'"), std::string::npos);
  EXPECT_NE(message("add-remove: gaussian(1) x").find("remove it"), std::string::npos);
  EXPECT_NE(message("").find("character 1"), std::string::npos);
}

TEST(Event, TextFormIsTheDocumentedOne) {
  const Event sgd =
      Event::Repeat(Event::Poisson(SamplingRate(0.01), Event::Gaussian(NoiseMultiplier(4))), 10000);
  EXPECT_EQ(sgd.ToString(), "add-remove: 10000*poisson(0.01, gaussian(4))");
  const Event mixed =
      Event::Compose({{Event::Laplace(NoiseMultiplier(2), Adjacency::kReplaceOne), 1},
                      {Event::Approximate(Epsilon(0.5), Delta(1e-7), Adjacency::kReplaceOne), 3}});
  EXPECT_EQ(mixed.ToString(), "replace-one: compose(laplace(2), 3*approximate(0.5, 1e-07))");
  EXPECT_EQ(Event::None().ToString(), "add-remove: none");
}

TEST(Event, AnAllocationIsOverGaussianStepsOnly) {
  const Event gaussian = Event::Gaussian(NoiseMultiplier(2));
  const Event epochs = Event::Repeat(Event::Allocation(100, gaussian), 10);
  EXPECT_EQ(epochs.ToString(), "add-remove: 10*allocation(100, gaussian(2))");
  EXPECT_EQ(Event::Parse("add-remove: 10*allocation(100, gaussian(2))"), epochs);
  EXPECT_EQ(Event::Allocation(1, gaussian), gaussian);
  EXPECT_EQ(Event::Allocation(5, Event::None()), Event::None());
  EXPECT_EQ(Event::Allocation(5, Event::Repeat(gaussian, 2)).ToString(),
            "add-remove: allocation(5, 2*gaussian(2))");
  EXPECT_THROW(Event::Allocation(0, gaussian), Error);
  EXPECT_THROW(Event::Allocation(5, Event::Laplace(NoiseMultiplier(2))), Error);
  EXPECT_THROW(Event::Allocation(5, Event::Gaussian(NoiseMultiplier(2), Adjacency::kReplaceOne)),
               Error);
  EXPECT_THROW(Event::Parse("add-remove: allocation(2.5, gaussian(2))"), Error);
  EXPECT_THROW(Event::Parse("replace-one: allocation(2, gaussian(2))"), Error);
}

TEST(Event, HashIsSha256OfTheText) {
  // printf 'add-remove: none' | sha256sum
  EXPECT_EQ(Event::None().Hash(),
            "51dfd0d51da9101d7d77d3896534445382104a5942a213b08517d1353889b9c2");
}

TEST(Event, EqualStepsMergeByHashWhereverTheyStand) {
  std::vector<Event> schedule;
  for (int i = 0; i < 1000; ++i) {
    const double sigma = i % 2 == 0 ? 1.0 : 2.0;
    schedule.push_back(Event::Poisson(SamplingRate(0.01), Event::Gaussian(NoiseMultiplier(sigma))));
  }
  const Event event = Event::Compose(schedule);
  ASSERT_EQ(event.Flatten().size(), 2U);
  EXPECT_EQ(event.Flatten()[0].second, 500U);
  EXPECT_EQ(event.Flatten()[1].second, 500U);
  EXPECT_EQ(event.TotalCount(), 1000U);
  EXPECT_EQ(event.ToString(),
            "add-remove: compose(500*poisson(0.01, gaussian(1)), 500*poisson(0.01, gaussian(2)))");
}

TEST(Event, NestedCompositionsFlattenAndCountsMultiply) {
  const Event inner = Event::Compose(
      {{Event::Gaussian(NoiseMultiplier(1)), 2}, {Event::Laplace(NoiseMultiplier(1)), 3}});
  const Event outer = Event::Compose({{inner, 5}, {Event::Gaussian(NoiseMultiplier(1)), 7}});
  ASSERT_EQ(outer.Flatten().size(), 2U);
  EXPECT_EQ(outer.Flatten()[0].second, 17U);
  EXPECT_EQ(outer.Flatten()[1].second, 15U);
  for (const auto& [event, count] : outer.Flatten()) {
    EXPECT_FALSE(event.IsComposition());
  }
}

TEST(Event, TrivialCompositionsCollapse) {
  const Event gaussian = Event::Gaussian(NoiseMultiplier(1));
  EXPECT_EQ(Event::Repeat(gaussian, 1), gaussian);
  EXPECT_EQ(Event::Repeat(gaussian, 0), Event::None());
  EXPECT_EQ(Event::Compose(std::vector<Event>{}), Event::None());
  EXPECT_EQ(Event::Parallel({gaussian, gaussian}), gaussian);
  EXPECT_EQ(Event::Poisson(SamplingRate(0.5), Event::None()), Event::None());
  EXPECT_TRUE(Event::None().Flatten().empty());
  EXPECT_EQ(Event::None().TotalCount(), 0U);
}

TEST(Event, TotalCountSaturates) {
  const Event many = Event::Repeat(Event::Gaussian(NoiseMultiplier(1)), UINT64_MAX);
  const Event sampled = Event::Poisson(SamplingRate(0.5), many);
  EXPECT_EQ(Event::Repeat(sampled, 3).TotalCount(), UINT64_MAX);
  EXPECT_THROW(Event::Repeat(many, 2), Error);
}

TEST(Event, DifferentAdjacenciesDoNotCombine) {
  const Event add = Event::Gaussian(NoiseMultiplier(1), Adjacency::kAddRemove);
  const Event replace = Event::Gaussian(NoiseMultiplier(1), Adjacency::kReplaceOne);
  EXPECT_FALSE(add == replace);
  EXPECT_NE(add.Hash(), replace.Hash());
  EXPECT_THROW(Event::Compose({add, replace}), Error);
  EXPECT_THROW(Event::Parallel({add, replace}), Error);
  EXPECT_THROW(Event::Compose({replace}, Adjacency::kAddRemove), Error);
  EXPECT_EQ(Event::Compose({replace, replace}).adjacency(), Adjacency::kReplaceOne);
}

TEST(Event, BadNumbersAreRefused) {
  EXPECT_THROW(Event::Gaussian(NoiseMultiplier(0)), Error);
  EXPECT_THROW(Event::DiscreteGaussian(-1, 1), Error);
  EXPECT_THROW(Event::DiscreteGaussian(1, 0), Error);
  EXPECT_THROW(Event::DiscreteLaplace(std::nan(""), 1), Error);
  EXPECT_THROW(Event::RandomizedResponse(0, 4), Error);
  EXPECT_THROW(Event::RandomizedResponse(0.5, 1), Error);
  EXPECT_THROW(Event::RandomizedResponse(0.5, 4, Adjacency::kAddRemove), Error);
  EXPECT_THROW(Event::Tree(NoiseMultiplier(1), 0), Error);
  EXPECT_THROW(Event::MixtureGaussian(NoiseMultiplier(1), {}), Error);
  EXPECT_THROW(Event::MixtureGaussian(NoiseMultiplier(1), {{1, 0.5}}), Error);
  EXPECT_THROW(Event::MixtureGaussian(NoiseMultiplier(1), {{-1, 1}}), Error);
  EXPECT_THROW(Event::TruncatedPoisson(10, SamplingRate(0.1), 2, Event::None()), Error);
  EXPECT_THROW(
      Event::TruncatedPoisson(0, SamplingRate(0.1), 2, Event::Gaussian(NoiseMultiplier(1))), Error);
}

}  // namespace
}  // namespace sordino
