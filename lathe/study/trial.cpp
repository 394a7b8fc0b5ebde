#include <algorithm>

#include "lathe/core/error.h"
#include "lathe/study/json_text.h"
#include "lathe/study/space.h"
#include "lathe/study/space_point.h"
#include "lathe/study/study.h"

namespace lathe::study {
namespace {

// How often one parameter is chosen again when the point so far is not allowed.
constexpr int kMaxSuggestions = 100;

bool is_empty(const TrialChange& change) {
  return change.parameters.empty() && change.intermediate_values.empty() &&
         change.user_attributes.empty() && change.system_attributes.empty() && !change.state;
}

}  // namespace

Trial::Trial(Study& study, TrialRecord record, Owner owner)
    : study_(&study), record_(std::move(record)), owner_(std::move(owner)) {}

void Trial::read_fixed() {
  const auto found = record_.system_attributes.find("fixed_params");
  if (found == record_.system_attributes.end()) return;
  with_place(fmt::format("trial {}: attribute \"fixed_params\"", record_.number), [&] {
    const nlohmann::json object = parse_json(found->second);
    if (!object.is_object()) fail("expected an object, not {}", found->second);
    for (const auto& [name, value] : object.items())
      fixed_.emplace(name, parse_choice(to_json_text(value)));
  });
}

Proposal Trial::proposal() {
  return {.seed = study_->seed(),
          .number = record_.number,
          .attempt = attempt_,
          .space = study_->space(),
          .is_allowed = study_->options_.is_allowed,
          .system_attributes = &pending_.system_attributes};
}

void Trial::propose() {
  has_proposed_ = true;
  next_proposed_ = 0;
  proposed_ = study_->sampler_->propose(study_->history_, proposal());
}

double Trial::choose(const std::string& name, const Distribution& distribution) {
  if (!fixed_.empty()) {
    const auto fixed = fixed_.find(name);
    if (fixed != fixed_.end()) return to_internal(distribution, fixed->second, name);
  }
  if (is_single(distribution)) {
    if (const auto* d = std::get_if<FloatDistribution>(&distribution)) return d->low;
    if (const auto* d = std::get_if<IntDistribution>(&distribution))
      return static_cast<double>(d->low);
    return 0;
  }
  if (!has_proposed_) propose();
  for (std::size_t i = 0; i < proposed_.size(); ++i) {
    const std::size_t index = (next_proposed_ + i) % proposed_.size();
    const Parameter& each = proposed_[index];
    if (each.name != name) continue;
    next_proposed_ = (index + 1) % proposed_.size();
    if (each.distribution.get() == &distribution || *each.distribution == distribution)
      return each.value;
    break;
  }
  const double value = study_->sampler_->suggest(study_->history_, proposal(), record_.parameters,
                                                 name, distribution);
  check(contains(distribution, value), "a sampler to suggest a value of the distribution");
  return value;
}

double Trial::add(const std::string& name, const DistributionPtr& distribution) {
  const double value = choose(name, *distribution);
  record_.parameters.push_back({name, distribution, value});
  return value;
}

double Trial::suggest(const std::string& name, const Distribution& distribution) {
  const Distribution asked = validated(distribution, name);
  if (const Parameter* known = record_.find(name)) {
    if (*known->distribution != asked)
      fail("parameter \"{}\": trial {} has it as {}, asked for {}", name, record_.number,
           describe(*known->distribution), describe(asked));
    return known->value;
  }
  const DistributionPtr shared = study_->shared_distribution(name, asked);
  double value = add(name, shared);
  const auto& is_allowed = study_->options_.is_allowed;
  for (int i = 1; is_allowed && i < kMaxSuggestions && !is_allowed(record_.parameters); ++i) {
    // The others are fixed by now, so only this one can still change; the joint proposal is spent.
    record_.parameters.pop_back();
    proposed_.clear();
    ++attempt_;
    value = add(name, shared);
  }
  pending_.parameters.push_back(record_.parameters.back());
  return value;
}

double Trial::suggest_float(const std::string& name, double low, double high, bool log,
                            std::optional<double> step) {
  return suggest(name, FloatDistribution{.low = low, .high = high, .log = log, .step = step});
}

std::int64_t Trial::suggest_int(const std::string& name, std::int64_t low, std::int64_t high,
                                bool log, std::int64_t step) {
  return static_cast<std::int64_t>(
      suggest(name, IntDistribution{.low = low, .high = high, .log = log, .step = step}));
}

Choice Trial::suggest_categorical(const std::string& name, std::vector<Choice> choices) {
  const Distribution distribution = CategoricalDistribution{std::move(choices)};
  return to_external(distribution, suggest(name, distribution));
}

void Trial::suggest(const Space& given) {
  if (&given != study_->space()) return suggest_from(validated(given));
  suggest_from(given);
}

void Trial::suggest_from(const Space& space) {
  const std::size_t num_known = record_.parameters.size();
  for (const SpaceParameter& each : space) {
    if (!is_present(each, record_.parameters)) continue;
    // A trial taken over from another worker has some or all of its parameters already.
    const auto known = record_.parameters.begin();
    const auto has_name = [&](const Parameter& parameter) { return parameter.name == each.name; };
    if (std::any_of(known, known + static_cast<std::ptrdiff_t>(num_known), has_name)) continue;
    pending_.parameters.push_back(
        {each.name, each.distribution, add(each.name, each.distribution)});
  }
}

void Trial::report(int step, double value, const std::vector<double>& others) {
  if (step < 0) fail("trial {}: report at step {}, expected 0 or more", record_.number, step);
  if (!record_.intermediate_values.emplace(step, value).second) return;
  pending_.intermediate_values.emplace_back(step, value);
  if (others.empty()) return;
  const std::string text = to_json_text(others);
  record_.system_attributes[report_key(step)] = text;
  pending_.system_attributes[report_key(step)] = text;
}

Verdict Trial::verdict() {
  if (!flush()) return Verdict::Prune;
  if (record_.intermediate_values.empty() || study_->options_.pruner == "none")
    return Verdict::Continue;
  study_->refresh();
  Attributes remembered;
  const Verdict verdict = study_->pruner_->judge(study_->history_, record_, remembered);
  if (remembered.empty()) return verdict;
  // Other trials are judged by what this one leaves, so it is written now.
  for (const auto& [key, value] : remembered) {
    record_.system_attributes[key] = value;
    pending_.system_attributes[key] = value;
  }
  return flush() ? verdict : Verdict::Prune;
}

void Trial::set_user_attribute(const std::string& key, std::string json) {
  with_place(fmt::format("user attribute \"{}\"", key), [&] { parse_json(json); });
  record_.user_attributes[key] = json;
  pending_.user_attributes[key] = std::move(json);
}

void Trial::set_constraints(const std::vector<double>& constraints) {
  const std::string text = to_json_text(constraints);
  record_.system_attributes["constraints"] = text;
  pending_.system_attributes["constraints"] = text;
}

bool Trial::flush() {
  Storage& storage = study_->storage();
  if (is_empty(pending_)) return storage.heartbeat(record_.id, owner_);
  if (!storage.update(record_.id, owner_, pending_)) return false;
  for (const auto& [key, value] : pending_.system_attributes)
    record_.system_attributes[key] = value;
  study_->remember(record_.number, pending_);
  pending_ = {};
  return true;
}

}  // namespace lathe::study
