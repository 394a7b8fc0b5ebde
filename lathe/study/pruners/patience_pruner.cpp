// Holds another pruner back while a trial still improves: it is asked only after `patience` steps
// in which no report was better than one before them.
#include <algorithm>

#include "lathe/core/registry.h"
#include "lathe/study/option_reader.h"
#include "lathe/study/pruners/pruner.h"
#include "lathe/study/report_loss.h"

namespace lathe::study {

namespace {

class PatiencePruner final : public Pruner {
 public:
  PatiencePruner(std::unique_ptr<Pruner> inner, int patience, double min_delta)
      : inner_(std::move(inner)), patience_(patience), min_delta_(min_delta) {}

  Verdict judge(const History& history, const TrialRecord& trial,
                Attributes& system_attributes) override {
    if (is_improving(trial, history.directions())) return Verdict::Continue;
    return inner_ == nullptr ? Verdict::Prune : inner_->judge(history, trial, system_attributes);
  }
  std::optional<int> promote(const History& history) override {
    return inner_ == nullptr ? std::nullopt : inner_->promote(history);
  }

 private:
  bool is_improving(const TrialRecord& trial, const std::vector<Direction>& directions) const {
    const int num_reports = static_cast<int>(trial.intermediate_values.size());
    const int num_before = num_reports - patience_ - 1;
    if (num_before <= 0) return true;
    std::vector<Losses> before;
    std::vector<Losses> after;
    int index = 0;
    for (const auto& [step, value] : trial.intermediate_values) {
      const bool is_before = index++ < num_before;
      auto loss = report_loss(trial, step, directions);
      if (!loss || has_nan(*loss)) continue;
      if (is_before)
        for (double& each : *loss) each += min_delta_;
      (is_before ? before : after).push_back(std::move(*loss));
    }
    // Better than before is what nothing from before dominates.
    return after.empty() || std::any_of(after.begin(), after.end(), [&](const Losses& late) {
             return std::none_of(before.begin(), before.end(),
                                 [&](const Losses& early) { return dominates(early, late); });
           });
  }

  std::unique_ptr<Pruner> inner_;
  int patience_;
  double min_delta_;
};

std::unique_ptr<Pruner> make_patience(const Options& options) {
  const OptionReader reader(options);
  std::unique_ptr<Pruner> inner;
  // Its options are set off by strokes, since commas separate ours: median/startup=3/warmup=2.
  if (std::optional<std::string> text = reader.text("pruner")) {
    std::replace(text->begin(), text->end(), '/', ',');
    if (const std::size_t comma = text->find(','); comma != std::string::npos) (*text)[comma] = ':';
    inner = make_pruner(*text);
  }
  return std::make_unique<PatiencePruner>(std::move(inner),
                                          static_cast<int>(reader.whole("patience", 3)),
                                          reader.number("min-delta", 0, 0));
}

const Register patience_pruner{PrunerKind{
    .name = "patience",
    .summary = "stop trials that stopped improving, or ask another pruner only then",
    .options = {{"patience", "steps without a better report [3]"},
                {"min-delta", "what counts as better, at least 0 [0]"},
                {"pruner", "who is asked then, such as median [stop at once]"}},
    .make = make_patience,
}};

}  // namespace

}  // namespace lathe::study
