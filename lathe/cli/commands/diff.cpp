#include "lathe/experiment/diff.h"

#include <nlohmann/json.hpp>

#include "lathe/cli/command.h"
#include "lathe/cli/execution.h"
#include "lathe/cli/print_json.h"
#include "lathe/compress/integer/lower_to_integer.h"
#include "lathe/experiment/evaluate.h"
#include "lathe/experiment/sample_feeds.h"
#include "lathe/report/table.h"

namespace lathe::cli::diff_command {
namespace {

struct Arguments {
  std::string first, second, task, data;
  std::int64_t batches = 1;
  bool is_integer = false, shows_all = false;
};

void print(const experiment::Comparison& result, const Arguments& arguments,
           const Settings& settings) {
  if (settings.json) {
    nlohmann::ordered_json line{{"first", result.first}, {"unmatched", result.unmatched}};
    line["nodes"] = nlohmann::ordered_json::array();
    for (const experiment::NodeDifference& each : result.nodes)
      line["nodes"].push_back({{"node", each.node},
                               {"op", each.op},
                               {"other_op", each.other_op},
                               {"largest", each.largest},
                               {"relative", each.relative},
                               {"differing", each.differing},
                               {"elements", each.elements}});
    print_json(line);
    return;
  }
  report::Table table({"node", "first", "second", "largest", "relative", "differing"});
  std::int64_t equal = 0;
  for (const experiment::NodeDifference& each : result.nodes) {
    equal += each.largest == 0 ? 1 : 0;
    if (each.largest == 0 && !arguments.shows_all) continue;
    table.row({each.node, each.op, each.other_op, fmt::format("{:.3g}", each.largest),
               fmt::format("{:.2g}", each.relative),
               fmt::format("{:.3f} %", 100 * each.differing)});
  }
  if (!table.rows().empty()) fmt::print("{}\n", table.to_text());
  fmt::print("{} of {} nodes are equal to the bit; {} have no like in the second model\n", equal,
             result.nodes.size(), result.unmatched);
  if (!result.first.empty()) fmt::print("the first to deviate is {}\n", result.first);
}

int run(const Arguments& arguments, const Settings& settings) {
  if (arguments.second.empty() && !arguments.is_integer)
    fail("lathe diff: expected a second model, or --integer");
  const io::Model first =
      experiment::load_for_evaluation(arguments.first, arguments.task, settings.seed);
  io::Model second = experiment::load_for_evaluation(
      arguments.second.empty() ? arguments.first : arguments.second, arguments.task, settings.seed);
  if (arguments.is_integer && !compress::is_integer(second.graph))
    compress::lower_to_integer(second.graph, second.state);
  Execution execution(settings);
  const std::vector<Feed> feeds = experiment::sample_feeds(
      first, {.data = arguments.data, .batches = arguments.batches, .seed = settings.seed},
      execution.options().pool, is_interrupted);
  print(experiment::compare_models(first, second, feeds, execution.options()), arguments, settings);
  return 0;
}

const Register registration{Command{
    .name = "diff",
    .summary = "where two models first deviate, node by node",
    .examples = "  lathe diff M q --data D\n"
                "  lathe diff q --integer --data D --all",
    .setup =
        [](Flags flags) {
          auto arguments = std::make_shared<Arguments>();
          flags.add_option("first", arguments->first, "model directory, or a builder's name")
              .required();
          flags.add_option("second", arguments->second,
                           "model to compare with it [with --integer: the first]");
          flags.add_flag("--integer", arguments->is_integer,
                         "make the second model one of integers before");
          flags.add_option("--task", arguments->task, "what for [what the model was saved for]");
          flags.add_option("--data", arguments->data, "data to run both on").required();
          flags.add_option("--batches", arguments->batches, "batches of 8 examples [1]")
              .range(1, std::int64_t{1} << 20);
          flags.add_flag("--all", arguments->shows_all, "also list nodes that are equal");
          return [arguments](const Settings& settings) { return run(*arguments, settings); };
        },
}};

}  // namespace
}  // namespace lathe::cli::diff_command
