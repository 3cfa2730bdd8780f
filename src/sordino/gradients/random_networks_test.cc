// Random small networks composed from all rules: sums and norms equal those of the loop.
//
// SORDINO_RANDOM_NETWORKS asks for another number of networks than 1,000. A failure names the seed
// and the network in words; the same seed gives the same network.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "sordino/gradients/norm_clipping.h"
#include "sordino/gradients/testing/gradients_test_support.h"

namespace sordino {
namespace {

using Sizes = std::vector<std::int64_t>;
using Step = std::function<at::Tensor(const at::Tensor&)>;

// Writes a network layer by layer, keeping the sizes of one example.
class NetworkMaker {
 public:
  NetworkMaker(ModelMaker& maker, std::uint64_t seed) : m_(maker), random_(seed) {
    Start();
    const int layers = 1 + Draw(5);
    for (int k = 0; k < layers; ++k) Layer();
    words_ += time_major_ ? ", time-major loss" : ", loss";
  }

  LossFunction Loss() const {
    return [steps = steps_, first = first_, time_major = time_major_](const Batch& batch) {
      at::Tensor x = first(batch[0]);
      for (const Step& step : steps) x = step(x);
      return LossOf(x, time_major ? 1 : 0);
    };
  }
  const std::string& words() const { return words_; }

 private:
  int Draw(int below) { return static_cast<int>(random_() % static_cast<std::uint64_t>(below)); }
  bool Coin() { return Draw(2) == 1; }
  std::int64_t width() const { return sizes_.back(); }
  bool sequence() const { return sizes_.size() == 2; }
  bool image() const { return sizes_.size() == 3; }

  at::Tensor Parameter(const std::string& kind, const Sizes& sizes, double scale = 0.6,
                       double mean = 0) {
    return m_.Parameter("layer" + std::to_string(layer_) + "." + kind, sizes, scale, mean);
  }

  void Add(const std::string& words, Step step) {
    words_ += (words_.empty() ? "" : ", ") + words;
    steps_.push_back(std::move(step));
  }

  void Start() {
    first_ = [](const at::Tensor& x) { return x; };
    switch (Draw(5)) {
      case 0:
        sizes_ = {3 + Draw(4)};
        m_.Input(sizes_);
        words_ = "vector";
        break;
      case 1:
        sizes_ = {2 + Draw(3), 3 + Draw(3)};
        m_.Input(sizes_);
        words_ = "sequence";
        break;
      case 2:
        sizes_ = {std::int64_t{2} * (1 + Draw(2)), 4 + Draw(3), 4 + Draw(3)};
        m_.Input(sizes_);
        words_ = "image";
        break;
      case 3: {
        const at::Tensor table = Parameter("table", {5, 4});
        const std::int64_t padding = Draw(3) - 1;
        sizes_ = {2 + Draw(3), 4};
        m_.Tokens(5, {sizes_[0]});
        first_ = [=](const at::Tensor& x) { return at::embedding(table, x, padding); };
        tables_.push_back(table);
        words_ = "embedding";
        break;
      }
      default: {
        const at::Tensor table = Parameter("table", {5, 4});
        const std::int64_t mode = Draw(2);
        const std::int64_t length = 2 + Draw(3);
        sizes_ = {4};
        m_.Tokens(5, {length});
        first_ = [=](const at::Tensor& x) {
          return std::get<0>(at::embedding_bag(table, x.reshape({-1}),
                                               at::arange(x.size(0)) * length, false, mode, false,
                                               {}, false, -1));
        };
        words_ = "embedding bag";
      }
    }
    ++layer_;
  }

  void Layer() {
    if (image()) {
      ImageLayer();
    } else if (sequence() && Coin()) {
      SequenceLayer();
    } else {
      RowLayer();
    }
    ++layer_;
  }

  // Layers on the last dimension, of vectors and sequences.
  void RowLayer() {
    const std::int64_t d = width();
    const std::int64_t out = 3 + Draw(3);
    switch (Draw(15)) {
      case 0: {
        const at::Tensor w = Parameter("weight", {out, d});
        const at::Tensor b = Coin() ? Parameter("bias", {out}) : at::Tensor();
        sizes_.back() = out;
        matrices_.push_back(w);
        Add(b.defined() ? "linear" : "linear without bias",
            [=](const at::Tensor& x) { return at::linear(x, w, b).tanh(); });
        break;
      }
      case 1: {
        const at::Tensor w = Parameter("weight", {d, out});
        sizes_.back() = out;
        Add("x w", [=](const at::Tensor& x) { return at::matmul(x, w); });
        break;
      }
      case 2:
        Reuse();
        break;
      case 3: {
        const at::Tensor p = Parameter("p", Coin() ? Sizes{d} : Sizes{1}, 0.3, 1);
        Add("scale", [=](const at::Tensor& x) { return x * p; });
        break;
      }
      case 4: {
        const at::Tensor p = Parameter("p", {d});
        Add("shift", [=](const at::Tensor& x) { return at::sub(x, p, 0.5).tanh(); });
        break;
      }
      case 5: {
        const at::Tensor p = Parameter("p", {d}, 0.1, 2);
        Add("divide", [=](const at::Tensor& x) { return x / p; });
        break;
      }
      case 6: {
        const at::Tensor p = Parameter("p", {});
        Add("scalar and where", [=](const at::Tensor& x) { return at::where(x > 0, x, p * x); });
        break;
      }
      case 7: {
        const at::Tensor w = Parameter("weight", {d}, 0.3, 1);
        const at::Tensor b = Parameter("bias", {d});
        Add("layer norm", [=](const at::Tensor& x) { return at::layer_norm(x, {d}, w, b, 0.1); });
        break;
      }
      case 8: {
        const at::Tensor w = Parameter("weight", {d}, 0.3, 1);
        Add("rms norm", [=](const at::Tensor& x) { return at::rms_norm(x, {d}, w, 0.1); });
        break;
      }
      case 9: {
        const at::Tensor a = Parameter("a", {2, d});
        const at::Tensor b = Parameter("b", {d, 2});
        const at::Tensor base = m_.Frozen("frozen" + std::to_string(layer_), {d, d});
        Add("adapter", [=](const at::Tensor& x) {
          return at::linear(x, base) + at::linear(at::linear(x, a), b);
        });
        break;
      }
      case 10: {
        const at::Tensor w = Parameter("weight", {6, d});
        const bool overlap = Coin();
        sizes_.back() = 3;
        Add(overlap ? "overlapping slices" : "chunks", [=](const at::Tensor& x) {
          return at::linear(x, w.slice(0, 0, 3)) *
                 at::linear(x, w.slice(0, overlap ? 1 : 3, overlap ? 4 : 6));
        });
        break;
      }
      case 11: {
        const at::Tensor w = Parameter("weight", {d, 2});
        Add("autoencoder",
            [=](const at::Tensor& x) { return at::linear(at::matmul(x, w).tanh(), w) + x; });
        break;
      }
      case 12: {
        const at::Tensor p = Parameter("p", {1});
        Add("prelu", [=](const at::Tensor& x) { return at::prelu(x, p); });
        break;
      }
      case 13: {
        const at::Tensor w = Parameter("weight", {out, d});
        sizes_.back() = out;
        Add("linear, relu in place", [=](const at::Tensor& x) { return at::linear(x, w).relu_(); });
        break;
      }
      default:
        if (sequence()) {
          const std::int64_t steps = sizes_[0];
          const bool turned = time_major_;
          sizes_ = {d};
          time_major_ = false;
          Add("mean over time",
              [=](const at::Tensor& x) { return x.mean(turned ? 0 : 1) * (1.0 / steps); });
        } else {
          const at::Tensor p = Parameter("p", {3, d});
          sizes_ = {3, d};
          Add("repeat to a sequence", [=](const at::Tensor& x) {
            return x.unsqueeze(1) * p.repeat({x.size(0), 1, 1}) + p;
          });
        }
    }
  }

  // A matrix that was used before, once more, straight or transposed.
  void Reuse() {
    const std::int64_t d = width();
    for (const at::Tensor& w : matrices_) {
      if (w.size(1) == d && Coin()) {
        sizes_.back() = w.size(0);
        Add("tied linear", [=](const at::Tensor& x) { return at::linear(x, w).tanh(); });
        return;
      }
      if (w.size(0) == d) {
        sizes_.back() = w.size(1);
        Add("tied transpose", [=](const at::Tensor& x) { return at::matmul(x, w).tanh(); });
        return;
      }
    }
    for (const at::Tensor& table : tables_) {
      if (table.size(1) != d) continue;
      sizes_.back() = table.size(0);
      Add("tied embedding", [=](const at::Tensor& x) { return at::linear(x, table); });
      return;
    }
    Add("tanh", [](const at::Tensor& x) { return x.tanh(); });
  }

  void SequenceLayer() {
    const std::int64_t d = width();
    const std::int64_t steps = sizes_[0];
    const bool turned = time_major_;
    switch (Draw(7)) {
      case 0:
        time_major_ = !time_major_;
        Add("transpose", [](const at::Tensor& x) { return x.transpose(0, 1).contiguous(); });
        break;
      case 1: {
        const at::Tensor p = Parameter("p", turned   ? Sizes{steps, 1, d}
                                            : Coin() ? Sizes{1, steps, d}
                                                     : Sizes{steps, d});
        Add("position embedding", [=](const at::Tensor& x) { return x + p; });
        break;
      }
      case 2: {
        const at::Tensor token = Parameter("token", {1, 1, d});
        sizes_[0] = steps + 1;
        Add("class token", [=](const at::Tensor& x) {
          const std::int64_t n = x.size(turned ? 1 : 0);
          const Sizes sizes = turned ? Sizes{1, n, d} : Sizes{n, 1, d};
          return at::cat({token.expand(sizes), x}, turned ? 0 : 1);
        });
        break;
      }
      case 3: {
        const at::Tensor w = Parameter("weight", {3 * d, d});
        const at::Tensor b = Parameter("bias", {3 * d});
        Add("attention", [=](const at::Tensor& input) {
          const at::Tensor x = turned ? input.transpose(0, 1) : input;
          const auto parts = at::linear(x, w, b).chunk(3, -1);
          const at::Tensor y = at::scaled_dot_product_attention(parts[0], parts[1], parts[2]);
          return turned ? y.transpose(0, 1) : y;
        });
        break;
      }
      case 4: {
        const std::int64_t hidden = 3;
        const at::Tensor wi = Parameter("wi", {3 * hidden, d});
        const at::Tensor wh = Parameter("wh", {3 * hidden, hidden});
        const at::Tensor bi = Parameter("bi", {3 * hidden});
        const at::Tensor bh = Parameter("bh", {3 * hidden});
        sizes_.back() = hidden;
        Add("gru", [=](const at::Tensor& x) {
          const at::Tensor h = at::zeros({1, x.size(turned ? 1 : 0), hidden}, x.options());
          return std::get<0>(at::gru(x, h, {wi, wh, bi, bh}, true, 1, 0.0, false, false, !turned));
        });
        break;
      }
      case 5: {
        const at::Tensor w = Parameter("weight", {3, d, 2});
        const at::Tensor b = Parameter("bias", {3});
        sizes_ = {steps + 1, 3};
        Add("conv1d", [=](const at::Tensor& input) {
          const at::Tensor x = turned ? input.transpose(0, 1) : input;
          const at::Tensor y = at::conv1d(x.transpose(1, 2), w, b, 1, 1).transpose(1, 2);
          return turned ? y.transpose(0, 1) : y;
        });
        break;
      }
      default: {
        const at::Tensor w = Parameter("weight", {steps, d, 3});
        sizes_.back() = 3;
        Add("one matrix for each step", [=](const at::Tensor& input) {
          if (turned) return at::bmm(input, w);
          return at::matmul(input.unsqueeze(2), w).squeeze(2);
        });
      }
    }
  }

  void ImageLayer() {
    const std::int64_t c = sizes_[0];
    switch (Draw(8)) {
      case 0:
      case 1: {
        const std::int64_t groups = Coin() ? 2 : 1;
        const std::int64_t padding = Draw(2);
        const std::int64_t out = std::int64_t{2} * (1 + Draw(2));
        const at::Tensor w = Parameter("weight", {out, c / groups, 2, 2});
        const at::Tensor b = Coin() ? Parameter("bias", {out}) : at::Tensor();
        sizes_ = {out, sizes_[1] + 2 * padding - 1, sizes_[2] + 2 * padding - 1};
        Add("conv2d in " + std::to_string(groups) + " groups",
            [=](const at::Tensor& x) { return at::conv2d(x, w, b, 1, padding, 1, groups).tanh(); });
        break;
      }
      case 2: {
        const at::Tensor w = Parameter("weight", {c, 2, 2, 2});
        sizes_ = {2, sizes_[1] + 1, sizes_[2] + 1};
        Add("transposed conv2d", [=](const at::Tensor& x) { return at::conv_transpose2d(x, w); });
        break;
      }
      case 3: {
        const at::Tensor w = Parameter("weight", {c}, 0.3, 1);
        const at::Tensor b = Parameter("bias", {c});
        Add("group norm", [=](const at::Tensor& x) { return at::group_norm(x, 2, w, b, 0.1); });
        break;
      }
      case 4: {
        const at::Tensor w = Parameter("weight", {c}, 0.3, 1);
        const at::Tensor b = Parameter("bias", {c});
        // On three dimensions: libtorch 2.11 has wrong gradients for a single image whose gradient
        // arrives channels last.
        Add("instance norm", [=](const at::Tensor& x) {
          return at::instance_norm(x.flatten(2), w, b, {}, {}, true, 0.1, 0.1, false)
              .view(x.sizes());
        });
        break;
      }
      case 5: {
        const at::Tensor p = Parameter("p", {c, 1, 1}, 0.3, 1);
        Add("scale of channels", [=](const at::Tensor& x) { return x * p; });
        break;
      }
      case 6: {
        const std::int64_t steps = sizes_[1] * sizes_[2];
        sizes_ = {steps, c};
        Add("pixels to a sequence",
            [](const at::Tensor& x) { return x.flatten(2).transpose(1, 2); });
        break;
      }
      default:
        sizes_ = {c};
        Add("mean of pixels", [](const at::Tensor& x) { return x.mean(at::IntArrayRef{2, 3}); });
    }
  }

  ModelMaker& m_;
  std::mt19937_64 random_;
  Sizes sizes_;
  bool time_major_ = false;
  int layer_ = 0;
  std::function<at::Tensor(const at::Tensor&)> first_;
  std::vector<Step> steps_;
  std::vector<at::Tensor> matrices_;
  std::vector<at::Tensor> tables_;
  std::string words_;
};

double LargestDifference(const at::Tensor& norms, const at::Tensor& expected) {
  const double largest = expected.max().item<double>();
  return largest == 0 ? norms.max().item<double>()
                      : (norms - expected).abs().max().item<double>() / largest;
}

// Empty when the network agrees with the loop.
std::string Disagreement(const TestModel& model, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  constexpr NormMethod kMethods[] = {NormMethod::kAutomatic, NormMethod::kMaterialise,
                                     NormMethod::kGhost};
  Clipper clipper(model.parameters, {.norms = kMethods[random() % 3],
                                     .checked_examples = random() % 16 == 0 ? 1 : 0});
  std::vector<std::int64_t> batches = {2 + static_cast<std::int64_t>(random() % 4)};
  if (random() % 4 == 0) batches.push_back(2 + static_cast<std::int64_t>(random() % 4));
  for (const std::int64_t examples : batches) {
    const Batch batch = model.batch(examples);
    const auto flat = HalfClippedFlat(model, batch);
    // The gradient of a layer may be 0 but for rounding, so the bounds are not those of its norms.
    const auto layers =
        NormClipping::Layerwise(clipper.parameters(), ClipNorm(flat->Bounds().front()));
    for (const ClippingPolicy* policy : {static_cast<const ClippingPolicy*>(flat.get()),
                                         static_cast<const ClippingPolicy*>(&layers)}) {
      const LoopResult loop = LoopClippedSum(model.loss, batch, clipper.parameters(), *policy);
      const BoundedSum sum = clipper.ClippedSum(model.loss, batch, *policy);
      const double error = RelativeError(sum.gradients, loop.sum);
      if (!(error <= 1e-11)) {
        return std::string(policy == flat.get() ? "flat" : "layerwise") + ", batch " +
               std::to_string(examples) + ": the sum differs by " + std::to_string(error);
      }
    }
    const double error =
        LargestDifference(clipper.Norms(model.loss, batch, layers),
                          LoopClippedSum(model.loss, batch, clipper.parameters(), layers).norms);
    if (!(error <= 1e-11)) return "the norms differ by " + std::to_string(error);
  }
  return {};
}

TEST(RandomNetworks, AllAgreeWithTheLoop) {
  const char* wanted = std::getenv("SORDINO_RANDOM_NETWORKS");
  const std::uint64_t networks = wanted == nullptr ? 1000 : std::strtoull(wanted, nullptr, 10);
  int failures = 0;
  std::uint64_t compared = 0;
  for (std::uint64_t seed = 1; seed <= networks && failures < 5; ++seed) {
    std::string words;
    const TestModel model = MakeModel(
        [&](ModelMaker& m) {
          const NetworkMaker network(m, seed);
          words = network.words();
          return network.Loss();
        },
        at::kDouble, seed);
    bool trained = false;
    for (const NamedParameter& p : model.parameters) trained = trained || p.value.requires_grad();
    if (!trained) continue;
    ++compared;
    std::string disagreement;
    try {
      disagreement = Disagreement(model, seed);
    } catch (const std::exception& error) {
      disagreement = error.what();
    }
    if (disagreement.empty()) continue;
    ++failures;
    ADD_FAILURE() << "seed " << seed << ": " << words << ": " << disagreement;
  }
  EXPECT_GE(compared, networks * 9 / 10);
}

}  // namespace
}  // namespace sordino
