// Tensors that a script makes, and writes values of a record into:
//
//   y = torch.zeros(x.size(0), 8)
//   y[:, :4] = self.first(x)
//
// What is made of sizes alone is the same for all units of an isolated pass, and nothing of a unit
// can be written to it (isolation.h). Here each unit gets its own. Which ones these are follows
// from the graph: values of records come from its data inputs and from random numbers.
#ifndef SORDINO_GRADIENTS_INTERNAL_ISOLATION_OWN_TENSORS_H_
#define SORDINO_GRADIENTS_INTERNAL_ISOLATION_OWN_TENSORS_H_

#include <cstddef>
#include <memory>

namespace torch::jit {
struct Graph;
}  // namespace torch::jit

namespace sordino {

// The first `data_inputs` inputs of the graph hold data. Tensors that the script did not make in
// the call (buffers, constants, parameters) stay as they are.
void MakeOwnTensors(const std::shared_ptr<torch::jit::Graph>& graph, std::size_t data_inputs);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_ISOLATION_OWN_TENSORS_H_
