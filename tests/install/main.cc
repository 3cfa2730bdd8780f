#include <iostream>
#include <vector>

#include "sordino/mechanisms/means.h"

int main() {
  const std::vector<double> ages = {31, 47, 52};
  sordino::SecureGenerator generator;
  const auto mean = sordino::PrivateBoundedMean(ages, {0, 120}, sordino::Epsilon(1), generator);
  std::cout << mean.value() << ' ' << mean.event.Hash() << '\n';
}
