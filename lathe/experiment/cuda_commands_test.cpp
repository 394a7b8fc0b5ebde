// Every graph that a command runs has kernels on a GPU. Known without one: a backend plans what it
// is given as `cuda` would, notes what that refuses, and runs it on the CPU.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "lathe/compress/packed_weights.h"
#include "lathe/engine/backend.h"
#include "lathe/engine/packed_weights.h"
#include "lathe/engine/parameter_graph.h"
#include "lathe/experiment/evaluate.h"
#include "lathe/experiment/fine_tune.h"
#include "lathe/experiment/pipeline/compress.h"
#include "lathe/experiment/predict.h"
#include "lathe/experiment/prune.h"
#include "lathe/experiment/quantize.h"
#include "lathe/experiment/sensitivity.h"
#include "lathe/experiment/testing/opinions.h"

namespace lathe::experiment {
namespace {

// What no kernel was found for since it was last emptied.
std::set<std::string>& refused() {
  static std::set<std::string> ops;
  return ops;
}
int num_planned = 0;

void note_refusals(const Graph& graph, bool is_of_states = false) {
  for (const auto& [op, count] : engine::count_fallbacks(graph, engine::find_backend("cuda")))
    // Codes without a kernel are decoded by their definition, once.
    if (!is_of_states || op != "decode") refused().insert(op);
  ++num_planned;
}

const Register planner{engine::Backend{
    .name = "planned-for-cuda",
    .summary = "notes what cuda would refuse, and runs on the CPU",
    .can_run = [](const Graph& graph,
                  NodeId id) { return engine::find_backend("cpu").can_run(graph, id); },
    .is_available = [] { return false; },
    .make =
        [](const Graph& graph, State state, const engine::ExecutionOptions& options) {
          if (graph.state_updates().empty()) {
            const engine::SplitGraph split = engine::split_parameters(
                graph, engine::find_packed_weights(graph, engine::find_backend("cuda")));
            note_refusals(split.main);
            note_refusals(split.parameters, true);
          } else {
            note_refusals(graph);
          }
          engine::ExecutionOptions on_cpu = options;
          on_cpu.device = "cpu";
          return engine::make_executor(graph, std::move(state), on_cpu);
        },
}};

class CudaCommands : public testing::Test {
 protected:
  CudaCommands() {
    execution_.device = "planned-for-cuda";
    refused().clear();
    num_planned = 0;
    tiny_ = io::write_tiny_bert(scratch_, "m");
    data_ = write_opinions(scratch_, "data");
    training_.model = tiny_;
    training_.data = data_;
    training_.trainer.epochs = 1;
    training_.trainer.cycles = 1;
    training_.trainer.batch_examples = 8;
  }
  ~CudaCommands() override {
    EXPECT_GT(num_planned, 0);
    EXPECT_THAT(refused(), testing::IsEmpty());
  }
  io::Model trained() { return fine_tune(training_, {}).model; }
  // Packed, as the commands leave it.
  static void save(io::Model model, const std::string& path) {
    compress::pack_model(model, true);
    io::write_checkpoint(path, model);
  }

  io::ScratchDirectory scratch_;
  engine::ExecutionOptions execution_;
  std::string tiny_, data_;
  FineTuneOptions training_;
};

TEST_F(CudaCommands, Train) {
  for (const auto optimizer : {train::OptimizerKind::AdamW, train::OptimizerKind::Sgd}) {
    training_.graph.optimizer = optimizer;
    training_.trainer.accumulation = optimizer == train::OptimizerKind::Sgd ? 2 : 1;
    training_.graph.accumulation = static_cast<int>(training_.trainer.accumulation);
    fine_tune(training_, execution_);
  }
  training_.graph.freeze = {"embeddings"};
  training_.graph.max_norm = 0;
  training_.validation = 8;
  fine_tune(training_, execution_);
}

TEST_F(CudaCommands, TrainForEveryObjective) {
  for (const char* const model : {"bert-tiny", "gpt2-tiny"})
    for (const char* const objective :
         {"classify", "mlm", "causal-lm", "regression", "multi-label"}) {
      const bool is_bert = std::string_view(model) == "bert-tiny";
      if (std::string_view(objective) == (is_bert ? "causal-lm" : "mlm")) continue;
      SCOPED_TRACE(fmt::format("{} {}", model, objective));
      training_.model = model;
      training_.tokenizer = tiny_;
      training_.graph.objective = objective;
      training_.limit = 8;
      training_.out = scratch_ / fmt::format("{}-{}", model, objective);
      if (std::string_view(objective) == "regression") {
        std::filesystem::create_directory(scratch_ / "scores");
        scratch_.write("scores/train.csv", "text,label\na fine film,1\na poor plot,0\n");
        training_.data = (scratch_ / "scores").string();
      } else if (std::string_view(objective) == "multi-label") {
        std::filesystem::create_directory(scratch_ / "sets");
        scratch_.write("sets/train.jsonl",
                       "{\"text\":\"a fine film\",\"labels\":[\"fine\",\"film\"]}\n"
                       "{\"text\":\"a poor plot\",\"labels\":[]}\n");
        training_.data = (scratch_ / "sets").string();
      } else {
        training_.data = data_;
      }
      fine_tune(training_, execution_);
      if (training_.data == data_)
        evaluate_on(io::load_model(training_.out.string()), {.data = data_}, execution_);
    }
}

TEST_F(CudaCommands, TrainAnMlp) {
  std::filesystem::create_directory(scratch_ / "numbers");
  scratch_.write("numbers/train.csv", "a,b,label\n1,2,0\n2,1,1\n3,1,1\n1,4,0\n");
  scratch_.write("numbers/test.csv", "a,b,label\n1,2,0\n2,1,1\n");
  training_.model = "mlp:2,8,2";
  training_.data = (scratch_ / "numbers").string();
  training_.out = scratch_ / "mlp";
  fine_tune(training_, execution_);
}

TEST_F(CudaCommands, TrainByLora) {
  training_.lora = "rank=2,alpha=4,dropout=0.1";
  fine_tune(training_, execution_);
  training_.model = (scratch_ / "quantized").string();
  save(quantize(io::load_model(tiny_), {.weights = "int:4,channel", .embeddings = "nf4"}, {}).model,
       training_.model);
  fine_tune(training_, execution_);
}

TEST_F(CudaCommands, TrainQuantized) {
  const io::Model model = trained();
  int count = 0;
  for (const auto& [weights, activations] :
       {std::pair("int:4,channel", "int:8"), std::pair("fixed:8,4", "fixed:8,4"),
        std::pair("int:4,group=4,asymmetric", "int:8,asymmetric"),
        std::pair("binary:residual,2", "mxint:8"), std::pair("ternary:tensor", "minifloat:8,4"),
        std::pair("mase.block_fp:8,8,block=4x16", "mase.integer:8,4")}) {
    SCOPED_TRACE(weights);
    QuantizeOptions options{.weights = weights, .activations = activations, .bias = "fixed:16,8"};
    options.embeddings = weights;
    options.calibrate = data_;
    training_.model = (scratch_ / fmt::format("q{}", ++count)).string();
    save(quantize(model, options, execution_).model, training_.model);
    fine_tune(training_, execution_);
    evaluate_on(io::load_model(training_.model), {.data = data_}, execution_);
  }
}

TEST_F(CudaCommands, TrainWithATeacher) {
  training_.out = scratch_ / "teacher";
  fine_tune(training_, {});
  training_.teacher = training_.out.string();
  training_.out = scratch_ / "student";
  training_.graph.distillation.hidden = 1;
  training_.graph.distillation.attention = 1;
  fine_tune(training_, execution_);
}

TEST_F(CudaCommands, TrainAndPrune) {
  for (const char* const method : {"l1", "random", "lamp", "movement"}) {
    training_.prune = fmt::format("sparsity=0.5,method={}", method);
    fine_tune(training_, execution_);
  }
}

TEST_F(CudaCommands, Prune) {
  const io::Model model = trained();
  for (const char* const method : {"wanda", "sparsegpt"})
    prune(model, {.method = method, .sparsity = 0.5, .calibrate = data_}, execution_);
  const io::Model pruned = prune(model, {.sparsity = 0.5, .activations = 0.5}, execution_).model;
  evaluate_on(pruned, {.data = data_}, execution_);
  training_.model = (scratch_ / "pruned").string();
  save(pruned, training_.model);
  fine_tune(training_, execution_);
}

TEST_F(CudaCommands, QuantizeAndMeasure) {
  const io::Model model = trained();
  QuantizeOptions options{.weights = "int:4,channel", .activations = "int:8"};
  options.outputs = "int:8";
  options.calibrate = data_;
  options.bias_correction = true;
  const Quantized corrected = quantize(model, options, execution_);
  measure_sensitivity(model, corrected.model, options, 16, execution_);
  options.bias_correction = false;
  options.gptq = true;
  quantize(model, options, execution_);
}

TEST_F(CudaCommands, Predict) {
  Predictor predictor(trained(), execution_);
  const std::vector<std::string> texts{"a fine film", "a poor plot"};
  predictor.predict(texts);
  evaluate_on(trained(), {.data = data_, .is_padded = true}, execution_);
}

TEST_F(CudaCommands, Compress) {
  CompressOptions options;
  training_.out = scratch_ / "float";
  fine_tune(training_, {});
  options.model = training_.out.string();
  options.data = data_;
  options.validation = 8;
  options.target.size = "1.7x";
  options.out = scratch_ / "small";
  compress_model(options, execution_);
  options.out = scratch_ / "factors";
  options.target = {};
  options.stages = {{.kind = "vocabulary", .settings = {{"min-count", 2}}},
                    {.kind = "low-rank", .settings = {{"targets", {"word"}}, {"rank", 4}}},
                    {.kind = "fine-tune", .settings = {{"epochs", 1}}}};
  compress_model(options, execution_);
}

}  // namespace
}  // namespace lathe::experiment
