#include "lathe/experiment/demonstration.h"

#include <algorithm>
#include <cmath>

#include "lathe/core/graph_text.h"
#include "lathe/core/pass.h"
#include "lathe/core/passes/profile.h"
#include "lathe/data/validation_split.h"
#include "lathe/experiment/demonstration_page.h"
#include "lathe/experiment/evaluate.h"
#include "lathe/experiment/read_data.h"
#include "lathe/io/atomic_file.h"
#include "lathe/io/output_directory.h"
#include "lathe/report/graph_drawing.h"
#include "lathe/report/render.h"
#include "lathe/train/evaluation.h"
#include "lathe/train/make_source.h"
#include "lathe/train/train_model.h"

namespace lathe::experiment {
namespace {

// Enough examples to show that the executors agree, few and short enough for the reference one.
constexpr std::int64_t kComparedExamples = 8;
constexpr std::int64_t kComparedLength = 64;

class Demonstrator {
 public:
  Demonstrator(const DemonstrationOptions& options, const engine::ExecutionOptions& execution,
               const DemonstrationCallbacks& callbacks)
      : options_(options),
        execution_(execution),
        callbacks_(callbacks),
        model_(load_with_tokenizer(options.model, {}, options.data,
                                   {.task = "classify", .seed = options.trainer.seed})),
        test_(read("test")),
        page_("Lathe: " + options.model + " on " + options.data) {}

  Demonstration run() {
    say("model      {}, {} tensors{}", options_.model, model_.state.size(),
        model_.fresh.empty() ? "" : ", freshly initialised");
    source_ =
        train::make_evaluation_source(model_, test_, {}, execution_.pool, callbacks_.should_stop);
    say("data       {}, {} examples", options_.data, source_->size());
    const std::string svg = show_model();
    compare_executors();
    if (models::find_named_model(options_.model) && options_.trainer.epochs > 0) train();
    const train::Evaluation result = measure();
    const double rate = static_cast<double>(result.tokens) / result.forward_seconds;
    say("accuracy   {:.3f}{}, {:.0f} tokens/s", result.accuracy,
        model_.fresh.empty() ? "" : " (untrained)", rate);
    write(svg);
    return {result.accuracy, rate, options_.out / "index.html"};
  }

 private:
  template <typename... Args>
  void say(fmt::format_string<Args...> text, Args&&... args) const {
    if (callbacks_.say) callbacks_.say(fmt::format(text, std::forward<Args>(args)...));
  }

  data::Dataset read(const std::string& split) {
    data::Dataset examples = read_examples(model_, options_.data, split, 0, callbacks_.should_stop);
    adopt_labels(model_, examples);
    return examples;
  }

  std::string show_model() {
    add_model_section(page_, model_, profile(model_.graph));
    const std::string svg = report::render_svg(report::to_dot(model_.graph));
    add_graph_section(page_, model_.graph, svg);
    return svg;
  }

  Tensor logits(const std::string& device, bool is_padded) {
    train::SourceOptions feeding{.is_padded = is_padded};
    if (const std::int64_t longest = train::max_length(model_); longest > 0)
      feeding.length = std::min(longest, kComparedLength);
    const auto few = train::make_evaluation_source(
        model_, data::take_some(test_, kComparedExamples), feeding, execution_.pool);
    std::vector<std::int64_t> all(static_cast<std::size_t>(few->size()));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
    engine::ExecutionOptions running = execution_;
    running.device = device;
    train::Classifier classifier(
        model_, {.allows_fresh = true, .is_padded = is_padded, .execution = running});
    return classifier.logits(few->evaluation_batch(all).feed);
  }

  // The largest difference of any logit from the reference executor's, packed and padded.
  void compare_executors() {
    report::Table table({"executor", "largest difference of a logit"});
    table.row({"reference, padded", "0 (the definition)"});
    const Tensor expected = logits("reference", true);
    for (const auto& [device, is_padded] :
         {std::pair<std::string, bool>{"reference", false}, {"cpu", true}, {"cpu", false}}) {
      const Tensor actual = logits(device, is_padded);
      double worst = 0;
      for (std::int64_t i = 0; i < expected.num_elements(); ++i)
        worst = std::max(worst, std::fabs(actual.at(i) - expected.at(i)));
      const std::string name = fmt::format("{}, {}", device, is_padded ? "padded" : "packed");
      table.row({name, fmt::format("{:.1e}", worst)});
      say("agreement  {}: within {:.1e} of the reference", name, worst);
    }
    page_.section("Do the executors agree?").table(table);
  }

  double accuracy() {
    train::Classifier classifier(model_, {.allows_fresh = true, .execution = execution_});
    return train::evaluate(
               classifier, *source_, static_cast<std::int64_t>(model_.label_names.size()),
               {.progress = [&](std::int64_t, std::int64_t) { return !callbacks_.stops(); }})
        .accuracy;
  }

  void train() {
    TrainingStory story{.before = accuracy(), .tested = source_->size(), .losses = {}};
    const data::Dataset examples = read("train");
    story.examples = static_cast<std::int64_t>(examples.examples.size());
    story.epochs = options_.trainer.epochs;
    train::TrainOptions training;
    training.trainer = options_.trainer;
    training.execution = execution_;
    train::TrainCallbacks hooks;
    hooks.step = [&](const train::StepReport& report) {
      story.losses.push_back(report.loss);
      callbacks_.tell({.activity = "training",
                       .unit = "steps",
                       .done = report.step,
                       .total = report.num_steps,
                       .note = fmt::format("loss {:.4f}", report.loss)});
    };
    hooks.should_stop = callbacks_.should_stop;
    train::TrainOutcome outcome =
        train::train_model(std::move(model_), examples, {}, training, hooks);
    if (outcome.result.ending == train::Ending::Interrupted) throw Interrupted();
    model_ = std::move(outcome.model);
    story.after = accuracy();
    story.seconds = outcome.result.seconds;
    story.tokens = outcome.result.tokens;
    say("training   {:.1f} s, accuracy {:.3f} before, {:.3f} after", story.seconds, story.before,
        story.after);
    add_training_section(page_, story);
  }

  train::Evaluation measure() {
    train::Classifier classifier(model_, {.allows_fresh = true, .execution = execution_});
    engine::Executor& executor = classifier.executor();
    executor.set_timing(true);
    train::Evaluation result =
        train::evaluate(classifier, *source_, static_cast<std::int64_t>(model_.label_names.size()),
                        {.progress = [&](std::int64_t done, std::int64_t) {
                          return callbacks_.goes_on({.activity = "evaluating",
                                                     .unit = "examples",
                                                     .done = done,
                                                     .total = source_->size()});
                        }});
    add_speed_section(page_, result, executor.report(), !model_.fresh.empty());
    return result;
  }

  void write(const std::string& svg) const {
    io::write_output_directory(options_.out, options_.replaces, [&](const auto& folder) {
      std::error_code error;
      std::filesystem::create_directories(folder, error);
      if (error) fail("{}: cannot be created: {}", folder.string(), error.message());
      io::write_atomically(folder / "graph.svg", svg);
      io::write_atomically(folder / "graph.txt", print(model_.graph));
      io::write_atomically(folder / "index.html", page_.str());
    });
  }

  const DemonstrationOptions& options_;
  engine::ExecutionOptions execution_;
  const DemonstrationCallbacks& callbacks_;
  io::Model model_;
  data::Dataset test_;
  std::unique_ptr<train::ExampleSource> source_;
  report::HtmlPage page_;
};

}  // namespace

Demonstration demonstrate(const DemonstrationOptions& options,
                          const engine::ExecutionOptions& execution,
                          const DemonstrationCallbacks& callbacks) {
  io::check_output_directory(options.out, options.replaces);
  return Demonstrator(options, execution, callbacks).run();
}

}  // namespace lathe::experiment
