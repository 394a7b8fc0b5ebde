// A BERT of two small layers through everything that needs models and the engine at once: executors
// against each other, padded against packed, and every pass of the registry.

#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/core/pass.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/engine/cpu/cpu_executor.h"
#include "lathe/engine/cpu/every_isa.h"
#include "lathe/engine/testing/executor_cases.h"
#include "lathe/models/family.h"
#include "lathe/models/initialize.h"

namespace lathe::train {
namespace {

using engine::Isa;

constexpr double kTolerance = 2e-5;  // as for BERT-tiny's logits against PyTorch

Graph small_bert(const char* task, const char* activation = "gelu") {
  const std::string config = fmt::format(
      "vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, "
      "intermediate_size=64, max_position_embeddings=16, initializer_range=0.2, "
      "hidden_act=\"{}\"",
      activation);
  return models::build(models::FamilyRegistry::instance().at("bert", "model"),
                       parse_attributes(config), {.task = task});
}

// Rows of these lengths as a padded batch and as a packed one, with the same ids and labels.
struct Batch {
  Feed padded, packed;
  std::vector<std::int64_t> lengths;
  std::int64_t longest = 0;
};

Batch make_batch(std::vector<std::int64_t> lengths, unsigned seed) {
  std::mt19937 random(seed);
  Batch batch;
  batch.lengths = std::move(lengths);
  for (const std::int64_t length : batch.lengths) batch.longest = std::max(batch.longest, length);
  const auto rows = static_cast<std::int64_t>(batch.lengths.size());
  std::vector<std::int32_t> padded, mask, packed, offsets{0}, labels;
  for (const std::int64_t length : batch.lengths) {
    for (std::int64_t i = 0; i < batch.longest; ++i) {
      const auto id = static_cast<std::int32_t>(random() % 50);
      padded.push_back(id);  // padding holds ids too, which the mask must hide
      mask.push_back(i < length ? 1 : 0);
      if (i < length) packed.push_back(id);
    }
    offsets.push_back(static_cast<std::int32_t>(packed.size()));
    labels.push_back(static_cast<std::int32_t>(random() % 2));
  }
  const auto tensor = [](std::vector<std::int64_t> dims, const std::vector<std::int32_t>& values) {
    return Tensor::from<std::int32_t>(std::move(dims), std::span<const std::int32_t>(values));
  };
  batch.padded["input_ids"] = tensor({rows, batch.longest}, padded);
  batch.padded["attention_mask"] = tensor({rows, batch.longest}, mask);
  batch.packed["input_ids"] = tensor({static_cast<std::int64_t>(packed.size())}, packed);
  batch.packed["offsets"] = tensor({rows + 1}, offsets);
  batch.padded["labels"] = batch.packed["labels"] = tensor({rows}, labels);
  return batch;
}

TEST(SmallBert, GivesTheSameOnEveryPathThreadCountAndBatch) {
  const Graph padded = small_bert("classify");
  Graph packed = padded;
  run_pass("pack-sequences", packed);
  const State state = models::initialize(padded, 1);
  for (const Isa isa : engine::supported_isas()) {
    SCOPED_TRACE(name(isa));
    for (const bool is_packed : {false, true}) {
      SCOPED_TRACE(is_packed ? "packed" : "padded");
      const Graph& graph = is_packed ? packed : padded;
      ThreadPool two(2), three(3);
      const auto alone = engine::make_executor(graph, state, {.isa = isa});
      const auto pair = engine::make_executor(graph, state, {.pool = &two, .isa = isa});
      const auto triple = engine::make_executor(graph, state, {.pool = &three, .isa = isa});
      // Growing and shrinking in rows and in length.
      for (const std::vector<std::int64_t>& lengths :
           {std::vector<std::int64_t>{3}, {5, 16, 1}, {2, 2, 7, 4, 1, 16, 9, 3, 16, 16}, {4, 4}}) {
        const Batch batch = make_batch(lengths, 3);
        const Feed& feed = is_packed ? batch.packed : batch.padded;
        const Feed outputs = alone->run(feed);
        engine::expect_near(
            outputs,
            engine::make_executor(padded, state, {.device = "reference"})->run(batch.padded),
            kTolerance);
        engine::expect_identical(pair->run(feed), outputs);
        engine::expect_identical(triple->run(feed), outputs);
      }
    }
  }
}

TEST(SmallBert, EncodesTokensAlikePaddedAndPackedWithEveryActivation) {
  for (const char* activation : {"gelu", "gelu_new", "relu", "silu", "quick_gelu", "tanh"}) {
    SCOPED_TRACE(activation);
    const Graph padded = small_bert("encode", activation);
    Graph packed = padded;
    run_pass("pack-sequences", packed);
    const State state = models::initialize(padded, 2);
    Batch batch = make_batch({5, 1, 9}, 4);
    batch.padded.erase("labels");
    batch.packed.erase("labels");
    const Tensor expected = engine::make_executor(padded, state, {.device = "reference"})
                                ->run(batch.padded)["last_hidden_state"];
    for (const char* kind : {"reference", "cpu"}) {
      const Tensor tokens = engine::make_executor(packed, state, {.device = kind})
                                ->run(batch.packed)["last_hidden_state"];
      std::int64_t token = 0;
      for (std::size_t row = 0; row < batch.lengths.size(); ++row)
        for (std::int64_t i = 0; i < batch.lengths[row]; ++i, ++token)
          for (std::int64_t feature = 0; feature < 32; ++feature)
            ASSERT_NEAR(
                tokens.at(token * 32 + feature),
                expected.at((static_cast<std::int64_t>(row) * batch.longest + i) * 32 + feature),
                kTolerance);
    }
  }
}

TEST(SmallBert, PredictsATokenOfADecoderFromThoseBeforeIt) {
  Graph graph = small_bert("causal-lm");
  graph.remove_output("loss");
  run_pass("remove-dead-nodes", graph);
  graph.erase(graph.at("labels"));
  run_pass("pack-sequences", graph);
  const State state = models::initialize(graph, 2);
  const auto logits = [&](const char* kind, std::int32_t last) {
    Feed feed;
    feed["input_ids"] = Tensor::from<std::int32_t>({7}, {5, 6, 7, 8, last, 9, 3});
    feed["offsets"] = Tensor::from<std::int32_t>({3}, {0, 5, 7});
    return engine::make_executor(graph, state, {.device = kind})->run(feed)["logits"];
  };
  for (const char* kind : {"reference", "cpu"}) {
    const Tensor one = logits(kind, 10), other = logits(kind, 11);
    for (std::int64_t token = 0; token < 7; ++token) {
      bool is_same = true;
      for (std::int64_t i = token * 50; i < token * 50 + 50; ++i)
        is_same = is_same && one.at(i) == other.at(i);
      EXPECT_EQ(is_same, token != 4) << kind << ", token " << token;
    }
  }
}

TEST(SmallBert, NamesTheEmbeddingOfAnIdOrAPositionOutsideItsTable) {
  const Graph graph = small_bert("encode");
  const auto executor = engine::make_executor(graph, models::initialize(graph, 1));
  const auto refusal = [&](std::int64_t length, std::int32_t id) {
    Batch batch = make_batch({length}, 5);
    batch.padded["input_ids"].mutable_data<std::int32_t>()[0] = id;
    return error_text([&] { executor->run(batch.padded); });
  };
  EXPECT_EQ(refusal(4, 50),
            "node \"bert.embeddings.add_position/fused\": id 50 is outside the table of 50 rows");
  EXPECT_EQ(refusal(17, 0),
            "node \"bert.embeddings.add_position/fused\": id 16 is outside the table of 16 rows");
  EXPECT_EQ(refusal(16, 49), "no error");
}

TEST(SmallBert, ListsEveryNodeItCameFromInThePlan) {
  const Graph graph = small_bert("classify");
  engine::CpuExecutor executor(graph, models::initialize(graph, 1), {});
  executor.run(make_batch({3, 9}, 6).padded);
  const engine::PlanReport report = executor.report();
  EXPECT_LT(report.arena_bytes, report.arena_bytes_unshared);
  std::set<std::string> origins;
  for (const engine::PlannedStep& step : report.steps)
    for (const std::string& origin : step.origins)
      EXPECT_TRUE(origins.insert(origin).second) << origin << " is computed twice";
  for (const NodeId id : graph.topological_order()) {
    if (graph.op(id).is_source || graph.is(id, "dropout")) continue;
    EXPECT_TRUE(origins.contains(graph.name(id))) << graph.name(id);
  }
}

class EveryPass : public testing::TestWithParam<std::string> {};

// Runs the pass twice; says how it refused, if it did. A pass that demands another form of the
// graph may refuse this one.
std::string run_twice(const Pass& pass, Graph graph, State state, const Feed& feed) {
  PassContext context{.state = &state, .feeds = {feed}};
  for (const AttributeSpec& option : pass.options) {
    if (!option.required) continue;
    // Only a node's name can be made up here, and it should be one that nobody reads.
    if (option.name != "name") return "needs " + option.name + ", which this test cannot guess";
    graph.add(
        {.name = "unread", .op = "relu", .inputs = {{graph.at("bert.embeddings.add_type"), 0}}});
    context.options[option.name] = std::string("unread");
  }
  try {
    run_pass(pass.name, graph, context);
  } catch (const UserError& error) {
    return error.message();
  }
  verify(graph);
  const std::string text = print(graph);
  EXPECT_EQ(print(parse_graph(text)), text);
  if (!pass.is_idempotent) return "no error";
  EXPECT_EQ(run_pass(pass.name, graph, context).changed, 0);
  EXPECT_EQ(print(graph), text);
  return "no error";
}

TEST_P(EveryPass, LeavesAValidBertAndHasNothingLeftToDo) {
  const Pass& pass = PassRegistry::instance().at(GetParam(), "pass");
  for (const char* task : {"classify", "mlm", "encode"}) {
    SCOPED_TRACE(task);
    const Graph padded = small_bert(task);
    Graph packed = padded;
    run_pass("pack-sequences", packed);
    const State state = models::initialize(padded, 1);
    Batch batch = make_batch({3, 7}, 7);
    if (std::string_view(task) == "mlm") {  // a label for each token
      batch.padded["labels"] = batch.padded["attention_mask"];
      batch.packed["labels"] = batch.packed["input_ids"];
    }
    const std::string on_padded = run_twice(pass, padded, state, batch.padded);
    const std::string on_packed = run_twice(pass, packed, state, batch.packed);
    EXPECT_TRUE(on_padded == "no error" || on_packed == "no error") << on_padded << "\n"
                                                                    << on_packed;
  }
}

std::string pass_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Registry, EveryPass, testing::ValuesIn(PassRegistry::instance().names()),
                         pass_name);

}  // namespace
}  // namespace lathe::train
