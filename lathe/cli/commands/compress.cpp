#include <nlohmann/json.hpp>

#include "lathe/cli/command.h"
#include "lathe/cli/print_json.h"
#include "lathe/cli/resumable_run.h"
#include "lathe/experiment/pipeline/compress_report.h"
#include "lathe/io/mapped_file.h"

namespace lathe::cli::compress_command {
namespace {

struct Arguments {
  experiment::CompressOptions options;
  std::string out;
};

void print_result(const experiment::CompressResult& result, const Arguments& arguments,
                  const Settings& settings) {
  if (settings.json) {
    nlohmann::ordered_json line{{"out", arguments.out}, {"measured_on", result.measured_on}};
    for (const experiment::StageResult& stage : result.stages) {
      nlohmann::ordered_json row{
          {"stage", stage.stage},           {"bytes", stage.bytes},
          {"parameters", stage.parameters}, {"weight_bits", stage.weight_bits},
          {"sparsity", stage.sparsity},     {"seconds", stage.seconds}};
      if (stage.accuracy) row["accuracy"] = *stage.accuracy;
      if (stage.tokens_per_second) row["tokens_per_second"] = *stage.tokens_per_second;
      line["stages"].push_back(std::move(row));
    }
    if (result.test_accuracy) line["test_accuracy"] = *result.test_accuracy;
    if (result.original_test_accuracy)
      line["original_test_accuracy"] = *result.original_test_accuracy;
    print_json(line);
    return;
  }
  fmt::print("{}", experiment::compress_table(result).to_text());
  if (!result.measured_on.empty())
    fmt::print("\naccuracies and speeds are of {}\n", result.measured_on);
  if (result.test_accuracy && result.original_test_accuracy)
    fmt::print("test accuracy {:.4f}, of the original {:.4f}\n", *result.test_accuracy,
               *result.original_test_accuracy);
  fmt::print("written to {}: the model, results.json, report.html\n", arguments.out);
}

int run(Arguments arguments, const Settings& settings) {
  experiment::CompressOptions& options = arguments.options;
  if (!settings.config.empty())
    options.stages =
        experiment::parse_pipeline(io::MappedFile::open(settings.config)->text(), settings.config);
  options.out = arguments.out;
  options.seed = settings.seed;
  return run_resumable(
      settings,
      [&](const engine::ExecutionOptions& execution, const experiment::Callbacks& callbacks) {
        return experiment::compress_model(options, execution, callbacks);
      },
      [&](const experiment::CompressResult& result) { print_result(result, arguments, settings); });
}

std::function<int(const Settings&)> setup(Flags flags) {
  auto arguments = std::make_shared<Arguments>();
  experiment::CompressOptions& options = arguments->options;
  flags.add_option("--model", options.model, "model directory").required();
  flags.add_option("--data", options.data, "data to train, choose and measure on");
  add_image_option(flags, options.images);
  flags.add_option("--target-size", options.target.size,
                   "choose the stages: 10x smaller, or a size such as 1.5MB");
  flags.add_option("--max-loss", options.target.max_loss,
                   "choose the stages: as small as so many points of accuracy allow");
  flags
      .add_option("--validation", options.validation,
                  "rows of train to hold out and measure on [2000, a fifth at most]")
      .range(0, std::int64_t{1} << 40);
  flags
      .add_option("--limit", options.limit,
                  "use so many examples of train only, each label in its share")
      .at_least(0);
  add_storage_option(flags, options.storage);
  flags.add_option("--out", arguments->out, "directory to write").required();
  flags.add_flag("--resume", options.resumes, "go on with a compression that was interrupted");
  flags.add_flag("--force", options.replaces, "replace the result in --out");
  flags.add_flag("--eval,!--no-eval", options.is_tested, "test the result [yes]");
  return [arguments](const Settings& settings) { return run(*arguments, settings); };
}

const Register registration{Command{
    .name = "compress",
    .summary = "make a model small by several stages, or by a target alone",
    .examples = "  lathe compress --model M --data D --target-size 10x --out small\n"
                "  lathe compress --model M --data D --config pipeline.toml --out small\n"
                "  lathe compress --model M --data D --max-loss 0.5 --out small --resume",
    .lists = {"stage"},
    .setup = setup,
}};

}  // namespace
}  // namespace lathe::cli::compress_command
