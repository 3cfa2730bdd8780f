// Changes to the code of a script, so that it can run isolated (isolation.h).
//
//   x.bernoulli_(p), uniform_, normal_, exponential_   the same out of place: in place, a tensor
//   that
//                                                      all examples share would hold one draw
//   empty, empty_like, new_empty                       zeros: memory that was not written holds
//   what
//                                                      others left there
#ifndef SORDINO_GRADIENTS_INTERNAL_ISOLATION_SCRIPT_REWRITING_H_
#define SORDINO_GRADIENTS_INTERNAL_ISOLATION_SCRIPT_REWRITING_H_

namespace torch::jit {
struct Module;
}  // namespace torch::jit

namespace sordino {

// Rewrites all methods of a module and of the modules in it, and the functions that they call.
// Throws Error for code that writes to files or reads memory that it did not write in another way.
void RewriteForIsolation(const torch::jit::Module& module);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_ISOLATION_SCRIPT_REWRITING_H_
