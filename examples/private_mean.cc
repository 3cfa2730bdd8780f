// The mean length of 900 stays in hospital at epsilon 1, and what it cost.
#include <iomanip>
#include <iostream>
#include <vector>

#include "sordino/release.h"

int main() {
  std::vector<double> days;  // made up: stays of 1 to 9 days, 5.00 on average
  for (int stay = 0; stay < 900; ++stay) days.push_back(1 + stay % 9);

  sordino::SecureGenerator generator;
  const sordino::Release mean =
      sordino::PrivateBoundedMean(days, {0, 30}, sordino::Epsilon(1), generator);
  std::cout << std::fixed << std::setprecision(2) << "mean stay " << mean.value()
            << " days; the exact mean is between " << mean.interval().lower << " and "
            << mean.interval().upper << " at 95 %\ncharged as " << mean.event.ToString() << '\n';
}
