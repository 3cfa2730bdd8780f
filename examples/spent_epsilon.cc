// What 10,000 steps of private training spend, and the least noise that meets a budget.
#include <iostream>

#include "sordino/account.h"

int main() {
  const auto training = [](sordino::NoiseMultiplier noise) {
    const auto step = sordino::Event::Gaussian(noise);
    return sordino::Event::Repeat(sordino::Event::Poisson(sordino::SamplingRate(0.01), step),
                                  10000);
  };
  const sordino::Delta delta(1e-5);
  const auto spent = sordino::Account(training(sordino::NoiseMultiplier(4)), delta);
  std::cout << "noise 4 spends epsilon " << spent.value.upper << '\n';
  const auto least = sordino::CalibrateNoise(training, sordino::Epsilon(1), delta);
  if (!least) return 1;
  std::cout << "epsilon 1 needs noise " << least->noise.value() << '\n';
}
