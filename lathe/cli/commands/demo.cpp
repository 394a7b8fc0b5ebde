#include <nlohmann/json.hpp>

#include "lathe/cli/command.h"
#include "lathe/cli/execution.h"
#include "lathe/cli/print_json.h"
#include "lathe/cli/progress_line.h"
#include "lathe/cli/say.h"
#include "lathe/experiment/demonstration.h"

namespace lathe::cli::demo_command {
namespace {

int run(experiment::DemonstrationOptions options, const Settings& settings, Flags flags) {
  options.trainer.seed = settings.seed;
  if (flags.given().contains("epochs")) options.trainer.cycles = 1;
  Execution execution(settings);
  ProgressLine line(settings);
  experiment::DemonstrationCallbacks callbacks{line.callbacks()};
  callbacks.say = [&](const std::string& text) {
    line.finish();
    if (!settings.quiet) say("{}\n", text);
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
        [](Flags flags) {
          auto options = std::make_shared<experiment::DemonstrationOptions>();
          options->model = "bert-tiny";
          options->out = "demo-out";
          flags.add_option("--model", options->model,
                           "model directory or a builder's name [bert-tiny]");
          flags.add_option("--data", options->data, "data to evaluate on [reviews]");
          flags.add_option("--out", options->out, "directory to write [demo-out]");
          flags
              .add_option("--epochs", options->trainer.epochs,
                          "times through the data, for a builder's model; 0: no training [2]")
              .range(0, 1000);
          flags.add_flag("--force", options->replaces, "replace the demonstration in --out");
          return
              [options, flags](const Settings& settings) { return run(*options, settings, flags); };
        },
}};

}  // namespace
}  // namespace lathe::cli::demo_command
