// How some operations run for all units of an isolated pass at once (isolation.h).
//
// libtorch's vmap has rules for most operations. Here are those that it lacks, and those where the
// unit's own batch dimension lets the ordinary operation run on all units together, so that the
// graph, and the time, are those of an ordinary forward pass:
//
//   linear, addmm, group_norm,                    units are merged with the first dimension
//   adaptive_avg_pool2d, cross_entropy_loss,
//   affine_grid_generator, scaled_dot_product_attention
//   lstm, gru, rnn_tanh, rnn_relu, their cells    units are merged with the batch dimension
//   nll_loss, nll_loss2d, nll_loss_nd             written with gather
//   embedding_bag                                 written with embedding
//   _trilinear (bilinear)                         written with products
//   index_put, index_add, ..., histc              isolated_indices.h
//   split, unbind, stack, as_strided              libtorch's rules allow 63 passes in a process
//   equal                                         true for the same memory, whatever its values
//
// Every other operation without a rule that libtorch writes with other operations runs as these,
// and one in place whose form out of place has a rule writes what that gives.
//
// Merging is safe only where an operation treats the entries of the merged dimension independently;
// each of these does. A tensor of another vmap layer than the isolated pass takes libtorch's way.
#ifndef SORDINO_GRADIENTS_INTERNAL_ISOLATION_ISOLATED_OPERATIONS_H_
#define SORDINO_GRADIENTS_INTERNAL_ISOLATION_ISOLATED_OPERATIONS_H_

namespace sordino {

// Adds the rules to libtorch's dispatcher, once in a process.
void RegisterIsolatedOperations();

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_ISOLATION_ISOLATED_OPERATIONS_H_
