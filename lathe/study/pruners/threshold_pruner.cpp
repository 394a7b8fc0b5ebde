// Stops a trial as soon as a report leaves the range where anything good can still come of it.
// Several objectives have a bound each, separated by a stroke: `upper=2.5/100`.
#include <charconv>
#include <cmath>
#include <limits>

#include "lathe/core/registry.h"
#include "lathe/study/option_reader.h"
#include "lathe/study/pruners/pruner.h"
#include "lathe/study/report_loss.h"

namespace lathe::study {

namespace {

// `2.5`, `2.5/100`, `/100`: an empty place is no bound.
std::vector<double> parse_bounds(const OptionReader& options, std::string_view key, double none) {
  std::vector<double> bounds;
  const std::optional<std::string> text = options.text(key);
  if (!text) return bounds;
  for (std::size_t begin = 0; begin <= text->size();) {
    const std::size_t end = std::min(text->find('/', begin), text->size());
    double bound = none;
    if (end > begin) {
      const auto [stop, error] = std::from_chars(text->data() + begin, text->data() + end, bound);
      if (error != std::errc{} || stop != text->data() + end || std::isnan(bound))
        fail("{}={}: expected numbers separated by /", key, *text);
    }
    bounds.push_back(bound);
    begin = end + 1;
  }
  return bounds;
}

class ThresholdPruner final : public Pruner {
 public:
  explicit ThresholdPruner(const OptionReader& options)
      : lower_(parse_bounds(options, "lower", -std::numeric_limits<double>::infinity())),
        upper_(parse_bounds(options, "upper", std::numeric_limits<double>::infinity())),
        steps_{static_cast<int>(options.whole("warmup", 0)),
               static_cast<int>(options.whole("interval", 1, 1))} {
    if (lower_.empty() && upper_.empty()) fail("expected lower, upper or both");
    for (std::size_t i = 0; i < std::min(lower_.size(), upper_.size()); ++i)
      if (lower_[i] > upper_[i])
        fail("lower={} is above upper={}: nothing would be left", lower_[i], upper_[i]);
  }

  Verdict judge(const History& /*history*/, const TrialRecord& trial,
                Attributes& /*system_attributes*/) override {
    if (!steps_.includes_last(trial)) return Verdict::Continue;
    const std::vector<double> values = report_at(trial, *last_step(trial));
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::isnan(values[i])) return Verdict::Prune;
      if (i < lower_.size() && values[i] < lower_[i]) return Verdict::Prune;
      if (i < upper_.size() && values[i] > upper_[i]) return Verdict::Prune;
    }
    return Verdict::Continue;
  }

 private:
  std::vector<double> lower_;
  std::vector<double> upper_;
  JudgedSteps steps_;
};

const Register threshold_pruner{PrunerKind{
    .name = "threshold",
    .summary = "stop trials that report outside lower..upper, or nothing that is a number",
    .options = {{"lower", "least that a report may be [none]"},
                {"upper", "most that a report may be [none]"},
                {"warmup", "steps before a trial is judged [0]"},
                {"interval", "judge at every so many steps, at least 1 [1]"}},
    .make = [](const Options& options) -> std::unique_ptr<Pruner> {
      return std::make_unique<ThresholdPruner>(OptionReader(options));
    },
}};

}  // namespace

}  // namespace lathe::study
