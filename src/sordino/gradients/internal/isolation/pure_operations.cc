#include "sordino/gradients/internal/isolation/pure_operations.h"

#include <ATen/core/jit_type.h>

#include <algorithm>
#include <unordered_set>

namespace sordino {
namespace {

// Elementwise functions, comparisons and arithmetic, of tensors and of numbers.
constexpr std::string_view kElementwise =
    "abs absolute acos acosh add addcdiv addcmul angle arccos arccosh arcsin arcsinh arctan "
    "arctan2 "
    "arctanh asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_not bitwise_or "
    "bitwise_right_shift bitwise_xor ceil celu clamp clamp_max clamp_min clip clone complex conj "
    "conj_physical copysign cos cosh deg2rad detach digamma div divide elu eq erf erfc erfinv exp "
    "exp2 expm1 fake_quantize_per_channel_affine fake_quantize_per_tensor_affine fill fix "
    "float_power floor floor_divide fmax fmin fmod frac gcd ge gelu glu greater greater_equal gt "
    "hardshrink hardsigmoid hardswish hardtanh heaviside hypot i0 igamma igammac imag isclose "
    "isfinite isin isinf isnan isneginf isposinf isreal lcm ldexp le leaky_relu lerp less "
    "less_equal lgamma log log10 log1p log2 log_sigmoid logaddexp logaddexp2 logical_and "
    "logical_not logical_or logical_xor logit lt masked_fill maximum minimum mish mul multiply "
    "mvlgamma nan_to_num ne neg negative nextafter not_equal polar polygamma positive pow prelu "
    "rad2deg real reciprocal relu relu6 remainder round rsqrt rsub selu sgn sigmoid sign signbit "
    "silu sin sinc sinh softplus softshrink special_digamma special_entr special_erf special_erfc "
    "special_erfcx special_erfinv special_exp2 special_expit special_expm1 special_gammainc "
    "special_gammaincc special_gammaln special_i0 special_i0e special_i1 special_i1e special_log1p "
    "special_log_ndtr special_logit special_multigammaln special_ndtr special_ndtri "
    "special_polygamma special_psi special_round special_sinc special_xlog1py special_xlogy "
    "special_zeta sqrt square sub subtract tan tanh threshold true_divide trunc view_as_complex "
    "view_as_real where xlogy zero __and__ __or__ __xor__ __lshift__ __rshift__ __iand__ __ior__ "
    "__ixor__ __ilshift__ __irshift__ resolve_conj resolve_neg _conj _neg_view frexp";

// Reductions, orders, and what moves entries.
constexpr std::string_view kShapes =
    "adjoint alias all amax amin aminmax any argmax argmin argsort argwhere atleast_1d atleast_2d "
    "atleast_3d bincount block_diag broadcast_tensors broadcast_to bucketize cartesian_prod cat "
    "channel_shuffle chunk col2im column_stack combinations concat concatenate constant_pad_nd "
    "contiguous copy corrcoef count_nonzero cov cummax cummin cumprod cumsum cumulative_trapezoid "
    "diag diag_embed diagflat diagonal diagonal_scatter diff dsplit dstack expand expand_as "
    "fill_diagonal flatten flip fliplr flipud gather gradient histc histogram hsplit hstack im2col "
    "index index_add index_copy index_fill index_put index_reduce index_select kthvalue "
    "logcumsumexp logsumexp masked_scatter masked_select max mean median meshgrid min mode "
    "moveaxis "
    "movedim msort nanmean nanmedian nanquantile nansum narrow narrow_copy native_channel_shuffle "
    "nonzero nonzero_numpy numpy_T one_hot pad pad_sequence permute pixel_shuffle pixel_unshuffle "
    "prod put quantile ravel reflection_pad1d reflection_pad2d reflection_pad3d renorm repeat "
    "repeat_interleave replication_pad1d replication_pad2d replication_pad3d reshape reshape_as "
    "roll rot90 row_stack scatter scatter_add scatter_reduce searchsorted select select_scatter "
    "slice slice_scatter sort special_logsumexp split split_with_sizes squeeze stack std std_mean "
    "sum sum_to_size swapaxes swapdims t take take_along_dim tensor_split tile topk trace "
    "transpose "
    "trapezoid trapz tril triu unbind unflatten unfold unique_consecutive unique_dim "
    "unique_dim_consecutive unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze vander var "
    "var_mean view view_as vsplit vstack mH mT matrix_H _unique2 _unsafe_index _unsafe_index_put";

constexpr std::string_view kLayers =
    "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d "
    "adaptive_max_pool2d adaptive_max_pool3d affine_grid_generator avg_pool1d avg_pool2d "
    "avg_pool3d "
    "batch_norm bilinear binary_cross_entropy binary_cross_entropy_with_logits conv1d conv2d "
    "conv3d "
    "conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution cosine_embedding_loss "
    "cosine_similarity cross_entropy_loss ctc_loss embedding embedding_bag grid_sampler "
    "grid_sampler_2d grid_sampler_3d group_norm gru gru_cell hinge_embedding_loss huber_loss "
    "instance_norm kl_div l1_loss layer_norm linear log_softmax lstm lstm_cell margin_ranking_loss "
    "max_pool1d max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d "
    "max_pool3d_with_indices max_unpool2d max_unpool3d mse_loss multi_margin_loss "
    "multilabel_margin_loss native_group_norm native_layer_norm nll_loss nll_loss2d nll_loss_nd "
    "norm_except_dim pairwise_distance poisson_nll_loss rms_norm rnn_relu rnn_relu_cell rnn_tanh "
    "rnn_tanh_cell scaled_dot_product_attention smooth_l1_loss soft_margin_loss softmax "
    "special_log_softmax special_softmax triplet_margin_loss upsample_bicubic2d "
    "upsample_bilinear2d "
    "upsample_linear1d upsample_nearest1d upsample_nearest2d upsample_nearest3d "
    "upsample_trilinear3d "
    "_convolution _convolution_mode _log_softmax _softmax _pack_padded_sequence "
    "_pad_packed_sequence _weight_norm "
    "_weight_norm_interface _native_multi_head_attention _transformer_encoder_layer_fwd "
    "_nested_tensor_from_mask _nested_tensor_from_mask_left_aligned to_padded_tensor "
    "_upsample_bicubic2d_aa _upsample_bilinear2d_aa _upsample_nearest_exact1d "
    "_upsample_nearest_exact2d _upsample_nearest_exact3d __interpolate __upsample "
    "__upsample_bilinear __upsample_nearest _adaptive_avg_pool2d";

constexpr std::string_view kAlgebra =
    "addbmm addmm addmv addr baddbmm bmm cdist chain_matmul cholesky cholesky_inverse "
    "cholesky_solve cross det dist dot einsum fft_fft fft_fft2 fft_fftfreq fft_fftn fft_fftshift "
    "fft_hfft fft_hfft2 fft_hfftn fft_ifft fft_ifft2 fft_ifftn fft_ifftshift fft_ihfft fft_ihfft2 "
    "fft_ihfftn fft_irfft fft_irfft2 fft_irfftn fft_rfft fft_rfft2 fft_rfftfreq fft_rfftn "
    "frobenius_norm ger inner inverse istft kron linalg_cholesky linalg_cond linalg_cross "
    "linalg_det "
    "linalg_diagonal linalg_eig linalg_eigh linalg_eigvals linalg_eigvalsh "
    "linalg_householder_product linalg_inv linalg_lu linalg_lu_factor linalg_lu_solve "
    "linalg_matmul "
    "linalg_matrix_exp linalg_matrix_norm linalg_matrix_power linalg_matrix_rank linalg_multi_dot "
    "linalg_norm linalg_pinv linalg_qr linalg_slogdet linalg_solve linalg_solve_triangular "
    "linalg_svd linalg_svdvals linalg_tensorinv linalg_tensorsolve linalg_vander linalg_vecdot "
    "linalg_vector_norm logdet lu_solve matmul matrix_exp matrix_power mm mv norm nuclear_norm "
    "outer "
    "pdist pinverse qr slogdet stft svd tensordot triangular_solve vdot";

// New tensors, and random numbers from libtorch's default generators (isolation.h draws them for
// each unit apart).
constexpr std::string_view kNew =
    "arange bartlett_window blackman_window eye full full_like hamming_window hann_window "
    "kaiser_window linspace logspace new_full new_ones new_zeros ones ones_like range "
    "scalar_tensor "
    "tensor as_tensor tril_indices triu_indices zeros zeros_like _list_to_tensor _shape_as_tensor "
    "alpha_dropout bernoulli binomial cauchy dropout exponential feature_alpha_dropout "
    "feature_dropout fractional_max_pool2d fractional_max_pool3d geometric log_normal multinomial "
    "native_dropout normal normal_functional poisson rand rand_like randint randint_like randn "
    "randn_like random randperm rrelu uniform";

// Types, sizes, numbers, strings, lists and dictionaries.
constexpr std::string_view kValues =
    "can_cast cpu cuda device dim element_size get_device is_complex is_floating_point "
    "is_same_size "
    "is_signed item len numel promote_types result_type size to type_as Bool Complex "
    "ComplexImplicit "
    "Float FloatImplicit Int IntImplicit ScalarImplicit is_nonzero _cast_Byte _cast_Char "
    "_cast_Double _cast_Float _cast_Half _cast_Int _cast_Long _cast_Short _tensor_to_list "
    "_infer_size __derive_index __range_length __round_to_zero_floordiv __is__ __isnot__ __not__ "
    "__contains__ __getitem__ _unwrap_optional _get_tracing_state is_scripting has_torch_function "
    "is_grad_enabled set_grad_enabled is_autocast_enabled is_autocast_cpu_enabled append clear "
    "count "
    "dict extend get insert items keys list pop popitem remove reverse setdefault sorted update "
    "values Delete _set_item degrees divmod fabs factorial floordiv gamma mathremainder modf "
    "radians "
    "bin capitalize center chr endswith expandtabs find format hex isalnum isalpha isdecimal "
    "isdigit "
    "isidentifier islower isnumeric isprintable isspace istitle isupper join ljust lower lstrip "
    "oct "
    "ord partition percentFormat replace rfind rindex rjust rpartition rsplit rstrip splitlines "
    "startswith str strip swapcase title upper zfill";

constexpr std::string_view kPrimitives =
    "Constant If Loop ListConstruct ListUnpack TupleConstruct TupleIndex TupleSlice TupleUnpack "
    "DictConstruct NumToTensor RaiseException StringIndex Uninitialized EnumName EnumValue "
    "CreateObject GetAttr SetAttr abs annotate device dtype index is_cpu is_cuda is_ipu is_maia "
    "is_meta is_mkldnn is_mps is_mtia is_nested is_quantized is_sparse is_sparse_csr is_vulkan "
    "is_xla is_xpu isinstance itemsize layout max min rangelist requires_grad tolist type "
    "unchecked_cast "
    "unchecked_unwrap_optional";

using NameSet = std::unordered_set<std::string_view>;

void AddNames(std::string_view list, NameSet& names) {
  while (!list.empty()) {
    const std::size_t end = list.find(' ');
    names.insert(list.substr(0, end));
    list = end == std::string_view::npos ? std::string_view() : list.substr(end + 1);
  }
}

const NameSet& TensorNames() {
  static const NameSet all = [] {
    NameSet names;
    for (const auto list : {kElementwise, kShapes, kLayers, kAlgebra, kNew, kValues}) {
      AddNames(list, names);
    }
    return names;
  }();
  return all;
}

const NameSet& PrimitiveNames() {
  static const NameSet all = [] {
    NameSet names;
    AddNames(kPrimitives, names);
    return names;
  }();
  return all;
}

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

bool IsPureOperation(std::string_view kind) {
  const std::size_t colons = kind.find("::");
  if (colons == std::string_view::npos) return false;
  const std::string_view space = kind.substr(0, colons);
  std::string_view name = kind.substr(colons + 2);
  if (space == "prim") return PrimitiveNames().contains(name);
  if (space != "aten") return false;
  if (TensorNames().contains(name)) return true;
  // In place. detach_ changes a flag of the tensor, which is no value.
  if (name == "detach_" || !name.ends_with('_')) return false;
  name.remove_suffix(1);
  return TensorNames().contains(name);
}

std::string WayOutOf(std::string_view kind) {
  if (Has(kind, "empty") || Has(kind, "resize")) return "make the tensor with zeros or full";
  if (Has(kind, "stride") || Has(kind, "storage") || Has(kind, "contiguous")) {
    return "use sizes instead of strides, and reshape, unfold or slices instead of as_strided";
  }
  if (Has(kind, "seed") || Has(kind, "enerator")) {
    return "leave seeds and generators out: random numbers are drawn for each example apart";
  }
  if (Has(kind, "file") || Has(kind, "save")) return "give what it reads as a buffer";
  if (Has(kind, "set_data") || Has(kind, "requires_grad") || Has(kind, "detach_")) {
    return "leave the parameters to the optimizer, and use detach for a value without a gradient";
  }
  if (Has(kind, "backward") || Has(kind, "grad")) return "leave derivatives to the training";
  if (Has(kind, "batch_norm")) return "use batch_norm in evaluation mode, or group norm";
  if (Has(kind, "equal") || Has(kind, "allclose")) return "compare tensors with eq";
  if (Has(kind, "Call")) return "call methods of modules and classes directly, not by an interface";
  if (Has(kind, "packed_sequence") || Has(kind, "pack_padded")) {
    return "run the layer on the padded sequence, and choose the steps that count with a mask";
  }
  if (Has(kind, "bincount") || Has(kind, "histogram")) return "count with one_hot and a sum";
  if (Has(kind, "grouped_mm")) return "multiply by all matrices, and choose with a mask";
  return "write it with other operations";
}

bool IsScriptData(const c10::TypePtr& type, bool with_tensors) {
  switch (type->kind()) {
    case c10::TypeKind::TensorType:
      return with_tensors;
    case c10::TypeKind::IntType:
    case c10::TypeKind::FloatType:
    case c10::TypeKind::ComplexType:
    case c10::TypeKind::NumberType:
    case c10::TypeKind::BoolType:
    case c10::TypeKind::StringType:
    case c10::TypeKind::NoneType:
    case c10::TypeKind::DeviceObjType:
    case c10::TypeKind::EnumType:
      return true;
    case c10::TypeKind::ListType:
    case c10::TypeKind::DictType:
    case c10::TypeKind::TupleType:
    case c10::TypeKind::OptionalType:
    case c10::TypeKind::UnionType: {
      const auto inner = type->containedTypes();
      return std::all_of(inner.begin(), inner.end(), [&](const c10::TypePtr& each) {
        return IsScriptData(each, with_tensors);
      });
    }
    default:
      return false;
  }
}

}  // namespace sordino
