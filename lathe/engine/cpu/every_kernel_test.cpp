// Every function of the kernel table is reached by some step, and every step that training or
// inference can plan reaches its kernels through the table: the examples of all ops run on a table
// whose functions note that they were called.

#include <gtest/gtest.h>

#include <set>

#include "lathe/engine/backend.h"
#include "lathe/engine/cpu/step.h"
#include "lathe/engine/cpu/winograd.h"
#include "lathe/engine/lower.h"
#include "lathe/engine/testing/example_calls.h"
#include "lathe/engine/testing/executor_cases.h"

namespace lathe::engine {
namespace {

std::set<std::string>& reached() {
  static std::set<std::string> names;
  return names;
}

// Stands in for one function of the table: notes its name and calls the plain one.
template <auto Member>
struct Noted {
  static inline const char* name = nullptr;

  template <typename Result, typename... Args>
  static void put(Kernels& table, const char* entry, Result (*)(Args...)) {
    name = entry;
    table.*Member = [](Args... args) -> Result {
      reached().insert(name);
      return (kernels(Isa::Plain).*Member)(args...);
    };
  }
};

#define LATHE_ENTRY_NAME(name) #name,
constexpr const char* kEntries[] = {LATHE_EVERY_KERNEL(LATHE_ENTRY_NAME)};
#undef LATHE_ENTRY_NAME

Kernels noting_table() {
  Kernels table = kernels(Isa::Plain);
#define LATHE_NOTE(name) Noted<&Kernels::name>::put(table, #name, table.name);
  LATHE_EVERY_KERNEL(LATHE_NOTE)
#undef LATHE_NOTE
  return table;
}

TEST(KernelList, HasEveryFunctionOfTheTable) {
  EXPECT_EQ(sizeof(Kernels), sizeof(const char*) + std::size(kEntries) * sizeof(void (*)()));
}

// Runs the steps of a graph one after another, each over all its rows; false where a node has none.
bool run_steps(const ExampleCall& call, const Kernels& table) {
  const Graph& graph = call.graph;
  const SymbolValues symbols = ops::example_symbols();
  std::map<Value, Tensor> values;
  std::vector<AlignedBuffer> scratch(2);  // of two threads, the first of which does everything
  AlignedBuffer shared;
  const ParallelTasks parallel = [](std::int64_t tasks,
                                    const std::function<void(std::int64_t, int)>& task) {
    for (std::int64_t i = 0; i < tasks; ++i) task(i, 0);
  };
  for (const NodeId id : graph.topological_order()) {
    if (graph.is(id, "input")) values[{id, 0}] = call.feed.at(graph.name(id));
    if (graph.is(id, "state")) values[{id, 0}] = call.state.at(graph.name(id));
    if (graph.op(id).is_source) continue;
    const CpuKernel* kernel = Registry<CpuKernel>::instance().find(graph.op(id).name);
    const std::unique_ptr<Step> step = kernel ? kernel->make(graph, id) : nullptr;
    if (step == nullptr) return false;
    std::vector<const Tensor*> states;
    std::vector<const std::byte*> inputs;
    for (const Value& value : graph.inputs(id)) {
      const bool is_state = !value.is_none() && graph.is(value.node, "state");
      states.push_back(is_state ? &values.at(value) : nullptr);
      inputs.push_back(value.is_none() ? nullptr : values.at(value).bytes());
    }
    step->prepare(table, states);
    std::vector<std::byte*> outputs;
    for (std::size_t i = 0; i < graph.types(id).size(); ++i) {
      const Type& type = graph.types(id)[i];
      Tensor& result = values[{id, static_cast<std::int32_t>(i)}] =
          Tensor(type.dtype, type.dims(symbols));
      outputs.push_back(result.mutable_bytes());
    }
    if (const RowSpace* space = step->rows()) {
      const std::int64_t rows = space->rows.evaluate(symbols);
      const AlignedBuffer step_scratch(
          std::max<std::int64_t>(64, step->scratch_bytes(table, rows)));
      step->run_rows({table, rows, inputs, outputs, step_scratch.data()});
      if (const Product* product = step->as_product()) {
        const ProductExtents extents{product->rows.evaluate(symbols),
                                     product->columns.evaluate(symbols),
                                     product->depth.evaluate(symbols)};
        const Partition all = make_partition(extents, table.gemm_grain(), 1, step->block_limits());
        const AlignedBuffer room(
            std::max<std::int64_t>(64, step->block_scratch_bytes(table, all.largest())));
        for (std::int64_t i = 0; i < all.count(); ++i)
          step->run_block({table, extents, all.block(i), inputs, outputs, room.data()});
      }
    } else {
      const WholeCall whole{table,   graph,   id,     symbols,  inputs,
                            outputs, scratch, shared, parallel, parallel};
      if (step->has_tasks())
        for (std::int64_t i = 0; i < step->num_tasks(whole); ++i) step->run_task(whole, i);
      else
        step->run_whole(whole);
    }
  }
  return true;
}

// Images lie otherwise once they are lowered.
ExampleCall lowered_images(const std::string& text) {
  const Graph graph = parse_graph(text);
  return {lower(graph, find_backend("cpu")), random_feed(graph, ops::example_symbols(), 1),
          random_state(graph, 2)};
}

// More tokens of a sequence than attend to a cache one by one: rounded rows become floats for them.
ExampleCall tokens_of_one_sequence() {
  const Graph graph = parse_graph(R"(
    q = input() : f32[6,4]
    k_cache = input() : bf16[9,4]
    offsets = input() : i32[2]
    starts = input() : i32[1]
    lengths = input() : i32[1]
    y = cached_attention(q, q, q, k_cache, k_cache, offsets, starts, lengths) {heads=2}
    output y <- y#0)");
  Feed feed = random_feed(graph, {}, 1);
  const auto integers = [](std::vector<std::int32_t> values) {
    return Tensor::from<std::int32_t>({std::ssize(values)}, std::span<const std::int32_t>(values));
  };
  feed["k_cache"] = Tensor(DType::BF16, {9, 4});
  feed["offsets"] = integers({0, 6});
  feed["starts"] = integers({0});
  feed["lengths"] = integers({0});
  return {graph, feed, {}};
}

TEST(EveryKernel, IsReachedByTheStepsOfSomeOp) {
  const Kernels table = noting_table();
  for (const auto& [name, op] : OpRegistry::instance().all())
    for (const std::string& text : op.examples)
      for (const bool has_weights : {false, true})
        run_steps(make_example_call(text, has_weights), table);
  // Zeros choose among the kernels of a linear layer: a tenth of the elements is left, or rows and
  // columns are empty.
  for (const std::int64_t period : {10, 1}) {
    ExampleCall call = make_example_call("linear(f32[T,64], f32[128,64], f32[128])", true);
    for (auto& [name, weight] : call.state)
      for (std::int64_t i = 0; i < weight.num_elements(); ++i)
        if (period == 10 ? i % 10 != 0 : i / 64 % 2 == 0 || i % 2 == 0)
          weight.mutable_data<float>()[static_cast<std::size_t>(i)] = 0;
    EXPECT_TRUE(run_steps(call, table));
  }
  EXPECT_TRUE(run_steps(lowered_images(R"(
    x = input() : f32[B,3,5,5]
    w = state() : f32[4,3,3,3]
    c = conv2d(x, w) {pads=[1,1,1,1]}
    p = max_pool2d(c) {kernel=[2,2]}
    output p <- p)"),
                        table));
  EXPECT_TRUE(run_steps(lowered_images(R"(
    x = input() : f32[B,3,4,4]
    dy = input() : f32[B,16,4,4]
    w = state() : f32[16,3,3,3]
    g = state() : f32[16]
    c = conv2d(x, w) {pads=[1,1,1,1]}
    n = normalize_batch(c, g, g)
    d = normalize_batch_gradient(dy, c, g, n#1, n#2)
    output n <- n
    output d <- d)"),
                        table));
  ExampleCall tiles = lowered_images(R"(
    x = input() : f32[B,3,12,12]
    w = state() : f32[32,3,3,3]
    v = state() : f32[32,32,3,3]
    c = conv2d(x, w) {pads=[1,1,1,1]}
    y = conv2d(c, v) {pads=[1,1,1,1]}
    p = max_pool2d(y) {kernel=[2,2]}
    output p <- p)");
  use_winograd(tiles.graph);
  EXPECT_TRUE(run_steps(tiles, table));
  ExampleCall trained = lowered_images(R"(
    x = input() : f32[B,3,6,6]
    dy = input() : f32[B,16,6,6]
    w = state() : f32[16,3,3,3]
    v = state() : f32[16,16,3,3]
    g = state() : f32[16]
    c = conv2d(x, w) {pads=[1,1,1,1]}
    r = relu(c)
    y = conv2d(r, v) {pads=[1,1,1,1]}
    n = normalize_batch(y, g, g)
    d = normalize_batch_gradient(dy, y, g, n#1, n#2)
    dr = conv2d_input_gradient(d, v) {pads=[1,1,1,1]} : f32[B,16,6,6]
    dv = conv2d_weight_gradient(d, r) {pads=[1,1,1,1]} : f32[16,16,3,3]
    u = add(v, dv)
    output n <- n
    output dr <- dr
    state v <- u)");
  use_winograd(trained.graph);
  EXPECT_TRUE(run_steps(trained, table));
  EXPECT_TRUE(run_steps(tokens_of_one_sequence(), table));
  // Queries that are cut.
  EXPECT_TRUE(run_steps(
      make_example_call("attention(f32[1,64,8], f32[1,64,8], f32[1,64,8]) {heads=1}", false),
      table));
  for (const std::string name : kEntries) {
    if (name == "fma_burst") continue;  // measures the machine: fma_peak's
    EXPECT_TRUE(reached().contains(name)) << "no step reaches " << name;
  }
}

}  // namespace
}  // namespace lathe::engine
