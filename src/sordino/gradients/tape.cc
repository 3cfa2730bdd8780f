#include "sordino/gradients/tape.h"

#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/generated/Functions.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <typeindex>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace sordino {
namespace {

namespace ag = torch::autograd;
namespace generated = torch::autograd::generated;

template <typename... Nodes>
std::unordered_set<std::type_index> Types() {
  return {std::type_index(typeid(Nodes))...};
}

// One input, linear, and a gradient that keeps its norm on the way back: what may stand between a
// parameter and its use.
bool IsPathStep(const std::type_index& type) {
  static const auto types =
      Types<generated::TBackward0, generated::TransposeBackward0, generated::PermuteBackward0,
            generated::ViewBackward0, generated::UnsafeViewBackward0,
            generated::ReshapeAliasBackward0, generated::SliceBackward0, generated::SelectBackward0,
            generated::SplitBackward0, generated::SplitWithSizesBackward0,
            generated::UnsafeSplitBackward0, generated::UnsafeSplitWithSizesBackward0,
            generated::UnbindBackward0, generated::SqueezeBackward0, generated::SqueezeBackward1,
            generated::SqueezeBackward2, generated::UnsqueezeBackward0, generated::AliasBackward0,
            generated::CloneBackward0, generated::ToCopyBackward0>();
  return types.contains(type);
}

bool IsExpansion(const std::type_index& type) {
  static const auto types = Types<generated::ExpandBackward0, generated::RepeatBackward0>();
  return types.contains(type);
}

bool MovesRowsByValue(const ag::Node& node, const std::type_index& type, std::int64_t examples) {
  static const auto types =
      Types<generated::IndexBackward0, generated::UnsafeIndexBackward0,
            generated::UnsafeMaskedIndexBackward0,
            generated::UnsafeMaskedIndexPutAccumulateBackward0, generated::IndexPutBackward0,
            generated::UnsafeIndexPutBackward0, generated::IndexPutImplBackward0,
            generated::MaskedSelectBackward0, generated::MaskedScatterBackward0,
            generated::ScatterBackward0, generated::ScatterAddBackward0,
            generated::ScatterReduceBackward0, generated::IndexAddBackward0,
            generated::IndexReduceBackward0, generated::IndexCopyBackward0,
            generated::SortBackward0, generated::SortBackward1, generated::TopkBackward0,
            generated::KthvalueBackward0, generated::TakeBackward0, generated::PutBackward0,
            generated::PackPaddedSequenceBackward0>();
  if (types.contains(type)) return true;
  // A gather along a dimension that cannot hold the examples leaves every row where it is.
  const auto along = [&](std::int64_t dim, c10::SymIntArrayRef sizes) {
    if (sizes.empty()) return false;
    const std::int64_t wrapped = dim < 0 ? dim + static_cast<std::int64_t>(sizes.size()) : dim;
    return sizes[static_cast<std::size_t>(wrapped)].expect_int() % examples == 0;
  };
  if (type == std::type_index(typeid(generated::GatherBackward0))) {
    const auto& gather = static_cast<const generated::GatherBackward0&>(node);
    return along(gather.dim, gather.self_.unpack().sym_sizes());
  }
  if (type == std::type_index(typeid(generated::IndexSelectBackward0))) {
    const auto& select = static_cast<const generated::IndexSelectBackward0&>(node);
    return along(select.dim, select.self_sym_sizes);
  }
  return false;
}

void Append(std::int64_t argument, std::vector<std::int64_t>& topology) {
  topology.push_back(argument);
}

void Append(const std::vector<std::int64_t>& arguments, std::vector<std::int64_t>& topology) {
  topology.insert(topology.end(), arguments.begin(), arguments.end());
}

void Append(const c10::OptionalArray<std::int64_t>& arguments,
            std::vector<std::int64_t>& topology) {
  if (arguments.list) Append(*arguments.list, topology);
}

template <typename Node>
void AppendDims(const ag::Node& node, std::vector<std::int64_t>& topology) {
  const auto& typed = static_cast<const Node&>(node);
  if constexpr (requires { typed.dim; }) Append(typed.dim, topology);
  if constexpr (requires { typed.dims; }) Append(typed.dims, topology);
  if constexpr (requires { typed.dim0; }) Append(typed.dim0, topology);
  if constexpr (requires { typed.dim1; }) Append(typed.dim1, topology);
  if constexpr (requires { typed.dim2; }) Append(typed.dim2, topology);
  if constexpr (requires { typed.dimension; }) Append(typed.dimension, topology);
  if constexpr (requires { typed.shifts; }) {
    for (const auto& shift : typed.shifts) topology.push_back(shift.expect_int());
  }
}

using AppendNodeDims = void (*)(const ag::Node&, std::vector<std::int64_t>&);

template <typename... Nodes>
std::unordered_map<std::type_index, AppendNodeDims> DimsOf() {
  return {{std::type_index(typeid(Nodes)), AppendDims<Nodes>}...};
}

// The dimensions that an operation works along: where two sizes are equal, sizes do not show them,
// and a model that transposes its batch from one step to the next would pass for the same.
void AppendArguments(const ag::Node& node, const std::type_index& type,
                     std::vector<std::int64_t>& topology) {
  static const auto dims = DimsOf<
      generated::TransposeBackward0, generated::PermuteBackward0, generated::MeanBackward1,
      generated::SumBackward1, generated::CatBackward0, generated::StackBackward0,
      generated::FlipBackward0, generated::RollBackward0, generated::SelectBackward0,
      generated::SliceBackward0, generated::UnbindBackward0, generated::SplitBackward0,
      generated::SplitWithSizesBackward0, generated::UnsafeSplitBackward0,
      generated::UnsafeSplitWithSizesBackward0, generated::SqueezeBackward1,
      generated::SqueezeBackward2, generated::UnsqueezeBackward0, generated::SoftmaxBackward0,
      generated::LogSoftmaxBackward0, generated::CumsumBackward0, generated::CumprodBackward0,
      generated::AmaxBackward0, generated::AminBackward0, generated::MaxBackward0,
      generated::MinBackward0, generated::MedianBackward1, generated::StdBackward0,
      generated::VarBackward0, generated::VarMeanBackward0, generated::StdMeanBackward0,
      generated::LinalgVectorNormBackward0, generated::NormBackward1, generated::LogsumexpBackward0,
      generated::ProdBackward1, generated::UnfoldBackward0, generated::DiagonalBackward0,
      generated::TopkBackward0, generated::SortBackward0, generated::GatherBackward0,
      generated::IndexSelectBackward0, generated::GluBackward0>();
  if (const auto found = dims.find(type); found != dims.end()) found->second(node, topology);
}

class Reader {
 public:
  Reader(const std::vector<NamedParameter>& parameters, const std::vector<bool>& in_path,
         std::int64_t examples)
      : in_path_(in_path), examples_(examples) {
    for (std::size_t k = 0; k < parameters.size(); ++k) {
      parameter_of_[parameters[k].value.unsafeGetTensorImpl()] = k;
    }
  }

  Tape Read(const at::Tensor& losses) {
    Enter(losses.grad_fn());
    // A walk by hand: recurrent models have graphs deeper than the stack.
    while (!stack_.empty()) {
      const auto [node, edge] = stack_.back();
      const ag::edge_list& edges = tape_.nodes[node]->next_edges();
      if (edge == edges.size()) {
        stack_.pop_back();
        if (!stack_.empty()) Mark(stack_.back().first, node);
        continue;
      }
      ++stack_.back().second;
      Follow(node, edge, edges[edge]);
    }
    tape_.consumers.resize(tape_.nodes.size());
    return std::move(tape_);
  }

 private:
  // What lies behind an edge that leads to a parameter only.
  struct Origin {
    std::size_t parameter;
    std::vector<PathStep> path;
  };

  void Enter(const TapeNode& node) {
    const std::type_index type(typeid(*node));
    index_[node.get()] = tape_.nodes.size();
    stack_.emplace_back(tape_.nodes.size(), 0);
    tape_.nodes.push_back(node);
    tape_.leads_to_use.push_back(false);
    tape_.topology.push_back(static_cast<std::int64_t>(type.hash_code()));
    AppendArguments(*node, type, tape_.topology);
    for (std::uint32_t k = 0; k < node->num_inputs(); ++k) {
      const auto& metadata = node->input_metadata(k);
      if (metadata.was_default_constructed()) continue;
      const auto sizes = metadata.shape_as_dim_vector();
      tape_.topology.push_back(static_cast<std::int64_t>(sizes.size()));
      for (const auto& size : sizes) tape_.sizes.push_back(size.expect_int());
    }
    tape_.moves_rows_by_value |= MovesRowsByValue(*node, type, examples_);
  }

  void Mark(std::size_t parent, std::size_t child) {
    if (tape_.leads_to_use[child] || uses_a_parameter_.contains(child)) {
      tape_.leads_to_use[parent] = true;
    }
  }

  void Follow(std::size_t node, std::size_t slot, const ag::Edge& edge) {
    if (!edge.is_valid()) return;
    if (const auto origin = OriginOf(edge)) {
      tape_.topology.push_back(-2 - static_cast<std::int64_t>(origin->parameter));
      ParameterUse use{
          origin->parameter, node, slot, origin->path, OutputSizes(*edge.function, edge.input_nr),
          std::nullopt};
      if (const auto expansion = expansion_.find(tape_.nodes[node].get());
          expansion != expansion_.end()) {
        use.expansion = expansion->second;
      }
      tape_.uses.push_back(std::move(use));
      uses_a_parameter_.insert(node);
      return;
    }
    if (IsLeaf(*edge.function)) return;
    // A lookup in a table that is no parameter takes rows of data by the values of an index.
    const ag::Node& user = *tape_.nodes[node];
    if (typeid(user) == typeid(generated::EmbeddingBackward0)) tape_.moves_rows_by_value = true;
    const auto known = index_.find(edge.function.get());
    const std::size_t child = known == index_.end() ? tape_.nodes.size() : known->second;
    tape_.topology.push_back(-1);
    tape_.topology.push_back(static_cast<std::int64_t>(child));
    if (tape_.consumers.size() <= child) tape_.consumers.resize(child + 1);
    tape_.consumers[child].push_back(node);
    if (known == index_.end()) {
      Enter(edge.function);
    } else {
      Mark(node, child);
    }
  }

  static bool IsLeaf(const ag::Node& node) { return typeid(node) == typeid(ag::AccumulateGrad); }

  std::optional<Origin> OriginOf(const ag::Edge& edge) {
    std::vector<PathStep> path;
    ag::Edge at = edge;
    while (at.is_valid()) {
      const ag::Node& node = *at.function;
      const std::type_index type(typeid(node));
      if (IsLeaf(node)) {
        const auto& leaf = static_cast<const ag::AccumulateGrad&>(node);
        const auto found = parameter_of_.find(leaf.variable.unsafeGetTensorImpl());
        if (found == parameter_of_.end()) return std::nullopt;
        return Origin{found->second, std::move(path)};
      }
      if (IsExpansion(type)) {
        if (!ExpansionInPath(node)) return std::nullopt;
      } else if (!IsPathStep(type)) {
        return std::nullopt;
      }
      path.push_back({at.function, at.input_nr});
      at = node.next_edge(0);
    }
    return std::nullopt;
  }

  // Expansions of parameters are numbered in the order in which the walk meets them.
  bool ExpansionInPath(const ag::Node& node) {
    ag::Edge behind = node.next_edge(0);
    while (behind.is_valid() && !IsLeaf(*behind.function)) {
      const std::type_index type(typeid(*behind.function));
      if (!IsPathStep(type) && !IsExpansion(type)) return false;
      behind = behind.function->next_edge(0);
    }
    if (!behind.is_valid()) return false;
    const auto [entry, is_new] = expansion_.try_emplace(&node, tape_.expansions);
    if (is_new) ++tape_.expansions;
    return entry->second < in_path_.size() && in_path_[entry->second];
  }

  const std::vector<bool>& in_path_;
  const std::int64_t examples_;
  std::unordered_map<const void*, std::size_t> parameter_of_;
  std::unordered_map<const ag::Node*, std::size_t> index_;
  std::unordered_map<const ag::Node*, std::size_t> expansion_;
  std::unordered_set<std::size_t> uses_a_parameter_;
  std::vector<std::pair<std::size_t, std::size_t>> stack_;
  Tape tape_;
};

}  // namespace

Tape ReadTape(const at::Tensor& losses, const std::vector<NamedParameter>& parameters,
              const std::vector<bool>& expansions_in_path) {
  if (losses.grad_fn() == nullptr) return {};
  return Reader(parameters, expansions_in_path, losses.numel()).Read(losses);
}

bool SameStructure(const Tape& known, std::int64_t known_examples, const Tape& tape,
                   std::int64_t examples) {
  if (known.topology != tape.topology || known.sizes.size() != tape.sizes.size()) return false;
  for (std::size_t k = 0; k < tape.sizes.size(); ++k) {
    const std::int64_t size = known.sizes[k];
    const bool scaled =
        size % known_examples == 0 && tape.sizes[k] == size / known_examples * examples;
    if (tape.sizes[k] != size && !scaled) return false;
  }
  return true;
}

std::string OperationName(const ag::Node& node) {
  std::string name = node.name();
  if (const auto end = name.find("Backward"); end != std::string::npos) name.resize(end);
  std::string words;
  for (std::size_t k = 0; k < name.size(); ++k) {
    const bool upper = std::isupper(static_cast<unsigned char>(name[k])) != 0;
    if (upper && k > 0 && std::isupper(static_cast<unsigned char>(name[k - 1])) == 0) words += ' ';
    words += static_cast<char>(std::tolower(static_cast<unsigned char>(name[k])));
  }
  return words;
}

std::vector<std::int64_t> OutputSizes(const ag::Node& node, std::size_t output) {
  std::vector<std::int64_t> sizes;
  const auto& metadata = node.input_metadata(output);
  if (metadata.was_default_constructed()) return sizes;
  for (const auto& size : metadata.shape_as_dim_vector()) sizes.push_back(size.expect_int());
  return sizes;
}

}  // namespace sordino
