// How long a calibration takes and whether its answer holds, over random questions: rate 1e-7 to 1,
// steps 1 to 10^8, delta 1e-12 to 1e-3, epsilon 0.01 to 20, all spread evenly over their
// logarithms, solved for the noise of a Poisson-sampled Gaussian under add-remove; or noise 0.3 to
// 20, solved for the steps or the rate.
//
//   calibration_sweep [--questions 110] [--seed 1] [--unknown noise|steps|rate] [--adjacency NAME]
//
// Every answer is asked about again by Account: its upper end may not be above the target. Exit
// code 1 where it is. Questions that take more than 2 seconds of processor time are listed, and so
// are noises that can be lowered by 1 % and still meet the target.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "sordino/accounting/accountant.h"
#include "sordino/accounting/calibration.h"

namespace sordino {
namespace {

double LogUniform(std::mt19937_64& random, double low, double high) {
  const double share = static_cast<double>(random() >> 11) * 0x1p-53;
  return std::exp(std::log(low) + share * (std::log(high) - std::log(low)));
}

double ProcessorSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

Event StepsOf(double rate, double noise, double steps, Adjacency adjacency) {
  const Event step = Event::Gaussian(NoiseMultiplier(noise), adjacency);
  return Event::Repeat(Event::Poisson(SamplingRate(rate), step), static_cast<std::uint64_t>(steps));
}

struct SweepQuestion {
  double rate;
  double noise;
  double steps;
  double epsilon;
  double delta;
};

SweepQuestion RandomQuestion(std::mt19937_64& random) {
  const double rate = LogUniform(random, 1e-7, 1);
  const double noise = LogUniform(random, 0.3, 20);
  const double steps = std::round(LogUniform(random, 1, 1e8));
  const double epsilon = LogUniform(random, 0.01, 20);
  return {rate, noise, steps, epsilon, LogUniform(random, 1e-12, 1e-3)};
}

// The answer, and the event in which the answer is multiplied by a factor.
struct SweepAnswer {
  double value;
  std::function<Event(double)> scaled;
};

std::optional<SweepAnswer> Solve(const SweepQuestion& q, const std::string& unknown,
                                 Adjacency adjacency) {
  const Epsilon epsilon(q.epsilon);
  const Delta delta(q.delta);
  if (unknown == "steps") {
    const auto found = CalibrateSteps(StepsOf(q.rate, q.noise, 1, adjacency), epsilon, delta);
    if (!found) return std::nullopt;
    const auto steps = static_cast<double>(found->steps);
    return SweepAnswer{
        steps, [=](double f) { return StepsOf(q.rate, q.noise, std::ceil(steps * f), adjacency); }};
  }
  if (unknown == "rate") {
    const auto found = CalibrateRate(
        [&](SamplingRate rate) { return StepsOf(rate.value(), q.noise, q.steps, adjacency); },
        epsilon, delta);
    if (!found) return std::nullopt;
    const double rate = found->rate.value();
    return SweepAnswer{rate, [=](double f) {
                         return StepsOf(std::min(1.0, rate * f), q.noise, q.steps, adjacency);
                       }};
  }
  const auto found = CalibrateNoise(
      [&](NoiseMultiplier noise) { return StepsOf(q.rate, noise.value(), q.steps, adjacency); },
      epsilon, delta);
  if (!found) return std::nullopt;
  const double noise = found->noise.value();
  return SweepAnswer{noise,
                     [=](double f) { return StepsOf(q.rate, noise / f, q.steps, adjacency); }};
}

// The number that answers where everything is allowed: the engines have no interval below a noise
// of 0.01, and a calibration says no more than 10^12 steps.
bool AtItsEnd(double value, const std::string& unknown) {
  if (unknown == "steps") return value >= 1e12 || value < 200;
  return unknown == "rate" ? value >= 1 : value < 0.0101;
}

int Sweep(int questions, std::uint64_t seed, const std::string& unknown, Adjacency adjacency) {
  constexpr double kSlow = 2;
  constexpr double kLess = 1.01;
  std::mt19937_64 random(seed);
  std::vector<double> times;
  int slow = 0;
  int broken = 0;
  int loose = 0;
  int none = 0;
  for (int i = 0; i < questions; ++i) {
    const SweepQuestion q = RandomQuestion(random);
    const double start = ProcessorSeconds();
    const auto answer = Solve(q, unknown, adjacency);
    const double took = ProcessorSeconds() - start;
    times.push_back(took);
    const auto say = [&](const char* what, const std::string& event, double value) {
      std::printf("%s: %s, epsilon %.6g, delta %.6g: %.9g, %.2f s\n", what, event.c_str(),
                  q.epsilon, q.delta, value, took);
      std::fflush(stdout);
    };
    if (took > kSlow) ++slow;
    if (!answer) {
      ++none;
      if (took > kSlow) say("slow, no answer", unknown, 0);
      continue;
    }
    const Event event = answer->scaled(1);
    if (took > kSlow) say("slow", event.ToString(), answer->value);
    const double spent = Account(event, Delta(q.delta)).value.upper;
    if (spent > q.epsilon) {
      ++broken;
      say("over the target", event.ToString(), spent);
    }
    if (AtItsEnd(answer->value, unknown)) continue;
    const double more = Account(answer->scaled(kLess), Delta(q.delta)).value.upper;
    if (more <= q.epsilon) {
      ++loose;
      say("not the tightest", event.ToString(), more);
    }
  }
  std::sort(times.begin(), times.end());
  const auto at = [&](double share) {
    return times[static_cast<std::size_t>(share * static_cast<double>(times.size() - 1))];
  };
  std::printf(
      "%d questions: %d above 2 s, %d over the target, %d not the tightest, %d without an "
      "answer\n",
      questions, slow, broken, loose, none);
  std::printf("seconds: median %.3f, 90 %% %.3f, 99 %% %.3f, largest %.3f\n", at(0.5), at(0.9),
              at(0.99), times.back());
  return broken > 0 ? 1 : 0;
}

}  // namespace
}  // namespace sordino

int main(int argc, char** argv) {
  int questions = 110;
  std::uint64_t seed = 1;
  std::string unknown = "noise";
  sordino::Adjacency adjacency = sordino::Adjacency::kAddRemove;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    const std::string value = argv[i + 1];
    if (flag == "--questions") questions = std::atoi(argv[i + 1]);
    if (flag == "--seed") seed = std::strtoull(argv[i + 1], nullptr, 10);
    if (flag == "--unknown") unknown = value;
    if (flag == "--adjacency" && value == "replace-one") {
      adjacency = sordino::Adjacency::kReplaceOne;
    }
  }
  return sordino::Sweep(questions, seed, unknown, adjacency);
}
