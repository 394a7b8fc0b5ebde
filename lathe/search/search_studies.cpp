#include "lathe/search/search_studies.h"

#include <algorithm>
#include <mutex>

#include "lathe/core/error.h"
#include "lathe/experiment/side_by_side.h"
#include "lathe/search/space_file.h"
#include "lathe/search/twin_trial.h"

namespace lathe::search {
namespace {

// A worker that was not heard of for so long is taken for dead.
constexpr std::chrono::milliseconds kLease(30'000);
// A mistake that every trial makes is not worth a whole budget.
constexpr int kMostFailures = 10;

// The system attribute by which workers know what a study is part of.
constexpr const char* kSearch = "lathe:search";

std::string pruner_of(const SearchOptions& options) {
  if (options.halving == 0 || options.rungs == 1 || !options.front.empty()) return "none";
  return fmt::format("successive-halving:min-resource=1,factor={}", options.halving);
}

constexpr std::string_view kFamily = "family ";

}  // namespace

std::string family_study(const std::string& family) {
  return std::string(kFamily) + family;
}

std::string study_file_name(std::string study) {
  for (char& each : study)
    if (each == ':' || each == '/' || each == '=' || each == ',' || each == ' ') each = '-';
  return study;
}

bool is_listed(const std::string& study) {
  return study == kNarrowed || study == kUniform || study.starts_with(kFamily);
}

SearchStudies::SearchStudies(const SearchOptions& options, const CandidateSpace& space,
                             std::function<bool(const study::Assignment&)> is_allowed)
    : options_(options), space_(space), is_allowed_(std::move(is_allowed)), known_(space) {
  for (const std::string& sampler : options_.samplers) {
    study::Study study = open_study(sampler);
    for (const study::TrialRecord& trial : study.history().trials()) known_.add(sampler, trial);
  }
  for (const Record& record : read_listed())
    for (const study::TrialRecord& trial : record.history.trials())
      known_.add(record.sampler, trial);
}

std::shared_ptr<study::Storage> SearchStudies::open() const {
  return study::open_storage(options_.storage.empty()
                                 ? fmt::format("sqlite:///{}", (options_.out / "study.db").string())
                                 : options_.storage);
}

std::string SearchStudies::study_name(const std::string& sampler) const {
  return options_.study.empty() ? sampler : fmt::format("{} {}", options_.study, sampler);
}

study::Study SearchStudies::open_study(const std::string& sampler) const {
  return with_place(fmt::format("sampler {}", sampler), [&] {
    std::vector<study::Direction> directions{study::Direction::Maximize};
    std::vector<std::string> objectives{"accuracy"};
    if (!options_.front.empty()) {
      directions.push_back(study::Direction::Minimize);
      objectives.push_back(options_.front);
    }
    study::Study study = study::Study::create(
        open(), study_name(sampler), directions,
        // Listed points are asked for one by one.
        {.sampler = is_listed(sampler) ? "random" : sampler,
         .pruner = pruner_of(options_),
         .seed = options_.seed,
         .space = space_.parameters(),
         .objectives = objectives,
         .lease = kLease,
         .is_allowed = [this](const study::Assignment& point) {
           return space_.is_possible(point) && (!is_allowed_ || is_allowed_(point));
         }});
    const std::string search = nlohmann::json{
        {"study", options_.study},
        {"sampler", sampler},
        {"trials", options_.trials},
        {"space", options_.space_text.empty() ? space_text(options_.space) : options_.space_text},
        {"configuration",
         to_json(options_)}}.dump();
    const study::Attributes& kept = study.record().system_attributes;
    const auto found = kept.find(kSearch);
    // Workers elsewhere have other paths; the search's own are those that it was started with.
    if (found == kept.end() || (!options_.is_worker && found->second != search))
      study.storage().set_study_attributes(study.record().id, {}, {{kSearch, search}});
    return study;
  });
}

void SearchStudies::run(const std::vector<std::string>& samplers, int trials,
                        const EvaluateTrial& evaluate, const ProposePoint& propose,
                        const engine::ExecutionOptions& execution,
                        const experiment::Callbacks& callbacks,
                        const std::function<void(const EndedTrial&)>& ended) {
  const auto start = std::chrono::steady_clock::now();
  std::mutex mutex;
  int num_failed = 0;  // in a row
  std::string reason;
  for (const std::string& sampler : samplers) {
    const auto work = [&](const engine::ExecutionOptions& on, const experiment::Callbacks& told) {
      study::Study study = open_study(sampler);
      // One ahead of each job at most: trials that wait are taken before new ones are proposed.
      const auto plan_next = [&] {
        const study::History& history = study.history();
        const auto next = static_cast<int>(history.trials().size());
        const auto num_waiting = std::ranges::count_if(history.unfinished(), [&](int number) {
          return history.trials()[static_cast<std::size_t>(number)].state ==
                 study::TrialState::Waiting;
        });
        if (!propose || num_waiting >= options_.jobs || next >= trials) return;
        if (const auto point = propose(sampler, next)) study.enqueue(*point, true);
      };
      {
        const std::scoped_lock lock(mutex);  // or all would begin with the same
        plan_next();
      }
      study::StopRule rule{.trials = trials,
                           .counts_failed = false,
                           .target = options_.target,
                           .patience = options_.patience,
                           .should_stop = told.should_stop};
      if (options_.time) rule.time = *options_.time - (std::chrono::steady_clock::now() - start);
      study::work(
          study,
          [&](study::Trial& trial, const ShouldStop& should_stop) {
            if (options_.jobs > 1 || !options_.storage.empty())
              await_twin(study, sampler, trial, space_, known_, should_stop);
            return evaluate(
                sampler, trial, on,
                {.progress = told.progress, .notice = told.notice, .should_stop = should_stop});
          },
          rule,
          [&](const study::WorkedTrial& worked) {
            if (worked.ending != study::Ending::Told) return;
            const std::scoped_lock lock(mutex);
            EndedTrial now{.study = sampler, .num_finished = worked.num_finished};
            if (worked.best != nullptr) now.best = worked.best->values.front();
            // The record that the trial ended with is the study's.
            now.trial = study.history().trials()[static_cast<std::size_t>(worked.trial.number)];
            known_.add(sampler, now.trial);
            const bool has_failed = now.trial.state == study::TrialState::Fail;
            num_failed = has_failed ? num_failed + 1 : 0;
            if (has_failed) {
              const auto found = now.trial.user_attributes.find("fail_reason");
              reason = found == now.trial.user_attributes.end() ? "no reason" : found->second;
              if (num_failed >= kMostFailures) study.stop();
            }
            if (ended) ended(now);
            plan_next();
          });
    };
    experiment::do_side_by_side(std::vector<experiment::Job>(
                                    static_cast<std::size_t>(options_.jobs), experiment::Job(work)),
                                options_.jobs, execution, callbacks);
    if (callbacks.stops()) throw Interrupted();
    if (num_failed >= kMostFailures)
      fail("sampler {}: stopped after {} failed trials in a row; the last: {}", sampler, num_failed,
           reason);
  }
}

std::vector<SearchStudies::Record> SearchStudies::read() const {
  std::vector<Record> records;
  for (const std::string& sampler : options_.samplers)
    records.push_back({sampler, open_study(sampler).history()});
  return records;
}

std::vector<SearchStudies::Record> SearchStudies::read_listed() const {
  std::vector<Record> records;
  std::vector<std::string> names{kNarrowed};
  if (space_.space().precision)
    for (const FormatChoices& family : space_.space().precision->tensors.front().families)
      names.push_back(family_study(family.name));
  names.emplace_back(kUniform);
  for (const std::string& name : names)
    if (open()->find_study(study_name(name))) records.push_back({name, open_study(name).history()});
  return records;
}

SearchOptions read_stored_search(const std::string& storage, const std::string& study) {
  SearchOptions found;
  found.storage = storage;
  found.study = study;
  found.is_worker = true;
  found.samplers.clear();
  std::vector<std::string> names;
  for (const study::StudyRecord& record : study::open_storage(storage)->studies()) {
    const auto kept = record.system_attributes.find(kSearch);
    if (kept == record.system_attributes.end()) continue;
    const nlohmann::json search = nlohmann::json::parse(kept->second, nullptr, false);
    if (!search.is_object()) fail("study \"{}\": attribute {} is damaged", record.name, kSearch);
    names.push_back(search.value("study", ""));
    const std::string sampler = search.value("sampler", "");
    if (names.back() != study || is_listed(sampler)) continue;
    found.samplers.push_back(sampler);
    found.trials = search.value("trials", 0);
    found.space_text = search.value("space", "");
    take_recorded(found, search.value("configuration", nlohmann::json::object()));
  }
  if (found.samplers.empty()) throw unknown_name("search", study, names).at(storage);
  return found;
}

}  // namespace lathe::search
