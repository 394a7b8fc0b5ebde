#include "lathe/search/search_report.h"

#include <algorithm>
#include <cmath>

#include "lathe/io/atomic_file.h"
#include "lathe/report/html_page.h"
#include "lathe/report/named_bars.h"
#include "lathe/search/finalist_front.h"
#include "lathe/search/front_charts.h"
#include "lathe/search/search_charts.h"
#include "lathe/search/search_studies.h"
#include "lathe/search/trial_results.h"
#include "lathe/study/importance.h"

namespace lathe::search {
namespace {

using study::TrialState;

}  // namespace

report::Table curves_table(const SearchResult& result) {
  report::Table table({"curve", "trials", "best", "mean", "deviation"});
  for (const auto& [attribute, name] : kCurves) {
    const std::vector<double> values = curve_of(result, attribute);
    if (values.empty()) continue;
    const double average = mean(values);
    double squares = 0;
    for (const double value : values) squares += (value - average) * (value - average);
    table.row(
        {name, std::to_string(values.size()), fmt::format("{:.4f}", std::ranges::max(values)),
         fmt::format("{:.4f}", average),
         values.size() < 2
             ? "-"
             : fmt::format("{:.4f}", std::sqrt(squares / static_cast<double>(values.size() - 1)))});
  }
  return table;
}

StudySummary summarize(const SearchResult::Study& study) {
  StudySummary summary{.sampler = study.sampler};
  double sum = 0, squares = 0;
  int count = 0;
  for (const study::TrialRecord& trial : study.history.trials()) {
    ++summary.trials;
    summary.complete += trial.state == TrialState::Complete;
    summary.given_up += trial.state == TrialState::Pruned;
    summary.failed += trial.state == TrialState::Fail;
    summary.copied += trial.user_attributes.contains("copied_from");
    const std::optional<double> accuracy = score_of(trial);
    if (!accuracy) continue;
    if (trial.user_attributes.contains("collapsed")) {
      ++summary.at_chance;
      continue;
    }
    if (trial.state != TrialState::Complete) continue;
    if (count == 0 || *accuracy > summary.best) {
      summary.best = *accuracy;
      summary.best_trial = trial.number;
      summary.weight_bits = number_of(trial, "weight_bits");
      summary.data_bits = number_of(trial, "data_bits");
      summary.rounded_weights = number_of(trial, "rounded_weights");
    }
    summary.least = count == 0 ? *accuracy : std::min(summary.least, *accuracy);
    sum += *accuracy;
    squares += *accuracy * *accuracy;
    ++count;
  }
  if (count > 0) summary.mean = sum / count;
  if (count > 1)
    summary.deviation =
        std::sqrt(std::max(0.0, (squares - count * summary.mean * summary.mean) / (count - 1)));
  return summary;
}

report::Table studies_table(const SearchResult& result) {
  std::vector<std::string> headers{"sampler",  "trials",    "complete",  "given up",
                                   "failed",   "at chance", "copied",    "best",
                                   "in trial", "mean",      "deviation", "least"};
  if (result.is_precision)
    headers.insert(headers.end(), {"the best's weight bits", "data bits", "weights rounded"});
  report::Table table(headers);
  for (const SearchResult::Study& study : result.studies) {
    const StudySummary s = summarize(study);
    const auto number = [&](double value) {
      return s.best_trial < 0 ? std::string("-") : fmt::format("{:.4f}", value);
    };
    std::vector<std::string> row{s.sampler,
                                 std::to_string(s.trials),
                                 std::to_string(s.complete),
                                 std::to_string(s.given_up),
                                 std::to_string(s.failed),
                                 std::to_string(s.at_chance),
                                 std::to_string(s.copied),
                                 number(s.best),
                                 s.best_trial < 0 ? "-" : std::to_string(s.best_trial),
                                 number(s.mean),
                                 number(s.deviation),
                                 number(s.least)};
    if (result.is_precision)
      for (const auto& [value, text] :
           {std::pair(s.weight_bits, fmt::format("{:.3f}", s.weight_bits.value_or(0))),
            std::pair(s.data_bits, fmt::format("{:.3f}", s.data_bits.value_or(0))),
            std::pair(s.rounded_weights,
                      fmt::format("{:.1f} %", 100 * s.rounded_weights.value_or(0)))})
        row.push_back(value ? text : "-");
    table.row(std::move(row));
  }
  return table;
}

report::Table finalists_table(const SearchResult& result) {
  std::vector<std::string> headers{"found by", "trial", "then", "again, mean", "each", "loss"};
  if (result.is_precision)
    headers.insert(headers.end(), {"weight bits", "data bits", "weights rounded"});
  headers.insert(headers.end(), {"parameters", "what it is"});
  report::Table table(headers);
  for (const Finalist& finalist : result.finalists) {
    std::vector<std::string> each;
    for (const double accuracy : finalist.accuracies)
      each.push_back(fmt::format("{:.4f}", accuracy));
    std::vector<std::string> row{finalist.sampler,
                                 std::to_string(finalist.trial),
                                 finalist.found ? fmt::format("{:.4f}", *finalist.found) : "-",
                                 fmt::format("{:.4f}", finalist.mean()),
                                 fmt::format("{}", fmt::join(each, " ")),
                                 fmt::format("{:.4f}", finalist.mean_loss())};
    if (result.is_precision)
      row.insert(row.end(), {fmt::format("{:.3f}", finalist.bits.weights),
                             fmt::format("{:.3f}", finalist.bits.data),
                             fmt::format("{:.1f} %", 100 * finalist.bits.rounded_weights)});
    row.insert(row.end(),
               {std::to_string(finalist.parameters), candidate_text(finalist.candidate)});
    table.row(std::move(row));
  }
  return table;
}

bool is_compared_on_test(const SearchResult& result) {
  return result.finalists.size() > 1 && !result.finalists[1].whole_accuracies.empty();
}

report::Table whole_table(const SearchResult& result) {
  std::vector<std::string> headers{"found by",   "trial", "weight bits",     "data bits",
                                   "test, mean", "each",  "all layers alike"};
  std::optional<FinalistFront> front;
  if (!result.front.empty()) {
    front.emplace(result.finalists, result.front);
    headers.push_back("on the front");
  }
  headers.push_back("what it is");
  report::Table table(headers);
  for (const Finalist& finalist : result.finalists) {
    std::vector<std::string> row{finalist.sampler,
                                 std::to_string(finalist.trial),
                                 fmt::format("{:.3f}", finalist.bits.weights),
                                 fmt::format("{:.3f}", finalist.bits.data),
                                 fmt::format("{:.4f}", mean(finalist.whole_accuracies)),
                                 fmt::format("{:.4f}", fmt::join(finalist.whole_accuracies, " ")),
                                 finalist.is_uniform ? "yes" : "no"};
    if (front) row.push_back(front->has(finalist) ? "yes" : "no");
    row.push_back(candidate_text(finalist.candidate));
    table.row(std::move(row));
  }
  return table;
}

report::Table formats_table(const Candidate& candidate) {
  report::Table table({"layer", "weights", "data"});
  const auto text = [](const compress::RoleFormats& formats, compress::TensorRole role) {
    const auto found = formats.find(role);
    return found == formats.end() ? std::string("float") : found->second;
  };
  for (const auto& [layer, formats] : candidate.formats)
    table.row({layer, text(formats, compress::TensorRole::Weights),
               text(formats, compress::TensorRole::Inputs)});
  return table;
}

void write_report(const SearchResult& result, const SearchOptions& options,
                  const std::filesystem::path& directory) {
  report::HtmlPage page(result.is_precision ? "Search of number formats"
                                            : "Search of architectures");
  const auto add = [&](const std::string& name, const std::string& svg) {
    io::write_atomically(directory / (name + ".svg"), svg);
    page.svg(svg);
  };
  page.section("Result");
  std::vector<std::pair<std::string, std::string>> figures;
  if (!result.finalists.empty())
    figures.emplace_back("mean accuracy of the chosen one",
                         fmt::format("{:.4f}", result.finalists.front().mean()));
  if (result.test_accuracy)
    figures.emplace_back("test accuracy", fmt::format("{:.4f}", *result.test_accuracy));
  if (!result.finalists.empty() && !result.finalists.front().whole_accuracies.empty())
    figures.emplace_back("test accuracy trained on all, mean",
                         fmt::format("{:.4f}", mean(result.finalists.front().whole_accuracies)));
  page.figures(figures);
  page.paragraph(fmt::format(
      "Accuracies are of {}; up to {:.4f} guessing has by luck. The best trials were trained again "
      "with {} other seeds, and the best mean is chosen.",
      result.measured_on, result.chance_level, options.seeds));
  page.table(finalists_table(result));
  for (const std::string& each : result.left_out)
    page.paragraph(fmt::format("Could not be trained: {}.", each));
  if (is_compared_on_test(result)) {
    page.paragraph("Trained on all of train and tested, with each of the seeds:");
    page.table(whole_table(result));
  }
  if (const std::vector<UniformRival> rivals = compare_with_uniform(result); !rivals.empty()) {
    page.paragraph(fmt::format(
        "What the front has against one format for all layers, chosen by losses of rows held out "
        "(a difference of two is off by {:.5f} by chance; a format leaves the front where another "
        "of no more cost is better by more): {}.",
        FinalistFront(result.finalists, result.front).error(), front_summary(rivals)));
    page.table(front_table(rivals, result.front));
    add("rivals", rivals_chart(rivals, result.front));
    add("finalists", finalists_chart(result));
  }
  if (result.is_precision && !result.finalists.empty())
    page.table(formats_table(result.finalists.front().candidate), "formats of the chosen model");
  if (options.bit_cost > 0)
    page.paragraph(fmt::format(
        "Trials are compared by the accuracy less {} for each bit of the mean of weights' and "
        "data's average bits.",
        options.bit_cost));
  page.section("Studies");
  page.table(studies_table(result));
  add("best", best_chart(result, options, false, false));
  add("best-zoomed", best_chart(result, options, false, true));
  if (std::ranges::any_of(result.studies, is_of_family)) {
    add("families", best_chart(result, options, true, false));
    add("families-zoomed", best_chart(result, options, true, true));
  }
  if (result.has_curves) {
    add("curves", curves_chart(result));
    page.table(curves_table(result));
  }
  add("trials", trials_chart(result, options));
  if (result.is_precision) {
    add("weight-bits",
        front_chart(result, "weight_bits", "average bits of weights, scales included"));
    add("data-bits", front_chart(result, "data_bits", "average bits of data, scales included"));
  }
  if (const std::string& cost = options.front;
      !cost.empty() && cost != "weight-bits" && cost != "data-bits")
    add("front", front_chart(result, cost.c_str(), cost));
  if (result.is_precision && !result.finalists.empty()) {
    add("counts", families_chart(result.finalists.front().candidate));
    add("formats", formats_chart(result.finalists.front().candidate));
  }
  if (!result.longer_accuracies.empty()) {
    page.section("The chosen model, trained for longer");
    add("longer", longer_chart(result.longer_accuracies, "Accuracy after each epoch", "epoch",
                               "accuracy on " + result.measured_on));
    add("longer-loss", longer_chart(result.longer_losses, "Loss", "step", "loss"));
  }
  page.section("What matters");
  for (const SearchResult::Study& study : result.studies) {
    const auto importance = study::parameter_importance(study.history);
    if (importance.empty()) continue;
    std::vector<std::pair<std::string, double>> most(
        importance.begin(), importance.begin() + static_cast<std::ptrdiff_t>(
                                                     std::min<std::size_t>(12, importance.size())));
    add(fmt::format("importance-{}", study_file_name(study.sampler)),
        report::named_bars("Importance by " + study.sampler, "share", most));
  }
  io::write_atomically(directory / "report.html", page.str());
}

}  // namespace lathe::search
