// The only file that sees ProcessGroupGloo.hpp (cmake/SordinoGloo.cmake).
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "sordino/base/check.h"
#include "sordino/distributed/internal/connected_ranks.h"
#include "sordino/distributed/internal/gpu_exchange.h"
#include "sordino/distributed/internal/group_store.h"
#include "sordino/distributed/internal/liveness.h"
#include "sordino/distributed/internal/message_seal.h"
#include "sordino/distributed/join_secret.h"
#include "sordino/distributed/process_group.h"

namespace sordino {
namespace {

using std::chrono::milliseconds;
using BackendPointer = c10::intrusive_ptr<c10d::Backend>;

// Waiting for a rank that computes is not an error; internal::Liveness finds those that are lost.
constexpr milliseconds kLongestWait = std::chrono::hours(24);
// Everything after the ranks were counted: connections between all of them.
constexpr milliseconds kConnecting = std::chrono::seconds(30);

BackendPointer Connect(const internal::StorePointer& store, const GroupOptions& options,
                       const internal::Meeting& meeting) {
  const LaunchEnvironment& environment = options.environment;
  using Gloo = c10d::ProcessGroupGloo;
  c10::intrusive_ptr<Gloo::Options> gloo = Gloo::Options::create_default(kConnecting);
  // Nobody else has to reach ranks that are all here.
  if (meeting.is_on_one_host) gloo->devices = {Gloo::createDeviceForHostname("127.0.0.1")};
  BackendPointer backend =
      c10::make_intrusive<Gloo>(store, environment.rank, environment.size, std::move(gloo));
  backend->setTimeout(kLongestWait);
  return backend;
}

class GlooGroup : public ProcessGroup {
 public:
  GlooGroup(BackendPointer backend, std::unique_ptr<internal::Liveness> liveness,
            internal::MessageSeal seal, bool may_use_nccl)
      : liveness_(std::move(liveness)),
        backend_(std::move(backend)),
        seal_(std::move(seal)),
        may_use_nccl_(may_use_nccl) {}
  ~GlooGroup() override {
    if (!has_left_) liveness_->Fail();
  }

  int Rank() const override { return backend_->getRank(); }
  int Size() const override { return backend_->getSize(); }

  void UseDevice(c10::Device device) override;
  c10::Device DeviceFor(c10::Device device) const override {
    return gpus_ != nullptr && device == device_ ? device : c10::Device(c10::kCPU);
  }

  // Every other rank gets its part of the sum from all, and gives it to all.
  void AllReduceSum(at::Tensor& values) override;
  void ReduceScatterSum(const at::Tensor& values, at::Tensor& shard) override;
  void AllGather(const at::Tensor& shard, at::Tensor& all) override;
  std::string Broadcast(const std::string& bytes) override;
  std::vector<std::string> AllGatherBytes(const std::string& bytes) override;
  void Barrier() override;
  void Leave() override;

 private:
  // Runs an operation that moves so many bytes to and from this rank.
  template <typename Operation>
  void Operate(std::int64_t bytes, const Operation& operation) {
    liveness_->BeginOperation(bytes);
    try {
      operation();
    } catch (const internal::ForeignWords&) {
      liveness_->EndForeign();
    } catch (const std::exception&) {
      liveness_->EndLost();
    }
    liveness_->EndOperation();
  }

  // The same on GPUs. What this rank's GPU still computes is no part of the operation, which must
  // end in time.
  template <typename Operation>
  void OperateOnGpus(std::int64_t bytes, const Operation& operation) {
    gpus_->FinishOwnWork();
    Operate(bytes, operation);
  }

  void CheckParts(const at::Tensor& whole, const at::Tensor& part) const;
  void ExchangeSums(const at::Tensor& values, const at::Tensor& shard);
  void Gather(const at::Tensor& shard, const at::Tensor& all);
  // What rank 0 passes, on every rank.
  void Spread(const at::Tensor& content);
  // Sends to the rank `distance` above and receives from the one as far below.
  void Exchange(int distance, at::Tensor sent, at::Tensor received);

  // Everything that is sent is sealed. All ranks make the same operations in the same order, so
  // each knows the number of the messages that it gets.
  at::Tensor Sealed(const at::Tensor& plain, std::uint32_t receiver) const;
  static at::Tensor Empty(const at::Tensor& plain);  // of the size of a sealed one
  // Throws ForeignWords where it is not that message.
  void Open(const at::Tensor& sealed, int sender, std::uint32_t receiver,
            const at::Tensor& plain) const;

  // Outlives the backend, whose end may hang where a rank was lost.
  std::unique_ptr<internal::Liveness> liveness_;
  BackendPointer backend_;
  const internal::MessageSeal seal_;
  const bool may_use_nccl_;
  std::uint64_t number_ = 0;  // of the messages in hand
  c10::Device device_ = c10::kCPU;
  std::unique_ptr<internal::GpuExchange> gpus_;  // null: everything goes over Gloo
  bool has_left_ = false;
};

void GlooGroup::Exchange(int distance, at::Tensor sent, at::Tensor received) {
  constexpr int kTag = 1;
  std::vector<at::Tensor> out = {std::move(sent)};
  std::vector<at::Tensor> in = {std::move(received)};
  const auto receiving = backend_->recv(in, (Rank() + Size() - distance) % Size(), kTag);
  const auto sending = backend_->send(out, (Rank() + distance) % Size(), kTag);
  receiving->wait();
  sending->wait();
}

at::Tensor GlooGroup::Empty(const at::Tensor& plain) {
  constexpr auto kTag = static_cast<std::int64_t>(internal::MessageSeal::kTagBytes);
  return at::empty({static_cast<std::int64_t>(plain.nbytes()) + kTag}, at::kByte);
}

at::Tensor GlooGroup::Sealed(const at::Tensor& plain, std::uint32_t receiver) const {
  at::Tensor sealed = Empty(plain);
  seal_.Seal({.sender = Rank(), .receiver = receiver, .number = number_}, plain.const_data_ptr(),
             plain.nbytes(), sealed.mutable_data_ptr());
  return sealed;
}

void GlooGroup::Open(const at::Tensor& sealed, int sender, std::uint32_t receiver,
                     const at::Tensor& plain) const {
  if (seal_.Open({.sender = sender, .receiver = receiver, .number = number_},
                 sealed.const_data_ptr(), plain.mutable_data_ptr(), plain.nbytes())) {
    return;
  }
  throw internal::ForeignWords("a message is not of the rank that it should be of.");
}

void GlooGroup::Gather(const at::Tensor& shard, const at::Tensor& all) {
  ++number_;
  const at::Tensor parts = all.view({Size(), shard.numel()});
  parts[Rank()].copy_(shard.view({-1}));
  const at::Tensor sealed = Sealed(shard, internal::MessageSeal::kAllReceivers);
  at::Tensor received = at::empty_like(sealed);
  for (int distance = 1; distance < Size(); ++distance) {
    Exchange(distance, sealed, received);
    const int sender = (Rank() + Size() - distance) % Size();
    Open(received, sender, internal::MessageSeal::kAllReceivers, parts[sender]);
  }
}

void GlooGroup::Spread(const at::Tensor& content) {
  ++number_;
  std::vector<at::Tensor> sealed = {
      IsFirst() ? Sealed(content, internal::MessageSeal::kAllReceivers) : Empty(content)};
  backend_->broadcast(sealed)->wait();
  if (!IsFirst()) Open(sealed.front(), 0, internal::MessageSeal::kAllReceivers, content);
}

// Ranks that share a GPU, or have none, stay with Gloo.
void GlooGroup::UseDevice(c10::Device device) {
  SORDINO_CHECK(gpus_ == nullptr, "ranks connect their GPUs once");
  // Over NCCL messages are not sealed.
  const std::string name = may_use_nccl_ ? internal::GpuName(device) : "";
  if (!internal::HaveGpuEach(AllGatherBytes(name))) return;
  gpus_ = internal::ConnectGpus(*this, device, [this] { return liveness_->HasLost(); });
  if (gpus_ == nullptr) return;
  device_ = device;
  internal::RequireEqualSums(*this, device);
}

void GlooGroup::CheckParts(const at::Tensor& whole, const at::Tensor& part) const {
  SORDINO_CHECK(whole.is_contiguous() && part.is_contiguous(), "ranks exchange contiguous tensors");
  SORDINO_CHECK(whole.device() == part.device() &&
                    (part.is_cpu() || DeviceFor(part.device()) == part.device()),
                "ranks exchange tensors on the CPU, or on GPUs that are connected");
  SORDINO_CHECK(whole.scalar_type() == part.scalar_type() && whole.numel() == Size() * part.numel(),
                "what ranks exchange has another size or type than its parts");
}

// c10d's own reduce-scatter on Gloo is an all-reduce of which a part is kept, twice the volume.
void GlooGroup::ExchangeSums(const at::Tensor& values, const at::Tensor& shard) {
  ++number_;
  const at::Tensor parts = values.view({Size(), shard.numel()});
  shard.view({-1}).copy_(parts[Rank()]);
  at::Tensor opened = at::empty_like(parts[0]);
  for (int distance = 1; distance < Size(); ++distance) {
    const int receiver = (Rank() + distance) % Size();
    const at::Tensor sealed = Sealed(parts[receiver], static_cast<std::uint32_t>(receiver));
    at::Tensor received = at::empty_like(sealed);
    Exchange(distance, sealed, received);
    Open(received, (Rank() + Size() - distance) % Size(), static_cast<std::uint32_t>(Rank()),
         opened);
    shard.view({-1}).add_(opened);
  }
}

void GlooGroup::ReduceScatterSum(const at::Tensor& values, at::Tensor& shard) {
  CheckParts(values, shard);
  SORDINO_CHECK(values.scalar_type() == at::kLong, "a sum over ranks is one of integers");
  const std::int64_t bytes = shard.numel() * shard.element_size() * (Size() - 1);
  if (shard.is_cpu()) {
    Operate(bytes, [&] { ExchangeSums(values, shard); });
  } else {
    OperateOnGpus(bytes, [&] { gpus_->ReduceScatterSum(values, shard); });
  }
  CountSent(bytes);
}

void GlooGroup::AllGather(const at::Tensor& shard, at::Tensor& all) {
  CheckParts(all, shard);
  const std::int64_t bytes = shard.numel() * shard.element_size() * (Size() - 1);
  if (shard.is_cpu()) {
    Operate(bytes, [&] { Gather(shard, all); });
  } else {
    OperateOnGpus(bytes, [&] { gpus_->AllGather(shard, all); });
  }
  CountSent(bytes);
}

void GlooGroup::AllReduceSum(at::Tensor& values) {
  // Parts of equal size, the last of which may be filled up.
  const std::int64_t part = (values.numel() + Size() - 1) / Size();
  at::Tensor padded = values.view({-1});
  if (part * Size() != values.numel()) {
    padded = at::zeros({part * Size()}, values.options());
    padded.narrow(0, 0, values.numel()).copy_(values.view({-1}));
  }
  at::Tensor shard = at::empty({part}, values.options());
  ReduceScatterSum(padded, shard);
  AllGather(shard, padded);
  values.view({-1}).copy_(padded.narrow(0, 0, values.numel()));
}

std::string GlooGroup::Broadcast(const std::string& bytes) {
  at::Tensor length = at::zeros({1}, at::kLong);
  if (IsFirst()) length.fill_(static_cast<std::int64_t>(bytes.size()));
  at::Tensor content;
  Operate(static_cast<std::int64_t>(bytes.size()), [&] {
    Spread(length);
    content = at::zeros({length.item<std::int64_t>()}, at::kByte);
    if (content.numel() == 0) return;
    if (IsFirst()) std::memcpy(content.data_ptr(), bytes.data(), bytes.size());
    Spread(content);
  });
  return std::string(static_cast<const char*>(content.const_data_ptr()),
                     static_cast<std::size_t>(content.numel()));
}

std::vector<std::string> GlooGroup::AllGatherBytes(const std::string& bytes) {
  const at::Tensor length = at::full({1}, static_cast<std::int64_t>(bytes.size()), at::kLong);
  at::Tensor lengths = at::zeros({Size()}, at::kLong);
  at::Tensor all;
  Operate(static_cast<std::int64_t>(bytes.size()), [&] {
    Gather(length, lengths);
    const std::int64_t longest = std::max<std::int64_t>(lengths.max().item<std::int64_t>(), 1);
    const at::Tensor padded = at::zeros({longest}, at::kByte);
    std::memcpy(padded.data_ptr(), bytes.data(), bytes.size());
    all = at::zeros({Size(), longest}, at::kByte);
    Gather(padded, all);
  });
  std::vector<std::string> texts;
  texts.reserve(static_cast<std::size_t>(Size()));
  for (int rank = 0; rank < Size(); ++rank) {
    texts.emplace_back(static_cast<const char*>(all[rank].const_data_ptr()),
                       static_cast<std::size_t>(lengths[rank].item<std::int64_t>()));
  }
  return texts;
}

void GlooGroup::Barrier() {
  const at::Tensor all = at::zeros({Size()}, at::kByte);
  Operate(0, [&] { Gather(at::zeros({1}, at::kByte), all); });
}

void GlooGroup::Leave() {
  Barrier();
  if (gpus_ != nullptr) {
    // All ranks have all results; none of them has gone before the GPUs are disconnected.
    gpus_.reset();
    Barrier();
  }
  liveness_->Finish();
  has_left_ = true;
}

}  // namespace

bool HasProcessGroups() { return true; }

std::unique_ptr<ProcessGroup> internal::ConnectRanks(const StorePointer& store,
                                                     const GroupOptions& options,
                                                     const Meeting& meeting, MessageSeal seal) {
  auto liveness = std::make_unique<Liveness>(store->clone(), options);
  BackendPointer backend;
  try {
    backend = Connect(store, options, meeting);
  } catch (const ForeignWords&) {
    liveness->EndForeign();
  } catch (const std::exception&) {
    liveness->EndLost();
  }
  auto group = std::make_unique<GlooGroup>(std::move(backend), std::move(liveness), std::move(seal),
                                           MaySendUnsealed(meeting, options));
  // Over each connection, in both directions: who is at its other end has the secret.
  group->Barrier();
  return group;
}

std::unique_ptr<ProcessGroup> JoinGroup(const GroupOptions& options) {
  const LaunchEnvironment& environment = options.environment;
  SORDINO_CHECK(environment.size >= 1, "a group has a rank");
  if (environment.size > 1 && options.secret.size() < kShortestJoinSecret) {
    throw Error(fmt::format(
        "a group of {} ranks needs a secret of at least {} characters, the same for all of them.",
        environment.size, kShortestJoinSecret));
  }
  const std::string secret = options.secret.empty() ? NewJoinSecret() : options.secret;
  const std::string hangs = fmt::format(
      "rank {} of {} got no answer from {}:{} within {} s; look whether rank 0 runs there, and "
      "whether another program uses that port.",
      environment.rank, environment.size, environment.address, environment.port,
      options.join_timeout.count() / 1000);
  internal::Deadline deadline([&](const std::string& sentence) {
    if (options.on_loss) options.on_loss(sentence);
    std::abort();
  });
  deadline.Set(options.join_timeout + milliseconds(10000), hangs);
  const internal::StorePointer joining =
      internal::OpenGroupStore(environment, secret, options.join_timeout);
  const internal::Meeting meeting = internal::GatherRanks(joining, options);
  const internal::StorePointer store = internal::StoreOfGroup(joining, meeting.nonce);
  deadline.Clear();
  return internal::ConnectRanks(store, options, meeting,
                                internal::MessageSeal(secret, meeting.nonce, environment.size));
}

}  // namespace sordino
