#include "sordino/models/internal/stacked_layers.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <vector>

namespace sordino::internal {
namespace {

using at::Tensor;

// Windows of so many numbers at once, to stay in the cache.
constexpr std::int64_t kWindowNumbers = std::int64_t{1} << 18;

// The sizes of a convolution of images with the channels last.
struct Windows {
  Windows(const Tensor& x, const Tensor& weight, StackedConvolution how)
      : height(x.size(2)),
        width(x.size(3)),
        channels(x.size(4)),
        rows(weight.size(3)),
        columns(weight.size(4)),
        stride(how.stride),
        padding(how.padding),
        down((height + 2 * padding - rows) / stride + 1),
        across((width + 2 * padding - columns) / stride + 1) {}

  std::int64_t Entries() const { return rows * columns * channels; }  // of a window
  std::int64_t Places() const { return down * across; }               // of an image
  std::int64_t Numbers() const { return height * width * channels; }  // of an image

  // Calls each(in image, in window, numbers) for every row of every window that lies in the image,
  // with what lies side by side in both; window i of an image begins at i * Entries().
  template <typename Each>
  void EachRow(const Each& each) const {
    std::int64_t window = 0;
    for (std::int64_t y = 0; y < down; ++y) {
      for (std::int64_t x = 0; x < across; ++x, window += Entries()) {
        const std::int64_t top = y * stride - padding;
        const std::int64_t left = x * stride - padding;
        const std::int64_t begin = std::max<std::int64_t>(0, -left);
        const std::int64_t end = std::min(columns, width - left);
        for (std::int64_t row = 0; begin < end && row < rows; ++row) {
          if (top + row < 0 || top + row >= height) continue;
          each(((top + row) * width + left + begin) * channels,
               window + (row * columns + begin) * channels, (end - begin) * channels);
        }
      }
    }
  }

  std::int64_t height;
  std::int64_t width;
  std::int64_t channels;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t stride;
  std::int64_t padding;
  std::int64_t down;
  std::int64_t across;
};

// All windows of images [n, height, width, channels]: [n * places, entries], at the beginning of
// `buffer`, whose entries in the padding are 0 and stay so: they are the same ones in every image.
Tensor Unfolded(const Tensor& images, const Windows& w, const Tensor& buffer) {
  Tensor windows = buffer.narrow(0, 0, images.size(0) * w.Places());
  const float* pixels = images.const_data_ptr<float>();
  auto* out = windows.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < images.size(0); ++i) {
    w.EachRow([&](std::int64_t in_image, std::int64_t in_window, std::int64_t numbers) {
      std::copy_n(pixels + in_image, numbers, out + in_window);
    });
    pixels += w.Numbers();
    out += w.Places() * w.Entries();
  }
  return windows;
}

// Adds to every pixel what the windows that it lies in have there: the transpose of Unfolded.
void AddFolded(const Tensor& windows, const Windows& w, const Tensor& images) {
  const float* from = windows.const_data_ptr<float>();
  auto* pixels = images.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < images.size(0); ++i) {
    w.EachRow([&](std::int64_t in_image, std::int64_t in_window, std::int64_t numbers) {
      for (std::int64_t j = 0; j < numbers; ++j) pixels[in_image + j] += from[in_window + j];
    });
    pixels += w.Numbers();
    from += w.Places() * w.Entries();
  }
}

// [k, out, in, rows, columns] to [k, out, entries of a window].
Tensor Kernels(const Tensor& weight) {
  return weight.permute({0, 1, 3, 4, 2}).reshape({weight.size(0), weight.size(1), -1});
}

// Some images of a model, their windows, and room for as many.
struct Part {
  std::int64_t model;
  std::int64_t begin;
  std::int64_t count;
  Tensor windows;
  Tensor room;
};

// Models side by side, and the images of a model some at a time. Buffers are allocated once for a
// thread: fresh memory costs more than what is written to it.
template <typename Work>
void EachPart(const Tensor& images, const Windows& w, bool with_room, const Work& work) {
  const std::int64_t part = std::clamp<std::int64_t>(kWindowNumbers / (w.Places() * w.Entries()), 1,
                                                     std::max<std::int64_t>(1, images.size(1)));
  at::parallel_for(0, images.size(0), 1, [&](std::int64_t first, std::int64_t last) {
    const at::NoGradGuard no_grad;  // the threads of a pool have it on
    const std::vector<std::int64_t> sizes = {part * w.Places(), w.Entries()};
    const Tensor buffer = at::zeros(sizes, images.options());
    const Tensor room = with_room ? at::empty(sizes, images.options()) : Tensor();
    for (std::int64_t model = first; model < last; ++model) {
      for (std::int64_t begin = 0; begin < images.size(1); begin += part) {
        const std::int64_t count = std::min(part, images.size(1) - begin);
        work(Part{.model = model,
                  .begin = begin,
                  .count = count,
                  .windows = Unfolded(images[model].narrow(0, begin, count), w, buffer),
                  .room = with_room ? room.narrow(0, 0, count * w.Places()) : Tensor()});
      }
    }
  });
}

// Windows are computed again for the gradient: they are many times the size of the images.
class Convolve : public torch::autograd::Function<Convolve> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x,
                        const Tensor& weight, const Tensor& bias, std::int64_t stride,
                        std::int64_t padding) {
    const Tensor images = x.contiguous();
    const Windows w(images, weight, {.stride = stride, .padding = padding});
    context->save_for_backward({images, weight});
    context->saved_data["stride"] = stride;
    context->saved_data["padding"] = padding;
    const Tensor kernels = Kernels(weight).transpose(1, 2);
    Tensor result = at::empty({images.size(0), images.size(1), w.down, w.across, weight.size(1)},
                              images.options());
    EachPart(images, w, /*with_room=*/false, [&](const Part& part) {
      Tensor out = result[part.model].narrow(0, part.begin, part.count).view({-1, weight.size(1)});
      at::addmm_out(out, bias[part.model], part.windows, kernels[part.model]);
    });
    return result;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list outputs) {
    const auto saved = context->get_saved_variables();
    const Tensor& images = saved[0];
    const Tensor& weight = saved[1];
    const Windows w(images, weight,
                    {.stride = context->saved_data["stride"].toInt(),
                     .padding = context->saved_data["padding"].toInt()});
    const Tensor gradient = outputs[0].contiguous();
    const Tensor kernels = Kernels(weight);
    const Tensor of_kernels = at::zeros_like(kernels);
    Tensor of_images;
    if (context->needs_input_grad(0)) of_images = at::zeros_like(images);
    EachPart(images, w, of_images.defined(), [&](const Part& part) {
      const Tensor rows =
          gradient[part.model].narrow(0, part.begin, part.count).view({-1, weight.size(1)});
      of_kernels[part.model].addmm_(rows.t(), part.windows);
      if (!of_images.defined()) return;
      Tensor of_windows = part.room;
      at::mm_out(of_windows, rows, kernels[part.model]);
      AddFolded(of_windows, w, of_images[part.model].narrow(0, part.begin, part.count));
    });
    const Tensor of_weight =
        of_kernels.view({weight.size(0), weight.size(1), w.rows, w.columns, w.channels})
            .permute({0, 1, 4, 2, 3});
    return {of_images, of_weight, gradient.sum({1, 2, 3}), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor StackedLinear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return at::baddbmm(bias.unsqueeze(1), x, weight.transpose(1, 2));
}

Tensor StackedConvolve(const Tensor& x, const Tensor& weight, const Tensor& bias,
                       StackedConvolution how) {
  return Convolve::apply(x, weight, bias, how.stride, how.padding);
}

Tensor StackedPool(const Tensor& x) {
  // Channels last in memory is a format of libtorch's own pooling.
  const Tensor pooled = at::max_pool2d(x.flatten(0, 1).permute({0, 3, 1, 2}), 2, 1);
  return pooled.permute({0, 2, 3, 1}).unflatten(0, {x.size(0), x.size(1)});
}

}  // namespace sordino::internal
