"""Mutations of what kernels compute: tools/mutate kernels."""
from mutation import Mutation

PROGRAM = "kernels_test"

MUTATIONS = [
    Mutation("say of padding that it counts", "kernels/padded_words.h",
             "all.mask[at] = at < all.real_units;", "all.mask[at] = at <= all.real_units;",
             "PaddedCopy.CopiesEveryWord"),
    Mutation("add up rows of factor 0", "kernels/internal/row_products.h",
             "if (factor == 0) return 0;", "if (factor < 0) return 0;",
             "RowProducts.EveryEntryIsInOneTileAndIsTheWeightedSum"),
    Mutation("write gradients out in another order than their norms",
             "kernels/fused_plan.cc",
             "  return source.blocks_x == 1 &&\n", "  return source.blocks_x > 0 ||\n",
             "FusedProduct.GradientsAreAddedUpAsTheirNormsAre"),
    Mutation("a kernel releases values without noise", "kernels/noised_tensors.h",
             "static_cast<T>(NoisedValueOf(value, noise, step))",
             "static_cast<T>(NoisedValueOf(value, noise * 0, step))",
             "NoisedTensors.EveryCoordinateGetsItsNoiseOnce"),
    Mutation("a descent takes the value of another coordinate", "kernels/noised_tensors.h",
             "Descend(factors, value, static_cast<T*>(beside[k].parameter) + i,",
             "Descend(factors, value, static_cast<T*>(beside[k].parameter) + i / 2,",
             "NoisedTensors.ADescentIsByTheNoisedValues"),
]
