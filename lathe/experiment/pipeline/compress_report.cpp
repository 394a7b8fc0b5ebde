#include "lathe/experiment/pipeline/compress_report.h"

#include "lathe/compress/size_target.h"
#include "lathe/io/atomic_file.h"
#include "lathe/report/html_page.h"

namespace lathe::experiment {
namespace {

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string or_dash(const std::optional<double>& value, int digits) {
  return value ? fmt::format("{:.{}f}", *value, digits) : "-";
}

double times_smaller(const CompressResult& result, const StageResult& stage) {
  return static_cast<double>(result.stages.front().bytes) / static_cast<double>(stage.bytes);
}

}  // namespace

report::Table compress_table(const CompressResult& result) {
  report::Table table({"stage", "size", "smaller", "parameters", "bits a weight", "zeros",
                       "accuracy", "tokens/s", "took"});
  for (const StageResult& stage : result.stages)
    table.row({stage.stage, compress::bytes_text(stage.bytes),
               fmt::format("{:.2f}x", times_smaller(result, stage)),
               fmt::format("{}", stage.parameters), fmt::format("{:.2f}", stage.weight_bits),
               percent(stage.sparsity), or_dash(stage.accuracy, 4),
               or_dash(stage.tokens_per_second, 0),
               stage.seconds > 0 ? fmt::format("{:.0f} s", stage.seconds) : "-"});
  return table;
}

void write_compress_report(const CompressResult& result, const CompressOptions& options) {
  report::HtmlPage page("Compressing " + options.model);
  const StageResult& last = result.stages.back();
  std::vector<std::pair<std::string, std::string>> figures{
      {"smaller", fmt::format("{:.1f}x", times_smaller(result, last))},
      {"size", compress::bytes_text(last.bytes)}};
  if (result.test_accuracy)
    figures.emplace_back("test accuracy", fmt::format("{:.4f}", *result.test_accuracy));
  if (result.original_test_accuracy)
    figures.emplace_back("of the original", fmt::format("{:.4f}", *result.original_test_accuracy));
  page.section("Result").figures(figures);
  page.section("Stages").table(compress_table(result));
  if (!result.measured_on.empty())
    page.paragraph("Accuracies and speeds of stages are of " + result.measured_on +
                   ". Sizes are of all files that are needed to run the model.");
  page.section("Settings");
  for (std::size_t i = 0; i < options.stages.size(); ++i)
    page.details(fmt::format("{}. {}", i + 1, options.stages[i].kind),
                 options.stages[i].settings.dump(2));
  io::write_atomically(options.out / "report.html", page.str());
}

}  // namespace lathe::experiment
