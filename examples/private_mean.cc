// The mean length of 1,000 stays in hospital at epsilon 1, and what it cost.
#include <iostream>
#include <vector>

#include "sordino/release.h"

int main() {
  std::vector<double> days;  // made up: 1 to 9 days, 5 on average
  for (int stay = 0; stay < 1000; ++stay) days.push_back(1 + stay % 9);

  sordino::SecureGenerator generator;
  const sordino::Release mean =
      sordino::PrivateBoundedMean(days, {0, 30}, sordino::Epsilon(1), generator);
  std::cout << mean.value() << " days, between " << mean.interval().lower << " and "
            << mean.interval().upper << " at 95 %\ncharged as " << mean.event.ToString() << '\n';
}
