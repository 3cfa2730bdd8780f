// Names that torch/csrc/distributed/c10d/ProcessGroupGloo.hpp points at (cmake/SordinoGloo.cmake).
#pragma once

namespace gloo::transport {

class Device;

class UnboundBuffer {
 public:
  virtual ~UnboundBuffer();
};

}  // namespace gloo::transport
