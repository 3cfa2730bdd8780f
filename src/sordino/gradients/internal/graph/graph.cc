#include "sordino/gradients/internal/graph/graph.h"

#include <c10/util/flat_hash_map.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/generated/Functions.h>

#include <cctype>
#include <cstdint>
#include <typeindex>
#include <unordered_map>
#include <utility>

namespace sordino {
namespace {

namespace ag = torch::autograd;
namespace generated = torch::autograd::generated;

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
void AppendArguments(const ag::Node& node, const std::type_info& type,
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
  if (const auto found = dims.find(std::type_index(type)); found != dims.end())
    found->second(node, topology);
}

class Reader {
 public:
  explicit Reader(const std::vector<NamedParameter>& parameters) {
    parameter_of_.reserve(parameters.size());
    index_.reserve(kUsualNodes);
    graph_.nodes.reserve(kUsualNodes);
    graph_.edges.reserve(kUsualNodes);
    graph_.topology.reserve(8 * kUsualNodes);
    graph_.sizes.reserve(4 * kUsualNodes);
    for (std::size_t k = 0; k < parameters.size(); ++k) {
      parameter_of_[parameters[k].value.unsafeGetTensorImpl()] = k;
    }
  }

  Graph Read(const at::Tensor& losses) {
    Enter(losses.grad_fn());
    // A walk by hand: recurrent models have graphs deeper than the stack.
    while (!stack_.empty()) {
      const auto [node, slot] = stack_.back();
      const ag::edge_list& edges = graph_.nodes[node]->next_edges();
      if (slot == edges.size()) {
        graph_.finished.push_back(node);
        stack_.pop_back();
        continue;
      }
      ++stack_.back().second;
      if (edges[slot].is_valid()) Follow(node, slot, edges[slot]);
    }
    return std::move(graph_);
  }

 private:
  static constexpr std::size_t kUsualNodes = 32;

  void Enter(const TapeNode& node) {
    const ag::Node& it = *node;
    const std::type_info& type = typeid(it);
    const bool leaf = type == typeid(ag::AccumulateGrad);
    index_[node.get()] = graph_.nodes.size();
    if (leaf) {
      graph_.finished.push_back(graph_.nodes.size());
    } else {
      stack_.emplace_back(graph_.nodes.size(), 0);
    }
    graph_.nodes.push_back(node);
    graph_.edges.emplace_back();
    graph_.is_leaf.push_back(leaf);
    graph_.parameter.emplace_back();
    graph_.topology.push_back(reinterpret_cast<std::intptr_t>(&type));
    if (leaf) {
      const auto& variable = static_cast<const ag::AccumulateGrad&>(*node).variable;
      const auto found = parameter_of_.find(variable.unsafeGetTensorImpl());
      if (found != parameter_of_.end()) graph_.parameter.back() = found->second;
      graph_.topology.push_back(
          found == parameter_of_.end() ? -1 : static_cast<std::int64_t>(found->second));
    } else {
      AppendArguments(*node, type, graph_.topology);
      for (std::uint32_t k = 0; k < node->num_inputs(); ++k) {
        const auto& metadata = node->input_metadata(k);
        if (metadata.was_default_constructed()) continue;
        const auto sizes = metadata.shape_as_dim_vector();
        graph_.topology.push_back(static_cast<std::int64_t>(sizes.size()));
        for (const auto& size : sizes) graph_.sizes.push_back(size.expect_int());
      }
    }
    graph_.sizes_end.push_back(graph_.sizes.size());
  }

  void Follow(std::size_t node, std::size_t slot, const ag::Edge& edge) {
    const auto known = index_.find(edge.function.get());
    const std::size_t child = known == index_.end() ? graph_.nodes.size() : known->second;
    graph_.edges[node].push_back({slot, child, edge.input_nr});
    graph_.topology.push_back(-2 - static_cast<std::int64_t>(slot));
    graph_.topology.push_back(static_cast<std::int64_t>(child));
    graph_.topology.push_back(edge.input_nr);
    if (known == index_.end()) Enter(edge.function);
  }

  ska::flat_hash_map<const void*, std::size_t> parameter_of_;
  ska::flat_hash_map<const ag::Node*, std::size_t> index_;
  std::vector<std::pair<std::size_t, std::size_t>> stack_;
  Graph graph_;
};

}  // namespace

Graph ReadGraph(const at::Tensor& losses, const std::vector<NamedParameter>& parameters) {
  if (losses.grad_fn() == nullptr) return {};
  return Reader(parameters).Read(losses);
}

std::optional<std::vector<bool>> SharedNodes(const Graph& graph, const Graph& with_one_more) {
  if (graph.topology != with_one_more.topology) return std::nullopt;
  std::vector<bool> shared(graph.nodes.size());
  std::size_t begin = 0;
  for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
    const std::size_t end = graph.sizes_end[node];
    shared[node] = true;
    for (std::size_t k = begin; k < end; ++k) {
      // Outputs without entries have one size for any number of units.
      if (graph.sizes[k] != with_one_more.sizes[k] || graph.sizes[k] == 0) shared[node] = false;
    }
    begin = end;
  }
  return shared;
}

bool SameStructure(const Graph& known, std::int64_t known_examples, const Graph& graph,
                   std::int64_t examples) {
  if (known.topology != graph.topology || known.sizes.size() != graph.sizes.size()) return false;
  for (std::size_t k = 0; k < graph.sizes.size(); ++k) {
    const std::int64_t size = known.sizes[k];
    const bool scaled =
        size % known_examples == 0 && graph.sizes[k] == size / known_examples * examples;
    if (graph.sizes[k] != size && !scaled) return false;
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
