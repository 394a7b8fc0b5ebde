#include "lathe/search/architecture_search.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "lathe/core/error.h"
#include "lathe/core/passes/profile.h"
#include "lathe/experiment/evaluate.h"
#include "lathe/experiment/side_by_side.h"
#include "lathe/search/search_directory.h"
#include "lathe/search/search_report.h"
#include "lathe/search/search_studies.h"
#include "lathe/search/space_file.h"
#include "lathe/search/train_candidate.h"
#include "lathe/study/samplers/sampler.h"

namespace lathe::search {
namespace {

namespace fs = std::filesystem;

// A name for files: `tpe:gamma=0.3` has characters that some file systems refuse.
std::string file_name(std::string text) {
  for (char& each : text)
    if (each == ':' || each == '/' || each == '=' || each == ',') each = '-';
  return text;
}

// The space that the options name, once it is sure that all samplers can work on it.
CandidateSpace space_for(const SearchOptions& options) {
  CandidateSpace space(read_search_space(options.space));
  if (space.parameters().empty())
    fail("space {}: there is nothing to choose: every value is fixed", options.space);
  for (const std::string& sampler : options.samplers)
    with_place("sampler", [&] { study::make_sampler(sampler, options.seed, &space.parameters()); });
  return space;
}

class ArchitectureSearch {
 public:
  ArchitectureSearch(const SearchOptions& options, const engine::ExecutionOptions& execution,
                     const experiment::Callbacks& callbacks)
      : options_(options),
        execution_(execution),
        callbacks_(callbacks),
        space_(space_for(options)),
        data_(options, space_.space().architecture.model, execution, callbacks),
        directory_(options),
        studies_(options, space_, data_.chance_level()) {}

  SearchResult run() {
    const auto start = std::chrono::steady_clock::now();
    run_studies();
    SearchResult result{.measured_on = data_.measured_on(), .chance_level = data_.chance_level()};
    for (SearchStudies::Record& record : studies_.read())
      result.studies.push_back({std::move(record.sampler), std::move(record.history)});
    result.finalists = best_trials(result);
    if (!result.finalists.empty()) {
      train_again(result.finalists);
      result.test_accuracy = test(result.finalists.front());
    }
    result.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    write_report(result, options_, directory_.path());
    return result;
  }

 private:
  void run_studies() {
    studies_.run(
        [&](const std::string& study, study::Trial& trial,
            const engine::ExecutionOptions& execution, const experiment::Callbacks& callbacks) {
          return evaluate(study, trial, execution, callbacks);
        },
        execution_, callbacks_,
        [&](const std::string& sampler, const study::WorkedTrial& worked) {
          tell(sampler, worked);
        });
  }

  void tell(const std::string& sampler, const study::WorkedTrial& worked) const {
    callbacks_.tell({.activity = "searching by " + sampler,
                     .unit = "trials",
                     .done = worked.num_finished,
                     .total = options_.trials,
                     .note = worked.best == nullptr
                                 ? ""
                                 : fmt::format("best {:.4f}", worked.best->values.front())});
  }

  study::Outcome evaluate(const std::string& study, study::Trial& trial,
                          const engine::ExecutionOptions& execution,
                          const experiment::Callbacks& callbacks) {
    const Candidate candidate = space_.candidate(trial.record().parameters);
    // What a trial that was interrupted reported is with it; asking again would be for nothing.
    const auto goes_on = [&](int resource, double accuracy) {
      trial.report(resource, accuracy);
      return trial.verdict() == study::Verdict::Continue;
    };
    if (const std::optional<KnownResult> known = studies_.known().find(candidate))
      if (const auto outcome = replay(*known, trial, goes_on)) return *outcome;
    const std::optional<TrainedCandidate> trained = train_candidate(
        data_, candidate, options_.seed, rungs(),
        directory_.path() / "trials" / fmt::format("{}-{}", file_name(study), trial.number()),
        false, execution,
        {.goes_on = goes_on,
         .callbacks = {.notice = callbacks.notice, .should_stop = callbacks.should_stop}});
    if (!trained) return given_up(trial);
    trial.report(rungs().resource(rungs().count - 1), trained->accuracy);
    trial.set_user_attribute("parameters", std::to_string(trained->parameters));
    trial.set_user_attribute("seconds", fmt::format("{:.3f}", trained->seconds));
    return {.values = {trained->accuracy}};
  }

  // What the same model came to before, judged by this study; nothing where it must go on further
  // than it did.
  std::optional<study::Outcome> replay(const KnownResult& known, study::Trial& trial,
                                       const std::function<bool(int, double)>& goes_on) const {
    trial.set_user_attribute("copied_from", nlohmann::json(known.from).dump());
    const int last = rungs().resource(rungs().count - 1);
    for (const auto& [resource, accuracy] : known.reports) {
      if (resource == last)
        trial.report(resource, accuracy);
      else if (!goes_on(resource, accuracy))
        return given_up(trial);
    }
    if (!known.accuracy) return std::nullopt;
    for (const char* const key : {"parameters", "seconds"})
      if (const auto found = known.attributes.find(key); found != known.attributes.end())
        trial.set_user_attribute(key, found->second);
    return study::Outcome{.values = {*known.accuracy}};
  }

  study::Outcome given_up(study::Trial& trial) const {
    const std::map<int, double>& reports = trial.record().intermediate_values;
    if (!reports.empty() && reports.rbegin()->second <= data_.chance_level())
      trial.set_user_attribute("collapsed", "true");
    return {.state = study::TrialState::Pruned};
  }

  Rungs rungs() const {
    return options_.halving == 0 ? Rungs{.factor = 1, .count = 1}
                                 : Rungs{.factor = options_.halving, .count = options_.rungs};
  }

  // The best complete trials of all studies, each model once.
  std::vector<Finalist> best_trials(const SearchResult& result) const {
    std::vector<Finalist> best;
    for (const SearchResult::Study& study : result.studies)
      for (const study::TrialRecord& trial : study.history.trials()) {
        if (trial.state != study::TrialState::Complete) continue;
        Finalist finalist{.sampler = study.sampler,
                          .trial = trial.number,
                          .found = trial.values.front(),
                          .candidate = space_.candidate(trial.parameters)};
        const auto is_same = [&](const Finalist& each) {
          return each.candidate == finalist.candidate;
        };
        if (std::ranges::none_of(best, is_same)) best.push_back(std::move(finalist));
      }
    std::ranges::stable_sort(best, std::greater(), &Finalist::found);
    if (best.size() > static_cast<std::size_t>(options_.finalists))
      best.resize(static_cast<std::size_t>(options_.finalists));
    return best;
  }

  // With seeds that the studies have not seen: what was best by luck is not so again.
  std::uint64_t seed_of(int index) const {
    return options_.seed + 1 + static_cast<std::uint64_t>(index);
  }
  fs::path path_of(const Finalist& finalist, int seed) const {
    return directory_.path() / "finalists" /
           fmt::format("{}-{}-seed-{}", file_name(finalist.sampler), finalist.trial, seed_of(seed));
  }

  void train_again(std::vector<Finalist>& finalists) {
    std::vector<experiment::Job> jobs;
    for (Finalist& finalist : finalists) {
      finalist.accuracies.resize(static_cast<std::size_t>(options_.seeds));
      for (int seed = 0; seed < options_.seeds; ++seed)
        jobs.emplace_back([&, seed](const engine::ExecutionOptions& execution,
                                    const experiment::Callbacks& callbacks) {
          finalist.accuracies[static_cast<std::size_t>(seed)] =
              train_again(finalist, seed, execution, callbacks);
          callbacks.tell({.activity = "training the best again", .unit = "runs"});
        });
    }
    experiment::do_side_by_side(jobs, options_.jobs, execution_, callbacks_);
    for (Finalist& finalist : finalists) {
      Graph graph = build_candidate(data_, finalist.candidate, options_.seed).graph;
      finalist.parameters = profile(graph).parameters;
    }
    std::ranges::stable_sort(finalists, std::greater(), &Finalist::mean);
  }

  double train_again(const Finalist& finalist, int seed, const engine::ExecutionOptions& execution,
                     const experiment::Callbacks& callbacks) {
    const fs::path path = path_of(finalist, seed);
    const std::string name = path.filename().string();
    if (const auto known = directory_.find(name)) return *known;
    const auto trained = train_candidate(data_, finalist.candidate, seed_of(seed), rungs(), path,
                                         true, execution, {.callbacks = callbacks});
    directory_.keep(name, trained->accuracy);
    return trained->accuracy;
  }

  // The chosen candidate's model of the seed that did best on the rows that were held out.
  std::optional<double> test(const Finalist& chosen) {
    const auto best = std::ranges::max_element(chosen.accuracies) - chosen.accuracies.begin();
    const io::Model model = io::load_model(path_of(chosen, static_cast<int>(best)).string());
    const fs::path target = directory_.path() / "best";
    std::error_code ignored;
    fs::remove_all(target, ignored);
    io::write_checkpoint(target, model);
    const std::string name =
        "test of " + path_of(chosen, static_cast<int>(best)).filename().string();
    if (const auto known = directory_.find(name)) return known;
    if (!options_.is_tested || !data::has_split(options_.data, "test")) return std::nullopt;
    const double accuracy =
        experiment::evaluate_on(model,
                                {.data = options_.data, .split = "test", .length = options_.length},
                                execution_, callbacks_)
            .classes->accuracy;
    directory_.keep(name, accuracy);
    return accuracy;
  }

  const SearchOptions& options_;
  const engine::ExecutionOptions& execution_;
  const experiment::Callbacks& callbacks_;
  // What is wrong with these must not leave a directory.
  const CandidateSpace space_;
  const TrialData data_;
  SearchDirectory directory_;
  SearchStudies studies_;
};

}  // namespace

double Finalist::mean() const {
  return std::accumulate(accuracies.begin(), accuracies.end(), 0.0) /
         static_cast<double>(accuracies.size());
}

SearchResult search_architecture(const SearchOptions& options,
                                 const engine::ExecutionOptions& execution,
                                 const experiment::Callbacks& callbacks) {
  check_options(options);
  return ArchitectureSearch(options, execution, callbacks).run();
}

}  // namespace lathe::search
