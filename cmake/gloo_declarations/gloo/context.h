// What torch/csrc/distributed/c10d/ProcessGroupGloo.hpp calls of it (cmake/SordinoGloo.cmake).
#pragma once

#include <chrono>

namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

}  // namespace gloo
