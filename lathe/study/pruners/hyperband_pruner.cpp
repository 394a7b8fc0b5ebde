// Successive halving on several ladders at once, because nobody knows how early is too early to
// judge: ladder b leaves out the lowest b rungs. A trial's number decides its ladder, in the shares
// that Hyperband gives them.
#include <cmath>

#include "lathe/core/registry.h"
#include "lathe/study/option_reader.h"
#include "lathe/study/pruners/halving_rule.h"

namespace lathe::study {

namespace {

// The checksum of zip and PNG files, bit by bit: Optuna spreads trials over brackets with it.
std::uint32_t crc32(std::string_view text) {
  std::uint32_t remainder = 0xFFFFFFFFu;
  for (const char c : text) {
    remainder ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit)
      remainder = remainder >> 1 ^ ((remainder & 1) != 0 ? 0xEDB88320u : 0);
  }
  return ~remainder;
}

class HyperbandPruner final : public Pruner {
 public:
  explicit HyperbandPruner(const OptionReader& options)
      : study_(options.text("study").value_or("")) {
    rule_.min_resource = static_cast<int>(options.whole("min-resource", 1, 1));
    if (options.text("max-resource").value_or("auto") != "auto")
      max_resource_ = static_cast<int>(options.whole("max-resource", 1, rule_.min_resource));
    rule_.factor = static_cast<int>(options.whole("factor", 3, 2));
    rule_.bootstrap = static_cast<int>(options.whole("bootstrap", 0));
    rule_.can_pause = options.flag("pause", false);
    if (rule_.bootstrap > 0 && !max_resource_)
      fail("bootstrap={}: needs max-resource as a number", rule_.bootstrap);
  }

  Verdict judge(const History& history, const TrialRecord& trial,
                Attributes& system_attributes) override {
    const std::vector<int> shares = bracket_shares(history);
    if (shares.empty()) return Verdict::Continue;
    const int bracket = bracket_of(trial.number, shares);
    HalvingRule rule = rule_;
    rule.rate = bracket;
    return rule.judge(history, trial, system_attributes,
                      [&](int number) { return bracket_of(number, shares) == bracket; });
  }

  std::optional<int> promote(const History& history) override {
    if (!rule_.can_pause) return {};
    const std::vector<int> shares = bracket_shares(history);
    for (int bracket = 0; bracket < static_cast<int>(shares.size()); ++bracket) {
      HalvingRule rule = rule_;
      rule.rate = bracket;
      const auto promoted =
          rule.promote(history, [&](int number) { return bracket_of(number, shares) == bracket; });
      if (promoted) return promoted;
    }
    return {};
  }

 private:
  // How many trials of a round each bracket gets; empty while nobody knows how long trials are.
  std::vector<int> bracket_shares(const History& history) const {
    std::optional<int> longest = max_resource_;
    if (!longest) {
      longest = longest_known_step(history);
      if (!longest) return {};
      ++*longest;
    }
    const double ratio = static_cast<double>(*longest) / rule_.min_resource;
    const int count = static_cast<int>(std::floor(std::log(ratio) / std::log(rule_.factor))) + 1;
    std::vector<int> shares;
    for (int bracket = 0; bracket < count; ++bracket) {
      const int left = count - 1 - bracket;
      shares.push_back(
          static_cast<int>(std::ceil(count * std::pow(rule_.factor, left) / (left + 1))));
    }
    return shares;
  }

  int bracket_of(int number, const std::vector<int>& shares) const {
    std::uint32_t total = 0;
    for (const int share : shares) total += static_cast<std::uint32_t>(share);
    auto place = static_cast<int>(crc32(fmt::format("{}_{}", study_, number)) % total);
    int bracket = 0;
    while (place >= shares[bracket]) place -= shares[bracket++];
    return bracket;
  }

  std::string study_;
  std::optional<int> max_resource_;
  HalvingRule rule_;
};

const Register hyperband_pruner{PrunerKind{
    .name = "hyperband",
    .summary = "successive halving that starts to judge early for some trials, late for others",
    .options = {{"min-resource", "first step to judge at, at least 1 [1]"},
                {"max-resource", "last step of a trial, or auto: that of complete ones [auto]"},
                {"factor", "of so many trials one goes on at a rung, at least 2 [3]"},
                {"bootstrap", "trials a rung must have before any is stopped [0]"},
                {"pause", "true keeps trials to go on with later, instead of ending them [false]"},
                {"study", "a name that decides which bracket a trial belongs to"}},
    .make = [](const Options& options) -> std::unique_ptr<Pruner> {
      return std::make_unique<HyperbandPruner>(OptionReader(options));
    },
}};

}  // namespace

}  // namespace lathe::study
