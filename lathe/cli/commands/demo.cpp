#include <CLI/App.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "lathe/cli/command.h"
#include "lathe/cli/output_directory.h"
#include "lathe/core/graph_text.h"
#include "lathe/core/pass.h"
#include "lathe/core/passes/dropout.h"
#include "lathe/core/passes/profile.h"
#include "lathe/data/dataset.h"
#include "lathe/data/reviews.h"
#include "lathe/engine/cpu/cpu_executor.h"
#include "lathe/io/atomic_file.h"
#include "lathe/report/graph_drawing.h"
#include "lathe/report/html_page.h"
#include "lathe/report/plot.h"
#include "lathe/report/progress.h"
#include "lathe/report/render.h"
#include "lathe/train/evaluation.h"
#include "lathe/train/train_model.h"

namespace lathe::cli {
namespace {

// Enough reviews to show that the executors agree, few enough for the reference one.
constexpr std::int64_t kComparedReviews = 8;
constexpr std::int64_t kComparedLength = 64;

struct Arguments {
  ModelArguments model{.model = "bert-tiny"};
  std::string data = "reviews";
  std::string out = "demo-out";
  std::int64_t epochs = 3;
  bool force = false;
};

io::Model load(const Arguments& arguments, const Settings& settings) {
  io::LoadOptions options{.task = "classify", .seed = settings.seed};
  const bool is_builder = models::find_named_model(arguments.model.model).has_value();
  std::shared_ptr<const data::Tokenizer> tokenizer;
  // A model made by name has no vocabulary of its own: it takes that of the built-in reviews.
  if (is_builder) {
    tokenizer = data::reviews_tokenizer();
    options.config = {{"vocab_size", std::int64_t{tokenizer->vocabulary_size()}}};
  }
  io::Model model = io::load_model(arguments.model.model, options);
  model.tokenizer = std::move(tokenizer);
  return model;
}

struct Agreement {
  std::string name;
  double difference = 0;
};

// The largest difference of any logit from the reference executor's, packed and padded.
std::vector<Agreement> compare_executors(const io::Model& model,
                                         const data::TokenizedDataset& tokens, ThreadPool& pool,
                                         const Settings& settings) {
  data::TokenizedDataset few;
  for (std::int64_t i = 0; i < std::min(kComparedReviews, tokens.size()); ++i) {
    const std::span<const std::int32_t> ids = tokens.example(i);
    const auto length = std::min<std::size_t>(ids.size(), kComparedLength);
    few.ids.insert(few.ids.end(), ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(length));
    few.offsets.push_back(static_cast<std::int64_t>(few.ids.size()));
    few.labels.push_back(tokens.labels[static_cast<std::size_t>(i)]);
  }
  std::vector<std::int64_t> all(static_cast<std::size_t>(few.size()));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
  const data::Batch batch = data::make_batch(few, all);
  const auto logits = [&](const std::string& device, bool is_padded) {
    train::ClassifierOptions options;
    options.is_padded = is_padded;
    options.allow_fresh = true;
    options.execution = settings.execution(pool);
    options.execution.device = device;
    return train::TextClassifier(model, options).logits(batch);
  };
  const Tensor expected = logits("reference", true);
  std::vector<Agreement> result;
  for (const auto& [device, is_padded] :
       {std::pair{"reference", false}, std::pair{"cpu", true}, std::pair{"cpu", false}}) {
    const Tensor actual = logits(device, is_padded);
    double worst = 0;
    for (std::int64_t i = 0; i < expected.num_elements(); ++i)
      worst = std::max(worst, std::fabs(actual.at(i) - expected.at(i)));
    result.push_back({fmt::format("{}, {}", device, is_padded ? "padded" : "packed"), worst});
  }
  return result;
}

// "bert.encoder.layer.0.attention.self.query" counts towards "linear": one bar for each op.
std::map<std::string, double> seconds_by_op(const engine::PlanReport& report) {
  std::map<std::string, double> result;
  for (const engine::PlannedStep& step : report.steps) result[step.op] += step.seconds;
  return result;
}

void write_model_section(report::HtmlPage& page, const io::Model& model, const Profile& cost) {
  std::int64_t bytes = 0;
  for (const auto& [name, tensor] : model.state) bytes += tensor.num_bytes();
  page.section("The model");
  page.figures({{"parameters", fmt::format("{}", cost.parameters)},
                {"megabytes", fmt::format("{:.1f}", static_cast<double>(bytes) / 1e6)},
                {"nodes", fmt::format("{}", model.graph.num_nodes())}});
  page.paragraph(fmt::format(
      "{} for the task {}. One execution costs {} floating-point operations, where B is the number "
      "of rows and L their padded length.",
      model.family->summary, model.task, cost.flops.text()));
}

void write_graph_section(report::HtmlPage& page, const Graph& graph, const std::string& svg) {
  Graph lean = graph;
  const DropoutCount before = count_dropout(lean);
  run_pass("remove-dropout", lean);
  const DropoutCount after = count_dropout(lean);
  report::Table table({"graph", "nodes", "dropout nodes", "attention dropout"});
  table.row({"as built", fmt::format("{}", graph.num_nodes()), fmt::format("{}", before.nodes),
             fmt::format("{}", before.attributes)});
  table.row({"after remove-dropout", fmt::format("{}", lean.num_nodes()),
             fmt::format("{}", after.nodes), fmt::format("{}", after.attributes)});
  page.section("The graph");
  page.table(table, "What the pass remove-dropout does");
  page.large_svg(svg, "The graph as built; parameters stand inside the nodes that read them");
  page.details("The graph's text", print(graph));
}

double test_accuracy(const io::Model& model, const data::TokenizedDataset& tokens, ThreadPool& pool,
                     const Settings& settings) {
  train::ClassifierOptions options;
  options.allow_fresh = true;
  options.execution = settings.execution(pool);
  train::TextClassifier classifier(model, options);
  train::EvaluationOptions evaluation;
  evaluation.progress = [](std::int64_t, std::int64_t) { return !is_interrupted(); };
  return train::evaluate(classifier, tokens, static_cast<std::int64_t>(model.label_names.size()),
                         evaluation)
      .accuracy;
}

// A curve of a few hundred points says as much as one of thousands, and a mean is less ragged.
report::Series loss_curve(const std::vector<double>& losses) {
  constexpr std::size_t kPoints = 150;
  const std::size_t width = std::max<std::size_t>(1, losses.size() / kPoints);
  report::Series series{.name = "loss", .x = {}, .y = {}};
  for (std::size_t begin = 0; begin + width <= losses.size(); begin += width) {
    double sum = 0;
    for (std::size_t i = begin; i < begin + width; ++i) sum += losses[i];
    series.x.push_back(static_cast<double>(begin + width));
    series.y.push_back(sum / static_cast<double>(width));
  }
  return series;
}

// Trains by the default recipe of `lathe train` and shows what it brought.
io::Model train_model(report::HtmlPage& page, io::Model model, const Arguments& arguments,
                      const data::TokenizedDataset& test, ThreadPool& pool,
                      const Settings& settings) {
  const double before = test_accuracy(model, test, pool, settings);
  const data::Dataset examples = data::load_dataset(arguments.data, "train", is_interrupted);
  train::TrainOptions options;
  options.trainer.epochs = arguments.epochs;
  options.trainer.seed = settings.seed;
  options.execution = settings.execution(pool);
  report::Progress progress(stderr,
                            {.is_enabled = !settings.quiet, .label = "training", .unit = "steps"});
  std::vector<double> losses;
  train::TrainCallbacks callbacks;
  callbacks.step = [&](const train::StepReport& report) {
    losses.push_back(report.loss);
    progress.update(report.step, report.num_steps, fmt::format("loss {:.4f}", report.loss));
  };
  callbacks.should_stop = is_interrupted;
  train::TrainOutcome outcome =
      train::train_model(std::move(model), examples, {}, options, callbacks);
  progress.finish();
  if (outcome.result.ending == train::Ending::Interrupted) throw Interrupted();
  outcome.model.fresh.clear();
  const double after = test_accuracy(outcome.model, test, pool, settings);
  if (!settings.quiet)
    fmt::print(stderr, "training   {:.1f} s, accuracy {:.3f} before, {:.3f} after\n",
               outcome.result.seconds, before, after);

  page.section("Training");
  page.figures(
      {{"accuracy before", fmt::format("{:.3f}", before)},
       {"accuracy after", fmt::format("{:.3f}", after)},
       {"seconds", fmt::format("{:.1f}", outcome.result.seconds)},
       {"tokens per second", fmt::format("{:.0f}", static_cast<double>(outcome.result.tokens) /
                                                       outcome.result.seconds)}});
  page.paragraph(fmt::format(
      "The weights began as random numbers. {} epochs over {} reviews by the recipe of "
      "lathe train taught the model to read them; accuracies are on {} reviews it has not seen. "
      "Who counts words alone and pays no heed to their order gets about two thirds of the "
      "built-in reviews right.",
      arguments.epochs, examples.examples.size(), test.size()));
  page.svg(report::line_chart({.title = "Loss while training",
                               .x = {.label = "step"},
                               .y = {.label = "mean cross-entropy, nats"}},
                              {loss_curve(losses)}));
  return outcome.model;
}

std::string write_speed_section(report::HtmlPage& page, const train::Evaluation& result,
                                const engine::PlanReport& plan, bool is_fresh) {
  const double rate = static_cast<double>(result.tokens) / result.forward_seconds;
  page.section("Answers and speed");
  page.figures({{"accuracy", fmt::format("{:.3f}", result.accuracy)},
                {"tokens per second", fmt::format("{:.0f}", rate)},
                {"reviews", fmt::format("{}", result.examples)}});
  if (is_fresh)
    page.paragraph(
        "The model's weights were drawn at random, so its accuracy is that of guessing. What this "
        "page shows is that it runs, what it computes, and how fast.");
  std::vector<std::string> names;
  std::vector<double> shares;
  double total = 0;
  for (const auto& [op, seconds] : seconds_by_op(plan)) total += seconds;
  for (const auto& [op, seconds] : seconds_by_op(plan)) {
    names.push_back(op);
    shares.push_back(100 * seconds / total);
  }
  page.svg(report::bar_chart({.title = "Where the time goes",
                              .x = {.label = "kernel"},
                              .y = {.label = "share of thread time, per cent"}},
                             names, {{"share", shares}}));
  report::Table steps({"stage", "kernel", "computes", "ms"});
  for (const engine::PlannedStep& step : plan.steps)
    steps.row({fmt::format("{}", step.stage), step.op,
               fmt::format("{}", fmt::join(step.origins, " + ")),
               fmt::format("{:.2f}", step.seconds * 1e3)});
  page.details("Every kernel of the plan", steps);
  return fmt::format("{:.0f} tokens/s", rate);
}

int run(const Arguments& arguments, const Settings& settings) {
  const auto say = [&](const std::string& line) {
    if (!settings.quiet) fmt::print(stderr, "{}\n", line);
  };
  check_output_directory(arguments.out, arguments.force);
  io::Model model = load(arguments, settings);
  say(fmt::format("model      {}, {} tensors{}", arguments.model.model, model.state.size(),
                  model.fresh.empty() ? "" : ", freshly initialised"));
  const std::shared_ptr<const data::Tokenizer> tokenizer = train::load_tokenizer(model);
  const data::Dataset dataset = data::load_dataset(arguments.data, "test", is_interrupted);
  ThreadPool pool(settings.threads);
  const data::TokenizedDataset tokens = data::tokenize(
      dataset, *tokenizer, train::max_length(model), data::Truncation::Head, pool, is_interrupted);
  say(fmt::format("data       {}, {} reviews, {} tokens", arguments.data, tokens.size(),
                  tokens.ids.size()));

  report::HtmlPage page("Lathe: " + arguments.model.model + " on " + arguments.data);
  const Profile cost = profile(model.graph);
  write_model_section(page, model, cost);
  const std::string svg = report::render_svg(report::to_dot(model.graph));
  write_graph_section(page, model.graph, svg);

  page.section("Do the executors agree?");
  report::Table agreement({"executor", "largest difference of a logit"});
  agreement.row({"reference, padded", "0 (the definition)"});
  for (const Agreement& row : compare_executors(model, tokens, pool, settings)) {
    agreement.row({row.name, fmt::format("{:.1e}", row.difference)});
    say(fmt::format("agreement  {}: within {:.1e} of the reference", row.name, row.difference));
  }
  page.table(agreement);

  const bool is_builder = models::find_named_model(arguments.model.model).has_value();
  if (is_builder && arguments.epochs > 0)
    model = train_model(page, std::move(model), arguments, tokens, pool, settings);

  train::ClassifierOptions options;
  options.allow_fresh = true;
  options.execution = settings.execution(pool);
  train::TextClassifier classifier(model, options);
  auto& executor = dynamic_cast<engine::CpuExecutor&>(classifier.executor());
  executor.set_timing(true);
  report::Progress progress(
      stderr, {.is_enabled = !settings.quiet, .label = "evaluating", .unit = "reviews"});
  train::EvaluationOptions evaluation;
  evaluation.progress = [&](std::int64_t done, std::int64_t) {
    progress.update(done, tokens.size());
    return !is_interrupted();
  };
  const train::Evaluation result = train::evaluate(
      classifier, tokens, static_cast<std::int64_t>(model.label_names.size()), evaluation);
  progress.finish();
  const std::string speed =
      write_speed_section(page, result, executor.report(), !model.fresh.empty());
  say(fmt::format("accuracy   {:.3f}{}, {}", result.accuracy,
                  model.fresh.empty() ? "" : " (untrained)", speed));

  write_output_directory(arguments.out, arguments.force, [&](const std::filesystem::path& folder) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) fail("{}: cannot be created: {}", folder.string(), error.message());
    io::write_atomically(folder / "graph.svg", svg);
    io::write_atomically(folder / "graph.txt", print(model.graph));
    io::write_atomically(folder / "index.html", page.str());
  });
  if (settings.json)
    fmt::print("{{\"page\": {}, \"accuracy\": {}, \"tokens_per_second\": {:.0f}}}\n",
               to_text(Attribute(arguments.out + "/index.html")), result.accuracy,
               static_cast<double>(result.tokens) / result.forward_seconds);
  else
    fmt::print("open {}/index.html\n", arguments.out);
  return 0;
}

const Register registration{Command{
    .name = "demo",
    .summary = "build, check, train, run and draw a model on built-in data, as an HTML page",
    .examples = "  lathe demo\n"
                "  lathe demo --model DIR --data ../shared/data/imdb --out imdb-demo",
    .setup =
        [](CLI::App& app) {
          auto arguments = std::make_shared<Arguments>();
          app.add_option("--model", arguments->model.model,
                         "model directory or a builder's name [bert-tiny]");
          app.add_option("--data", arguments->data, "data to evaluate on [reviews]");
          app.add_option("--out", arguments->out, "directory to write [demo-out]");
          app.add_option("--epochs", arguments->epochs,
                         "times through the data, for a builder's model; 0: no training [3]")
              ->check(CLI::Range(std::int64_t{0}, std::int64_t{1000}));
          app.add_flag("--force", arguments->force, "replace an existing directory");
          return [arguments](const Settings& settings) { return run(*arguments, settings); };
        },
}};

}  // namespace
}  // namespace lathe::cli
