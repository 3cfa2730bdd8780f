// A TorchScript file as a model (models/model.h).
//
// The file brings code along that runs when it is opened, so it is opened only when asked for by
// name, never because a file happens to be one.
#ifndef SORDINO_RUNS_INTERNAL_SCRIPT_NETWORK_H_
#define SORDINO_RUNS_INTERNAL_SCRIPT_NETWORK_H_

#include <c10/core/Device.h>

#include <filesystem>
#include <memory>

#include "sordino/models/model.h"

namespace sordino {

// `activation`, `width` and `seed` of the options must be left alone. Throws Error when the file is
// no TorchScript module or does not map a batch of the shape to [n, classes].
std::unique_ptr<Model> OpenScriptNetwork(const std::filesystem::path& file, const ModelShape& shape,
                                         const ModelOptions& options, c10::Device device);

}  // namespace sordino

#endif  // SORDINO_RUNS_INTERNAL_SCRIPT_NETWORK_H_
