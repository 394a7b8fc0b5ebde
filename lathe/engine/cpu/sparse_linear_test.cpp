// A masked linear layer through the executor: which kernel is planned, when, and what it gives.

#include <functional>

#include "lathe/engine/cpu/cpu_executor.h"
#include "lathe/engine/cpu/every_isa.h"
#include "lathe/engine/testing/executor_cases.h"

namespace lathe::engine {
namespace {

constexpr const char* kMasked = R"(
  x = input() : f32[T,150]
  w = state() : f32[70,150]
  mask = state() {role="mask"} : f32[70,150]
  b = state() : f32[70]
  masked = mul(w, mask)
  h = linear(x, masked, b)
  g = gelu(h)
  v = state() : f32[70,150]
  vmask = state() {role="mask"} : f32[70,150]
  vmasked = mul(v, vmask)
  r = linear(x, vmasked)
  y = add(r, g)
  output y <- y
)";

using Kept = std::function<bool(std::int64_t, std::int64_t)>;

Tensor mask_where(const Tensor& like, const Kept& is_kept) {
  Tensor mask(DType::F32, like.dims());
  const std::int64_t k = like.dims()[1];
  for (std::int64_t i = 0; i < mask.num_elements(); ++i)
    mask.mutable_data<float>()[static_cast<std::size_t>(i)] = is_kept(i / k, i % k) ? 1 : 0;
  return mask;
}

State masked_state(const Graph& graph, const Kept& is_kept) {
  State state = random_state(graph, 3);
  for (const char* name : {"mask", "vmask"}) state[name] = mask_where(state.at(name), is_kept);
  return state;
}

// What is said of each linear layer.
std::vector<KernelChoice> choices(const Executor& executor) {
  std::vector<KernelChoice> all;
  for (const PlannedStep& step : executor.report().steps)
    if (step.op.ends_with("linear")) all.push_back(step.choice);
  return all;
}

struct Pruned {
  const char* name;
  Kept is_kept;
};
const Pruned kPruned[] = {
    {"element", [](auto r, auto c) { return (r * 31 + c * 17) % 12 == 0; }},
    {"1:4", [](auto r, auto c) { return (c + r * 7 + c / 4) % 4 == 0; }},
    {"1x16", [](auto r, auto c) { return (r * 5 + c / 16) % 9 == 0; }},
    {"4x4", [](auto r, auto c) { return (r / 4 * 3 + c / 4) % 8 == 0; }},
    {"row", [](auto r, auto) { return r % 5 == 0; }},
    {"column", [](auto, auto c) { return c % 5 == 0; }},
    {"nothing left", [](auto, auto) { return false; }},
    {"all left", [](auto, auto) { return true; }},
};

class MaskedLinear : public EveryIsa {};

// Two sums of at most 150 products below 1: the roundings of each add up to less than 150 * 150 *
// 2^-24, which gelu makes no more than 1.13 times as large.
TEST_P(MaskedLinear, AgreesWithTheReference) {
  constexpr double kTolerance = 2.13 * 150 * 150 * 0x1p-24;
  const Graph graph = parse_graph(kMasked);
  ThreadPool pool(2);
  for (const Pruned& pruned : kPruned) {
    SCOPED_TRACE(pruned.name);
    const State state = masked_state(graph, pruned.is_kept);
    const auto reference = make_executor(graph, state, {.device = "reference"});
    CpuExecutor executor(graph, state, {.pool = &pool, .isa = GetParam()});
    for (const KernelChoice& choice : choices(executor))
      EXPECT_EQ(choice.kernel.empty(), pruned.name == std::string("all left")) << choice.kernel;
    for (const std::int64_t rows : {1, 3, 40, 100}) {
      const Feed feed = random_feed(graph, {{"T", rows}}, 5);
      expect_near(executor.run(feed), reference->run(feed), kTolerance);
    }
  }
}

// A weight that was pruned times infinity is NaN; where it was kept the sum is infinite.
TEST_P(MaskedLinear, SpreadsWhatIsNotFiniteAsTheReferenceDoes) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[T,50]
    w = state() : f32[70,50]
    y = linear(x, w)
    output y <- y
  )");
  State state = random_state(graph, 3);
  const Tensor mask = mask_where(state.at("w"), kPruned[0].is_kept);
  for (std::size_t i = 0; i < mask.data<float>().size(); ++i)
    state.at("w").mutable_data<float>()[i] *= mask.data<float>()[i];
  Feed feed = random_feed(graph, {{"T", 20}}, 5);
  feed.at("x").mutable_data<float>()[3 * 50 + 20] = std::numeric_limits<float>::infinity();
  const Feed expected = make_executor(graph, state, {.device = "reference"})->run(feed);
  CpuExecutor executor(graph, state, {.isa = GetParam()});
  EXPECT_EQ(choices(executor)[0].kernel, "elements");
  const Feed actual = executor.run(feed);
  for (std::int64_t i = 0; i < actual.at("y").num_elements(); ++i) {
    const double y = actual.at("y").at(i);
    EXPECT_EQ(std::isnan(y), i / 70 == 3 && mask.at(i % 70 * 50 + 20) == 0) << i;
    EXPECT_EQ(std::isinf(y), i / 70 == 3 && mask.at(i % 70 * 50 + 20) == 1) << i;
    EXPECT_EQ(std::isnan(y), std::isnan(expected.at("y").at(i))) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(, MaskedLinear, testing::ValuesIn(supported_isas()), isa_name);

TEST(SparseLinear, IsPlannedAgainWhenTheMaskChanges) {
  const Graph graph = parse_graph(kMasked);
  CpuExecutor executor(graph, masked_state(graph, [](auto, auto) { return true; }),
                       {.isa = Isa::Plain});
  EXPECT_EQ(choices(executor), (std::vector<KernelChoice>{{}, {}}));
  const State sparse = masked_state(graph, kPruned[0].is_kept);
  executor.set_state({{"mask", sparse.at("mask")}});
  const Feed feed = random_feed(graph, {{"T", 30}}, 5);
  const Feed y = executor.run(feed);
  EXPECT_EQ(choices(executor)[0].kernel, "elements");
  EXPECT_TRUE(choices(executor)[0].reason.starts_with("91.7 % zeros, "));
  EXPECT_EQ(choices(executor)[1], KernelChoice{});
  expect_identical(y, CpuExecutor(graph, executor.state(), {.isa = Isa::Plain}).run(feed));
}

TEST(SparseLinear, SaysWhyItIsDense) {
  const Graph graph = parse_graph(kMasked);
  const State state = masked_state(graph, [](auto r, auto c) { return (r + c) % 10 != 0; });
  CpuExecutor executor(graph, state, {.isa = Isa::Plain});
  EXPECT_EQ(choices(executor)[0], (KernelChoice{"dense", "10.0 % zeros, too few to leave out"}));
  EXPECT_EQ(kernel_text(executor.report().steps.back()), "fused_linear (dense)");
}

// Training multiplies with every weight, whatever the mask: its gradients are dense, too.
TEST(SparseLinear, IsDenseInAGraphThatUpdatesStates) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[T,64]
    w = state() : f32[64,64]
    mask = state() {role="mask"} : f32[64,64]
    masked = mul(w, mask)
    y = linear(x, masked)
    doubled = add(w, w)
    state w <- doubled
    output y <- y
  )");
  State state = random_state(graph, 3);
  state["mask"] = mask_where(state.at("mask"), kPruned[0].is_kept);
  CpuExecutor executor(graph, state, {});
  executor.run(random_feed(graph, {{"T", 64}}, 5));
  EXPECT_EQ(choices(executor), std::vector<KernelChoice>{{}});
}

}  // namespace
}  // namespace lathe::engine
