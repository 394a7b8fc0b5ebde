#include "lathe/study/study.h"

#include <algorithm>

#include "lathe/core/error.h"
#include "lathe/core/utf8_text.h"
#include "lathe/study/json_text.h"
#include "lathe/study/math/pareto.h"
#include "lathe/study/space.h"

namespace lathe::study {
namespace {

using nlohmann::json;

// How many points are proposed for one trial before none is taken to be allowed.
constexpr int kMaxProposals = 1000;

std::string text_of(const std::vector<Direction>& directions) {
  std::string text;
  for (const Direction each : directions)
    text += std::string(text.empty() ? "" : ", ") +
            (each == Direction::Minimize ? "minimize" : "maximize");
  return text;
}

}  // namespace

Study Study::create(std::shared_ptr<Storage> storage, const std::string& name,
                    const std::vector<Direction>& directions, StudyOptions options) {
  if (!is_utf8(name)) fail("a study's name must be UTF-8, which \"{}\" is not", escape_bytes(name));
  if (name.empty()) fail("a study's name is empty");
  if (directions.empty()) fail("study \"{}\": there is no objective", name);
  std::optional<StudyId> id = storage->find_study(name);
  if (!id) {
    const StudyRecord draft = {.name = name, .directions = directions};
    complete(options, draft);
    // A mistake is found before anything is stored.
    make_sampler(*options.sampler, *options.seed, options.space ? &*options.space : nullptr);
    make_pruner(*options.pruner);
    try {
      id = storage->create_study(name, directions, {}, attributes_to_keep(options, draft));
    } catch (const UserError&) {
      id = storage->find_study(name);  // another process may have been faster
      if (!id) throw;
    }
  }
  StudyRecord record = storage->study(*id);
  if (record.directions != directions)
    fail("{}: study \"{}\" has objectives to {}, asked to {}", storage->description(), name,
         text_of(record.directions), text_of(directions));
  return Study(std::move(storage), std::move(record), std::move(options));
}

Study Study::open(std::shared_ptr<Storage> storage, const std::string& name, StudyOptions options) {
  const std::optional<StudyId> id = storage->find_study(name);
  if (!id) {
    std::vector<std::string> names;
    for (const StudyRecord& each : storage->studies()) names.push_back(each.name);
    throw unknown_name("study", name, names).at(storage->description());
  }
  StudyRecord record = storage->study(*id);
  return Study(std::move(storage), std::move(record), std::move(options));
}

Study::Study(std::shared_ptr<Storage> storage, StudyRecord record, StudyOptions options)
    : storage_(std::move(storage)),
      record_(std::move(record)),
      options_(std::move(options)),
      history_(record_.directions),
      worker_(new_owner()) {
  complete(options_, record_);
  if (options_.space) space_ = std::make_unique<const Space>(*options_.space);
  sampler_ = make_sampler(*options_.sampler, *options_.seed, space());
  pruner_ = make_pruner(*options_.pruner);
}

// Whoever only looks at a study changes nothing, so this waits for the first ask.
void Study::keep_options() {
  const Attributes wanted = attributes_to_keep(options_, record_);
  if (wanted.empty()) return;
  storage_->set_study_attributes(record_.id, {}, wanted);
  for (const auto& [key, value] : wanted) record_.system_attributes[key] = value;
}

void Study::refresh() {
  history_.change([&](std::vector<TrialRecord>& trials) { storage_->refresh(record_.id, trials); });
}

const History& Study::history() {
  refresh();
  return history_;
}

void Study::remember(int number, const TrialChange& change) {
  history_.change([&](std::vector<TrialRecord>& trials) {
    if (static_cast<std::size_t>(number) < trials.size())
      apply(change, trials[static_cast<std::size_t>(number)], now());
  });
}

const SpaceParameter* Study::find_declared(std::string_view name) const {
  if (!space_) return nullptr;
  const auto found = std::ranges::find(*space_, name, &SpaceParameter::name);
  return found == space_->end() ? nullptr : &*found;
}

DistributionPtr Study::shared_distribution(const std::string& name,
                                           const Distribution& distribution) {
  if (const SpaceParameter* declared = find_declared(name)) {
    if (*declared->distribution != distribution)
      fail("parameter \"{}\": the study's space has {}, asked for {}", name,
           describe(*declared->distribution), describe(distribution));
    return declared->distribution;
  }
  for (; num_read_ < history_.finished().size(); ++num_read_) {
    const int number = history_.finished()[num_read_];
    for (const Parameter& each : history_.trials()[static_cast<std::size_t>(number)].parameters)
      distributions_.try_emplace(each.name, each.distribution);
  }
  DistributionPtr& shared = distributions_[name];
  if (shared && *shared == distribution) return shared;
  if (shared) require_compatible(*shared, distribution, name);
  shared = std::make_shared<const Distribution>(distribution);
  return shared;
}

std::optional<TrialRecord> Study::claim(const Owner& owner) {
  refresh();
  Claim claim{.owner = owner, .lease = options_.lease, .max_trials = options_.max_trials};
  if (options_.lease.count() > 0)
    claim.system_attributes["lathe:lease"] = std::to_string(options_.lease.count());
  if (const std::optional<int> number = pruner_->promote(history_))
    claim.promote = history_.trials()[static_cast<std::size_t>(*number)].id;
  // Trials that wait or were left behind are still taken.
  if (sampler_->is_exhausted(history_)) claim.max_trials = 0;
  std::optional<TrialRecord> record = storage_->claim(record_.id, claim);
  if (!record) return {};
  const auto index = static_cast<std::size_t>(record->number);
  history_.change([&](std::vector<TrialRecord>& trials) {
    if (index > trials.size()) storage_->refresh(record_.id, trials);  // others came in between
    if (index == trials.size())
      trials.push_back(*record);
    else
      trials[index] = *record;
  });
  return record;
}

// Chooses what can be chosen before the trial starts; false when the trial was lost meanwhile.
bool Study::choose_parameters(Trial& trial) {
  trial.read_fixed();
  if (!space_) {
    // Only what is chosen together; the objective asks for the rest.
    if (trial.record_.parameters.empty()) trial.propose();
    while (options_.is_allowed && !trial.proposed_.empty() &&
           !options_.is_allowed(trial.proposed_) && ++trial.attempt_ < kMaxProposals)
      trial.propose();
    return true;
  }
  const std::vector<Parameter> known = trial.record_.parameters;
  if (known.empty()) trial.propose();
  trial.suggest(*space_);
  while (options_.is_allowed && known.size() < trial.record_.parameters.size() &&
         !options_.is_allowed(trial.record_.parameters)) {
    if (++trial.attempt_ == kMaxProposals)
      fail("study \"{}\": none of {} proposals for trial {} is allowed", record_.name,
           kMaxProposals, trial.number());
    trial.record_.parameters = known;
    trial.pending_.parameters.clear();
    trial.propose();
    trial.suggest(*space_);
  }
  return trial.flush();
}

std::optional<Trial> Study::ask() {
  if (num_claims_ == 0) keep_options();
  while (true) {
    const Owner owner = fmt::format("{}/{}", worker_, num_claims_++);
    std::optional<TrialRecord> record = claim(owner);
    if (!record) return {};
    Trial trial(*this, std::move(*record), owner);
    // One taken over may come from a worker with another lease, or with none.
    const std::string lease = std::to_string(options_.lease.count());
    const auto kept = trial.record_.system_attributes.find("lathe:lease");
    const bool has_lease = kept != trial.record_.system_attributes.end();
    if (has_lease ? kept->second != lease : lease != "0")
      trial.pending_.system_attributes["lathe:lease"] = lease;
    try {
      if (choose_parameters(trial)) return trial;
    } catch (const UserError& error) {
      trial.pending_ = {};
      if (!tell(trial, {.state = TrialState::Fail, .reason = error.message()})) continue;
      // What somebody enqueued may be wrong without anything being wrong with the search.
      if (!trial.record_.system_attributes.contains("fixed_params")) throw;
    }
  }
}

bool Study::enqueue(const std::vector<std::pair<std::string, Choice>>& parameters,
                    bool skip_if_exists) {
  json fixed = json::object();
  for (const auto& [name, value] : parameters) {
    if (const SpaceParameter* declared = find_declared(name)) {
      to_internal(*declared->distribution, value, name);
    } else if (space_) {
      std::vector<std::string> names;
      for (const SpaceParameter& each : *space_) names.push_back(each.name);
      throw unknown_name("parameter", name, names);
    }
    fixed[name] = parse_json(to_json(value));
  }
  const std::string text = to_json_text(fixed);
  if (skip_if_exists) {
    for (const TrialRecord& each : history().trials()) {
      json has = json::object();
      const auto enqueued = each.system_attributes.find("fixed_params");
      if (enqueued != each.system_attributes.end()) {
        has = parse_json(enqueued->second);
      } else {
        for (const Parameter& parameter : each.parameters)
          has[parameter.name] =
              parse_json(to_json(to_external(*parameter.distribution, parameter.value)));
      }
      if (to_json_text(has) == text) return false;
    }
  }
  add({.state = TrialState::Waiting, .system_attributes = {{"fixed_params", text}}});
  return true;
}

int Study::retry_failed() {
  refresh();
  std::vector<bool> is_repeated(history_.trials().size(), false);
  for (const TrialRecord& each : history_.trials()) {
    const auto first = each.system_attributes.find("failed_trial");
    if (first == each.system_attributes.end()) continue;
    const json number = parse_json(first->second);
    if (number.is_number_unsigned() && number.get<std::size_t>() < is_repeated.size())
      is_repeated[number.get<std::size_t>()] = true;
  }
  int count = 0;
  for (std::size_t i = 0; i < is_repeated.size(); ++i) {
    const TrialRecord& failed = history_.trials()[i];
    if (failed.state != TrialState::Fail || is_repeated[i]) continue;
    TrialRecord again{.state = TrialState::Waiting,
                      .parameters = failed.parameters,
                      .system_attributes = {{"failed_trial", std::to_string(failed.number)}}};
    const auto fixed = failed.system_attributes.find("fixed_params");
    if (fixed != failed.system_attributes.end())
      again.system_attributes[fixed->first] = fixed->second;
    add(std::move(again));
    ++count;
  }
  return count;
}

void Study::add(TrialRecord trial) {
  if (trial.state == TrialState::Complete) require_values({.values = trial.values});
  storage_->add_trial(record_.id, trial);
}

std::optional<TrialRecord> Study::best() {
  refresh();
  Progress progress;
  progress.update(history_);
  if (!progress.best()) return {};
  return history_.trials()[static_cast<std::size_t>(*progress.best())];
}

std::vector<TrialRecord> Study::best_trials() {
  refresh();
  std::vector<const TrialRecord*> candidates;
  std::vector<Losses> losses;
  for (const TrialRecord& each : history_.trials()) {
    if (each.state != TrialState::Complete || each.values.size() != record_.directions.size())
      continue;
    if (!is_feasible(each)) continue;
    candidates.push_back(&each);
    losses.push_back(to_losses(each.values, record_.directions));
  }
  std::vector<TrialRecord> result;
  for (const int index : non_dominated(losses))
    result.push_back(*candidates[static_cast<std::size_t>(index)]);
  return result;
}

}  // namespace lathe::study
