// Scripts that would see or keep what is not theirs, each as the code of a TorchScript file:
// refused with the operation and its line, or run as a function of one record. What is accepted is
// run on neighbours (a record first, last, absent) in parts, so that the number of calls depends on
// them.
#include "sordino/gradients/internal/isolation/script_graph.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/serialization/import_source.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/gradients/clipper.h"
#include "sordino/gradients/internal/isolation/pure_operations.h"
#include "sordino/gradients/norm_clipping.h"
#include "sordino/gradients/script_model.h"
#include "sordino/gradients/testing/hostile_models_test_support.h"

namespace sordino {
namespace {

namespace jit = torch::jit;
using ::testing::HasSubstr;

struct ScriptCase {
  const char* name;
  const char* classes;  // definitions in front of the module's
  const char* fields;   // attributes beside w, b, m and training
  const char* body;     // of forward(self, x)
  const char* refusal;  // a part of the sentence; empty: accepted
};

c10::IValue ValueOf(const c10::TypePtr& type) {
  const std::string text = type->repr_str();
  if (text == "bool") return true;
  if (text == "int") return std::int64_t{0};
  if (text == "float") return 0.0;
  if (text == "List[Tensor]") return c10::List<at::Tensor>({at::zeros({1})});
  if (const auto tuple = type->cast<c10::TupleType>()) {
    std::vector<c10::IValue> entries;
    for (const c10::TypePtr& entry : tuple->elements()) entries.push_back(ValueOf(entry));
    return c10::ivalue::Tuple::create(std::move(entries));
  }
  if (const auto list = type->cast<c10::ListType>()) {
    c10::impl::GenericList values(list->getElementType());
    values.push_back(ValueOf(list->getElementType()));
    return values;
  }
  if (const auto dict = type->cast<c10::DictType>()) {
    c10::impl::GenericDict values(dict->getKeyType(), dict->getValueType());
    values.insert("n", ValueOf(dict->getValueType()));
    return values;
  }
  if (const auto of_class = type->cast<c10::ClassType>()) {
    auto object = c10::ivalue::Object::create(
        c10::StrongTypePtr(of_class->compilation_unit(), of_class), of_class->numAttributes());
    for (std::size_t k = 0; k < of_class->numAttributes(); ++k) {
      object->setSlot(k, ValueOf(of_class->getAttribute(k)));
    }
    return object;
  }
  return at::zeros({1});
}

// Six numbers in, logits of three classes out, with the same weights each time.
jit::Module ModuleOf(const ScriptCase& script) {
  const std::string code =
      std::string(script.classes) +
      "\nclass Net(Module):\n"
      "  __parameters__ = [\"w\", \"b\", ]\n"
      "  __buffers__ = [\"m\", ]\n"
      "  w : Tensor\n  b : Tensor\n  m : Tensor\n  training : bool\n" +
      script.fields + "  def forward(self: __torch__.Net, x: Tensor) -> Tensor:\n" + script.body;
  auto unit = std::make_shared<jit::CompilationUnit>();
  std::vector<c10::IValue> constants = {at::zeros({1})};
  const jit::SourceImporter importer(
      unit, &constants,
      [&](const std::string&) { return std::make_shared<jit::Source>(code, "net.py"); },
      /*version=*/10);
  const auto type =
      importer.loadType(c10::QualifiedName("__torch__.Net"))->expect<c10::ClassType>();
  auto object = c10::ivalue::Object::create(c10::StrongTypePtr(unit, type), type->numAttributes());
  at::manual_seed(11);
  for (std::size_t k = 0; k < type->numAttributes(); ++k) {
    const std::string& name = type->getAttributeName(k);
    c10::IValue value = ValueOf(type->getAttribute(k));
    if (name == "w") value = (at::randn({6, 3}) * 0.5).set_requires_grad(true);
    if (name == "b") value = at::zeros({3}).set_requires_grad(true);
    if (name == "m") value = at::zeros({6});
    object->setSlot(k, std::move(value));
  }
  return jit::Module(object);
}

constexpr double kClip = 0.1;
constexpr std::int64_t kRecords = 7;

// The clipped sums of three steps, or why there is none.
struct ScriptWorld {
  std::vector<at::Tensor> sums;
  std::string refusal;
};

ScriptWorld LiveIn(const ScriptCase& script, std::int64_t outlier, std::int64_t records) {
  ScriptWorld world;
  try {
    const jit::Module module = ModuleOf(script);
    const ScriptModel model(module);
    const LossFunction loss = [&](const Batch& batch) {
      return at::cross_entropy_loss(model.Forward({batch[0]}), batch[1], {}, at::Reduction::None);
    };
    at::manual_seed(41);
    const Batch made_up = {at::randn({18, 6}), at::randint(3, {18})};
    Clipper clipper(model.Parameters(),
                    {.physical_batch = 2, .compare = false, .made_up = made_up});
    for (std::uint64_t step = 0; step < 3; ++step) {
      at::manual_seed(100 + step);
      Batch batch = {at::randn({kRecords, 6}), at::randint(3, {kRecords})};
      if (outlier >= 0) batch[0][outlier].fill_(6);
      for (at::Tensor& tensor : batch) tensor = tensor.narrow(0, 0, records);
      const BoundedSum sum = clipper.ClippedSum(loss, batch, FlatClipping(ClipNorm(kClip)));
      std::vector<at::Tensor> flat;
      for (const at::Tensor& gradient : sum.gradients) flat.push_back(gradient.flatten());
      world.sums.push_back(at::cat(flat).to(at::kDouble));
    }
  } catch (const Error& error) {
    world.refusal = error.what();
  }
  return world;
}

void ExpectWithin(const ScriptWorld& one, const ScriptWorld& other, double bound) {
  ASSERT_EQ(one.sums.size(), other.sums.size());
  for (std::size_t step = 0; step < one.sums.size(); ++step) {
    EXPECT_LE((one.sums[step] - other.sums[step]).norm().item<double>(), 1.01 * bound);
  }
}

constexpr const char* kBox =
    "class Box:\n"
    "  n : int\n"
    "  def __init__(self: __torch__.Box, n: int) -> NoneType:\n"
    "    self.n = n\n"
    "    return None\n"
    "  def more(self: __torch__.Box, x: Tensor) -> Tensor:\n"
    "    self.n = torch.add(self.n, 1)\n"
    "    return torch.add(x, self.n)\n";
// A class whose method does `body` with x.
#define METHOD(body)                                   \
  "class Box:\n"                                       \
  "  n : int\n"                                        \
  "  def __init__(self: __torch__.Box) -> NoneType:\n" \
  "    self.n = 0\n"                                   \
  "    return None\n"                                  \
  "  def do(self: __torch__.Box, x: Tensor) -> Tensor:\n" body
#define CALL "    return torch.add(torch.matmul(__torch__.Box().do(x), self.w), self.b)\n"
#define LINEAR "    return torch.add(torch.matmul(x, self.w), self.b)\n"
// y in place of x.
#define OF_Y "    return torch.add(torch.matmul(y, self.w), self.b)\n"

const std::vector<ScriptCase>& ScriptCases() {
  static const std::vector<ScriptCase> cases = {
      // Memory that was not written.
      {"empty_permuted", "", "", "    y = torch.add(x, torch.empty_permuted([6], [0]))\n" OF_Y,
       "'empty_permuted' (line '10' of the script"},
      {"empty_out", "", "",
       "    z = torch.empty([6], out=torch.zeros([1]))\n    y = torch.add(x, z)\n" OF_Y, "'empty'"},
      {"empty_strided", "", "", "    y = torch.add(x, torch.empty_strided([6], [1]))\n" OF_Y,
       "zeros or full"},
      {"empty_in_method", METHOD("    return torch.add(x, torch.empty([6]))\n"), "", CALL, ""},
      {"resize_in_method",
       METHOD("    y = torch.zeros([1])\n    z = torch.resize_(y, [6])\n"
              "    return torch.add(x, z)\n"),
       "", CALL, "'resize_'"},
      {"embedding_bag_unwritten", "", "",
       "    a = torch.embedding_bag(self.w, torch.zeros([6], dtype=4), torch.zeros([6], dtype=4))\n"
       "    y = torch.add(x, torch.to(torch.sum((a)[3]), 6))\n" OF_Y,
       ""},
      // Files.
      {"from_file", METHOD("    return torch.add(x, torch.from_file(\"/dev/zero\", False, 6))\n"),
       "", CALL, "'from_file'"},
      {"save", METHOD("    torch.save(x, \"hostile_save.pt\")\n    return x\n"), "", CALL,
       "'save'"},
      // Writes to weights.
      {"data_of_weight", "", "", "    _0 = torch.add_(torch.detach(self.b), 1)\n" LINEAR,
       "writes to its parameter 'b'"},
      {"prim_data_of_weight", "", "", "    _0 = torch.add_(ops.prim.data(self.b), 1)\n" LINEAR,
       "writes to its parameter 'b'"},
      {"set_data", "", "", "    ops.aten.set_data(self.b, torch.ones([3]))\n" LINEAR, "set_data"},
      {"requires_grad_", "", "", "    _0 = torch.requires_grad_(self.b, False)\n" LINEAR,
       "requires_grad_"},
      {"detach_", "", "", "    _0 = torch.detach_(self.b)\n" LINEAR, "'detach_'"},
      {"weight_in_list", "", "", "    a = [self.b]\n    _0 = torch.add_((a)[0], 1)\n" LINEAR,
       "writes to a parameter"},
      // Calls that are counted.
      {"attribute", "", "  n : int\n",
       "    self.n = torch.add(self.n, 1)\n    y = torch.add(x, self.n)\n" OF_Y, "attribute 'n'"},
      {"buffer", "", "", "    y = torch.add(x, torch.add_(self.m, 1.))\n" OF_Y, ""},
      {"buffer_data", "", "", "    y = torch.add(x, torch.add_(ops.prim.data(self.m), 1.))\n" OF_Y,
       ""},
      {"nested_list", "", "  a : List[List[float]]\n",
       "    _0 = torch.append((self.a)[0], 1.)\n    y = torch.add(x, "
       "torch.len((self.a)[0]))\n" OF_Y,
       ""},
      {"dict_of_lists", "", "  a : Dict[str, List[int]]\n",
       "    _0 = torch.append((self.a)[\"n\"], 1)\n"
       "    y = torch.add(x, torch.len((self.a)[\"n\"]))\n" OF_Y,
       ""},
      {"list_in_tuple", "", "  a : Tuple[List[int], int]\n",
       "    _0 = torch.append((self.a)[0], 1)\n    y = torch.add(x, torch.len((self.a)[0]))\n" OF_Y,
       ""},
      {"tensor_in_list", "", "  a : List[Tensor]\n",
       "    y = torch.add(x, torch.add_((self.a)[0], 1.))\n" OF_Y, ""},
      {"tensor_in_dict", "", "  a : Dict[str, Tensor]\n",
       "    y = torch.add(x, torch.add_((self.a)[\"n\"], 1.))\n" OF_Y, ""},
      {"object", kBox, "  a : __torch__.Box\n", "    y = (self.a).more(x)\n" OF_Y,
       "as its attribute 'a'"},
      {"objects_in_list", kBox, "  a : List[__torch__.Box]\n",
       "    y = ((self.a)[0]).more(x)\n" OF_Y, "as its attribute 'a'"},
      {"constant_of_trace", "", "", "    y = torch.add(x, torch.add_(CONSTANTS.c0, 1.))\n" OF_Y,
       ""},
      {"version", "", "", "    y = torch.add(x, ops.aten._version(self.b))\n" OF_Y, "_version"},
      // The batch by its layout, and text.
      {"stride", "", "", "    y = torch.add(x, (torch.stride(torch.t(x)))[0])\n" OF_Y, "strides"},
      {"as_strided", "", "", "    y = torch.as_strided(x, [1, 6], [6, 1])\n" OF_Y, "'as_strided'"},
      {"is_contiguous", "", "", "    y = torch.add(x, int(torch.is_contiguous(torch.t(x))))\n" OF_Y,
       "is_contiguous"},
      {"storage_offset", "", "", "    y = torch.add(x, torch.storage_offset(x))\n" OF_Y,
       "storage_offset"},
      {"warn", "", "", "    torch.warn(torch.format(\"{}\", torch.size(x, 0)))\n" LINEAR, ""},
      {"print", "", "", "    print(x)\n" LINEAR, ""},
      {"text_of_tensor", "", "", "    y = torch.add(x, torch.len(torch.format(\"{}\", x)))\n" OF_Y,
       "numbers and strings"},
      {"str_of_tensor", "", "", "    y = torch.add(x, torch.len(str(x)))\n" OF_Y,
       "numbers and strings"},
      {"text_of_tensors", "", "", "    y = torch.add(x, torch.len(str([x, x])))\n" OF_Y,
       "numbers and strings"},
      {"address", kBox, "", "    y = torch.add(x, ops.prim.id(__torch__.Box(0)))\n" OF_Y,
       "'prim::id'"},
      {"hash", "", "", "    y = torch.add(x, hash(x))\n" OF_Y, "hash"},
      {"clock", "", "", "    y = torch.add(x, ops.prim.TimePoint())\n" OF_Y, "TimePoint"},
      // Random numbers of its own.
      {"manual_seed", "", "",
       "    _0 = torch.manual_seed(1)\n    y = torch.add(x, torch.rand([6]))\n" OF_Y, "seed"},
      {"seed_in_method", METHOD("    _0 = torch.manual_seed(1)\n    return x\n"), "", CALL, "seed"},
      {"generator", "", "",
       "    g = ops.aten.Generator(device=torch.device(\"cpu\"), seed=1)\n"
       "    y = torch.add(x, torch.rand([6], generator=g))\n" OF_Y,
       "enerator"},
      // Other ways to run code that is not in the graph.
      {"fork", METHOD("    return torch.add(x, torch.empty_permuted([6], [0]))\n"), "",
       "    f = fork(__torch__.Box().do, x)\n    y = torch.wait(f)\n" OF_Y, "'empty_permuted'"},
      {"sorted_objects",
       "class Box:\n"
       "  n : int\n"
       "  def __init__(self: __torch__.Box, n: int) -> NoneType:\n"
       "    self.n = n\n"
       "    return None\n"
       "  def __lt__(self: __torch__.Box, other: __torch__.Box) -> bool:\n"
       "    _0 = torch.manual_seed(1)\n"
       "    return torch.lt(self.n, other.n)\n",
       "",
       "    a = [__torch__.Box(1), __torch__.Box(0)]\n    _0 = torch.sort(a)\n"
       "    y = torch.add(x, ((a)[0]).n)\n" OF_Y,
       "numbers and strings"},
      {"backward", "", "", "    torch.backward(torch.sum(self.b))\n" LINEAR, "'backward'"},
      {"grad_of_weight", "", "", "    y = torch.add(x, torch.numel(ops.prim.grad(self.b)))\n" OF_Y,
       "grad"},
      {"grad_mode_left_off", "", "", "    torch.set_grad_enabled(False)\n" LINEAR,
       "do not depend on any parameter"},
      // Writes that no schema names.
      {"batch_norm_writes_buffer", "", "",
       "    a = torch.expand(torch.add(self.m, 1.), [4, 6])\n"
       "    _0 = torch.batch_norm(a, None, None, self.m, torch.ones([6]), True, 1., 0.1, False)\n"
       "    y = torch.mul(x, torch.cos(torch.mul(self.m, 3.141592)))\n" OF_Y,
       ""},
      {"batch_norm_writes_weight", "", "",
       "    a = torch.expand(torch.add(self.b, 1.), [4, 3])\n"
       "    _0 = torch.batch_norm(a, None, None, self.b, torch.ones([3]), True, 1., 0.1, "
       "False)\n" LINEAR,
       ""},
      {"batch_norm_writes_detached_weight", "", "",
       "    a = torch.expand(torch.add(self.b, 1.), [4, 3])\n"
       "    _0 = torch.batch_norm(a, None, None, torch.detach(self.b), torch.ones([3]), True, 1., "
       "0.1, "
       "False)\n" LINEAR,
       ""},
      {"instance_norm_writes_view", "", "",
       "    a = torch.expand(torch.reshape(torch.add(self.m, 1.), [1, 6, 1]), [4, 6, 5])\n"
       "    _0 = torch.instance_norm(a, None, None, torch.alias(self.m), torch.ones([6]), True, "
       "1., "
       "0.1, False)\n"
       "    y = torch.add(x, self.m)\n" OF_Y,
       ""},
      // More of each kind.
      {"new_empty_strided", "", "",
       "    y = torch.add(x, torch.new_empty_strided(x, [6], [1]))\n" OF_Y, "zeros or full"},
      {"row_of_weight", "", "",
       "    _0 = torch.add_(torch.select(ops.prim.data(self.w), 0, 0), 1)\n" LINEAR,
       "writes to its parameter 'w'"},
      {"turned_weight", "", "",
       "    _0 = torch.squeeze_(torch.detach(self.b))\n"
       "    _1 = torch.unsqueeze_(self.b, 0)\n    y = torch.squeeze_(self.b, 0)\n" LINEAR,
       "parameter"},
      {"weight_or_copy", "", "",
       "    a = torch.clone(self.b)\n"
       "    if torch.eq(torch.size(x, 1), 6):\n      c = torch.detach(self.b)\n    else:\n      "
       "c = a\n"
       "    _0 = torch.add_(c, 1)\n" LINEAR,
       "writes to its parameter 'b'"},
      {"optional_list", "", "  a : List[Tuple[List[int], Tensor]]\n",
       "    _0 = torch.append(((self.a)[0])[0], 1)\n"
       "    _1 = torch.add_(((self.a)[0])[1], 1.)\n"
       "    y = torch.add(x, torch.len(((self.a)[0])[0]))\n"
       "    y0 = torch.add(y, ((self.a)[0])[1])\n"
       "    return torch.add(torch.matmul(y0, self.w), self.b)\n",
       ""},
      {"dense", "", "",
       "    y = torch.add(x, int(ops.aten.is_non_overlapping_and_dense(torch.t(x))))\n" OF_Y, "'"},
      {"sobol", "", "",
       "    _0 = ops.aten._sobol_engine_ff_(self.m, 1, torch.zeros([1, 6]), 1, 0)\n" LINEAR,
       "sobol"},
      {"index_by_value", "", "",
       "    i = torch.to(torch.mul(torch.gt(torch.sum(x), 20.), 9), 4)\n"
       "    y = torch.add(x, torch.index_select(self.m, 0, torch.reshape(i, [1])))\n" OF_Y,
       ""},
      {"inverse_by_value", "", "",
       "    a = torch.mul(torch.eye(2), torch.sub(6., torch.select(x, 1, 0)))\n"
       "    y = torch.add(x, torch.sum(torch.inverse(a)))\n" OF_Y,
       ""},
      {"cholesky_by_value", "", "",
       "    a = torch.mul(torch.eye(2), torch.sub(5., torch.select(x, 1, 0)))\n"
       "    y = torch.add(x, torch.sum(ops.aten.linalg_cholesky(a)))\n" OF_Y,
       ""},
      {"branch_by_value", "", "",
       "    if bool(torch.gt(torch.sum(x), 20.)):\n"
       "      ops.prim.RaiseException(\"large\")\n    else:\n      pass\n" LINEAR,
       "out of its tensor"},
      {"print_of_a_write", "", "",
       "    print(torch.add_(self.m, 1.))\n    y = torch.add(x, self.m)\n" OF_Y, ""},
      {"added_objects",
       "class Box:\n"
       "  n : int\n"
       "  def __init__(self: __torch__.Box, n: int) -> NoneType:\n"
       "    self.n = n\n"
       "    return None\n"
       "  def __add__(self: __torch__.Box, x: Tensor) -> Tensor:\n"
       "    return torch.add(x, torch.empty_permuted([6], [0]))\n",
       "", "    y = (__torch__.Box(1)).__add__(x)\n" OF_Y, "'empty_permuted'"},
      {"fork_in_a_fork",
       "class Box:\n"
       "  n : int\n"
       "  def __init__(self: __torch__.Box) -> NoneType:\n"
       "    self.n = 0\n"
       "    return None\n"
       "  def inner(self: __torch__.Box, x: Tensor) -> Tensor:\n"
       "    _0 = torch.manual_seed(1)\n"
       "    return x\n"
       "  def do(self: __torch__.Box, x: Tensor) -> Tensor:\n"
       "    f = fork(self.inner, x)\n"
       "    return torch.wait(f)\n",
       "", "    f = fork(__torch__.Box().do, x)\n    y = torch.wait(f)\n" OF_Y, "seed"},
      {"output_behind_a_branch", "", "",
       "    z = torch.zeros([6])\n"
       "    if torch.eq(torch.size(x, 1), 6):\n      y = torch.mul(x, 2., out=z)\n    else:\n      "
       "y = x\n" OF_Y,
       "'mul'"},
      // Honest ones.
      {"ok_linear", "", "", LINEAR, ""},
      {"ok_local_object", kBox, "", "    y = __torch__.Box(0).more(x)\n" OF_Y, ""},
      {"ok_local_list", "", "",
       "    a = annotate(List[Tensor], [])\n    _0 = torch.append(a, x)\n    y = torch.cat(a, "
       "1)\n" OF_Y,
       ""},
      {"ok_written_copy", "", "",
       "    y = torch.clone(x)\n    _0 = torch.mul_(torch.select(y, 1, 0), 2.)\n" OF_Y, ""},
      {"ok_written_input", "", "", "    y = torch.mul_(x, 0.5)\n" OF_Y, ""},
      {"ok_fork", METHOD("    return torch.tanh(x)\n"), "",
       "    f = fork(__torch__.Box().do, x)\n    y = torch.wait(f)\n" OF_Y, ""},
      {"ok_output_that_is_not_given", "", "",
       "    out = annotate(Optional[Tensor], None)\n"
       "    if torch.__is__(out, None):\n      y = torch.div(x, 2.)\n    else:\n      "
       "out0 = unchecked_cast(Tensor, out)\n      y = torch.div(x, torch.zeros([6]), "
       "out=out0)\n" OF_Y,
       ""},
      {"ok_kind_of_device", "", "",
       "    if torch.eq(ops.prim.type(ops.prim.device(x)), \"cpu\"):\n      y = x\n    else:\n     "
       " "
       "y = torch.neg(x)\n" OF_Y,
       ""},
      {"ok_text_of_sizes", "", "",
       "    if torch.ne(torch.dim(x), 2):\n"
       "      ops.prim.RaiseException(torch.format(\"{} sizes\", torch.size(x)))\n    else:\n      "
       "pass\n" LINEAR,
       ""},
  };
  return cases;
}

#undef METHOD
#undef CALL
#undef LINEAR
#undef OF_Y

TEST(ScriptGraph, RefusesOrIsolatesEveryScriptOnAllNeighbours) {
  for (const ScriptCase& script : ScriptCases()) {
    SCOPED_TRACE(script.name);
    const ScriptWorld all = LiveIn(script, -1, kRecords);
    const ScriptWorld first = LiveIn(script, 0, kRecords);
    const ScriptWorld last = LiveIn(script, kRecords - 1, kRecords);
    const ScriptWorld absent = LiveIn(script, -1, kRecords - 1);
    for (const ScriptWorld* world : {&first, &last, &absent}) {
      EXPECT_EQ(all.refusal, world->refusal);
    }
    EXPECT_EQ(all.refusal.empty(), *script.refusal == '\0') << all.refusal;
    EXPECT_THAT(all.refusal, HasSubstr(script.refusal));
    EXPECT_FALSE(HasNumber(all.refusal)) << all.refusal;
    EXPECT_EQ(all.refusal.find('\n'), std::string::npos) << all.refusal;
    if (!all.refusal.empty()) continue;
    ExpectWithin(all, first, 2 * kClip);
    ExpectWithin(all, last, 2 * kClip);
    ExpectWithin(all, absent, kClip);
  }
  EXPECT_FALSE(std::filesystem::exists("hostile_save.pt"));
}

TEST(ScriptGraph, KeepsNothingThatAnIsolatedPassWrote) {
  for (const ScriptCase& script : ScriptCases()) {
    if (*script.refusal != '\0') continue;
    SCOPED_TRACE(script.name);
    const jit::Module module = ModuleOf(script);
    const jit::Module before = module.deepcopy();
    const ScriptModel model(module);
    Clipper clipper(model.Parameters(), {.compare = false});
    const LossFunction loss = [&](const Batch& batch) { return model.Forward({batch[0]}).sum(1); };
    const Batch batch = {at::randn({4, 6})};
    const at::Tensor given = batch[0].clone();
    clipper.ClippedSum(loss, batch, FlatClipping(ClipNorm(kClip)));
    EXPECT_TRUE(at::equal(batch[0], given));
    const auto slots = module._ivalue()->slots();
    for (std::size_t k = 0; k < slots.size(); ++k) {
      std::ostringstream now;
      std::ostringstream then;
      now << slots[k];
      then << before._ivalue()->getSlot(k);
      EXPECT_EQ(now.str(), then.str());
    }
  }
}

// libtorch leaves the last output of this sum as it finds the memory, and zeros when it is fresh:
// so this looks at the graph.
TEST(ScriptGraph, UnwrittenOutputsAreZeros) {
  for (const ScriptCase& script : ScriptCases()) {
    if (std::string(script.name) != "embedding_bag_unwritten") continue;
    const std::string graph = MakeScriptGraph(ModuleOf(script)).graph->toString(false);
    EXPECT_THAT(graph, HasSubstr("aten::zeros_like(%"));
  }
}

TEST(PureOperations, AreNamed) {
  for (const char* kind : {"aten::add", "aten::add_", "aten::conv2d", "prim::If", "aten::append"}) {
    EXPECT_TRUE(IsPureOperation(kind)) << kind;
  }
  for (const char* kind : {"aten::empty",
                           "aten::empty_like",
                           "aten::resize_",
                           "aten::set_",
                           "aten::as_strided",
                           "aten::stride",
                           "aten::detach_",
                           "aten::requires_grad_",
                           "aten::save",
                           "aten::warn",
                           "aten::manual_seed",
                           "aten::hash",
                           "prim::id",
                           "prim::Print",
                           "prim::data",
                           "prim::CallMethod",
                           "prim::fork",
                           "aten::native_batch_norm",
                           "custom::add",
                           "add",
                           ""}) {
    EXPECT_FALSE(IsPureOperation(kind)) << kind;
  }
}

}  // namespace
}  // namespace sordino
