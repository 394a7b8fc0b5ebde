// One ladder of rungs for all trials; see halving_rule.h.
#include "lathe/core/registry.h"
#include "lathe/study/option_reader.h"
#include "lathe/study/pruners/halving_rule.h"

namespace lathe::study {

namespace {

class SuccessiveHalvingPruner final : public Pruner {
 public:
  explicit SuccessiveHalvingPruner(const OptionReader& options)
      : is_automatic_(options.text("min-resource").value_or("auto") == "auto") {
    if (!is_automatic_) rule_.min_resource = static_cast<int>(options.whole("min-resource", 1, 1));
    rule_.factor = static_cast<int>(options.whole("factor", 4, 2));
    rule_.rate = static_cast<int>(options.whole("rate", 0, 0, 30));
    rule_.bootstrap = static_cast<int>(options.whole("bootstrap", 0));
    rule_.can_pause = options.flag("pause", false);
    if (rule_.bootstrap > 0 && is_automatic_)
      fail("bootstrap={}: needs min-resource as a number", rule_.bootstrap);
  }

  Verdict judge(const History& history, const TrialRecord& trial,
                Attributes& system_attributes) override {
    const std::optional<HalvingRule> rule = rule_for(history);
    if (!rule) return Verdict::Continue;
    return rule->judge(history, trial, system_attributes, is_rival);
  }
  std::optional<int> promote(const History& history) override {
    const std::optional<HalvingRule> rule = rule_for(history);
    if (!rule || !rule->can_pause) return {};
    return rule->promote(history, is_rival);
  }

 private:
  static bool is_rival(int /*number*/) { return true; }

  // By default the first rung stands at a hundredth of the first complete trial's length.
  std::optional<HalvingRule> rule_for(const History& history) const {
    HalvingRule rule = rule_;
    if (!is_automatic_) return rule;
    const std::optional<int> length = longest_known_step(history);
    if (!length) return {};
    rule.min_resource = std::max(*length / 100, 1);
    return rule;
  }

  bool is_automatic_;
  HalvingRule rule_;
};

const Register successive_halving_pruner{PrunerKind{
    .name = "successive-halving",
    .summary = "let the best 1/factor of all trials at each rung go on; pause=true keeps the rest",
    .options = {{"min-resource", "first step to judge at, at least 1, or auto [auto]"},
                {"factor", "of so many trials one goes on at a rung, at least 2 [4]"},
                {"rate", "how much later the first rung is, 0 to 30 [0]"},
                {"bootstrap", "trials a rung must have before any is stopped [0]"},
                {"pause", "true keeps trials to go on with later, instead of ending them [false]"}},
    .make = [](const Options& options) -> std::unique_ptr<Pruner> {
      return std::make_unique<SuccessiveHalvingPruner>(OptionReader(options));
    },
}};

}  // namespace

}  // namespace lathe::study
