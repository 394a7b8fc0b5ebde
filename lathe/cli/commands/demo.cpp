#include <CLI/App.hpp>
#include <nlohmann/json.hpp>

#include "lathe/cli/command.h"
#include "lathe/cli/execution.h"
#include "lathe/cli/given_options.h"
#include "lathe/cli/print_json.h"
#include "lathe/cli/progress_line.h"
#include "lathe/experiment/demonstration.h"

namespace lathe::cli {
namespace {

int run(experiment::DemonstrationOptions options, const Settings& settings, const CLI::App& app) {
  options.trainer.seed = settings.seed;
  if (given_options(app).contains("epochs")) options.trainer.cycles = 1;
  Execution execution(settings);
  ProgressLine line(settings);
  experiment::DemonstrationCallbacks callbacks{line.callbacks()};
  callbacks.say = [&](const std::string& text) {
    line.finish();
    if (!settings.quiet) fmt::print(stderr, "{}\n", text);
  };
  const experiment::Demonstration result =
      experiment::demonstrate(options, execution.options(), callbacks);
  line.finish();
  if (settings.json)
    print_json({{"page", result.page.string()},
                {"accuracy", result.accuracy},
                {"tokens_per_second", result.tokens_per_second}});
  else
    fmt::print("open {}\n", result.page.string());
  return 0;
}

const Register registration{Command{
    .name = "demo",
    .summary = "build, check, train, run and draw a model on built-in data, as an HTML page",
    .examples = "  lathe demo\n"
                "  lathe demo --model DIR --data ../shared/data/imdb --out imdb-demo",
    .setup =
        [](CLI::App& app) {
          auto options = std::make_shared<experiment::DemonstrationOptions>();
          options->model = "bert-tiny";
          options->out = "demo-out";
          app.add_option("--model", options->model,
                         "model directory or a builder's name [bert-tiny]");
          app.add_option("--data", options->data, "data to evaluate on [reviews]");
          app.add_option("--out", options->out, "directory to write [demo-out]");
          app.add_option("--epochs", options->trainer.epochs,
                         "times through the data, for a builder's model; 0: no training [2]")
              ->check(CLI::Range(std::int64_t{0}, std::int64_t{1000}));
          app.add_flag("--force", options->replaces, "replace the demonstration in --out");
          return [options, &app](const Settings& settings) { return run(*options, settings, app); };
        },
}};

}  // namespace
}  // namespace lathe::cli
