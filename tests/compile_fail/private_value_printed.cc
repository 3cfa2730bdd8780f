// A private value in a log line is a release that nobody charged.
// expect: deleted
#include <iostream>

#include "sordino/gradients/private_value.h"

void Log(const sordino::PrivateValue<double>& loss, double epsilon) {
#ifdef MISTAKE
  std::cerr << "loss " << loss << '\n';
#else
  static_cast<void>(loss);
  std::cerr << "epsilon " << epsilon << '\n';
#endif
}
