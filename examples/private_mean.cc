// The mean of four stays in hospital at epsilon 1, and what it cost.
#include <iostream>
#include <vector>

#include "sordino/mechanisms/means.h"

int main() {
  const std::vector<double> days = {2, 5, 3, 11};
  sordino::SecureGenerator generator;
  const sordino::Release mean =
      sordino::PrivateBoundedMean(days, {0, 30}, sordino::Epsilon(1), generator);
  std::cout << mean.value() << " days, between " << mean.interval().lower << " and "
            << mean.interval().upper << "\ncharged as " << mean.event.ToString() << '\n';
}
