// `sordino kernel`: what each kind of clipping does to the tangent kernel of a model.
#ifndef SORDINO_TORCH_CLI_KERNEL_COMMAND_H_
#define SORDINO_TORCH_CLI_KERNEL_COMMAND_H_

namespace CLI {
class App;
}

namespace sordino {

void AddKernelCommand(CLI::App& app);

}  // namespace sordino

#endif  // SORDINO_TORCH_CLI_KERNEL_COMMAND_H_
