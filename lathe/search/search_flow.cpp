#include "lathe/search/search_flow.h"

#include <algorithm>
#include <chrono>

#include "lathe/core/error.h"
#include "lathe/core/number_format.h"
#include "lathe/engine/format_precision.h"
#include "lathe/io/output_directory.h"
#include "lathe/search/allocation.h"
#include "lathe/search/builder_sizes.h"
#include "lathe/search/candidate_costs.h"
#include "lathe/search/compress_candidate.h"
#include "lathe/search/family_points.h"
#include "lathe/search/finalist_training.h"
#include "lathe/search/format_starts.h"
#include "lathe/search/narrowed_grid.h"
#include "lathe/search/precision_costs.h"
#include "lathe/search/search_budget.h"
#include "lathe/search/search_candidates.h"
#include "lathe/search/search_directory.h"
#include "lathe/search/search_report.h"
#include "lathe/search/search_studies.h"
#include "lathe/search/supernet.h"
#include "lathe/search/train_candidate.h"
#include "lathe/search/trial_results.h"
#include "lathe/study/samplers/sampler.h"
#include "lathe/train/make_source.h"

namespace lathe::search {
namespace {

namespace fs = std::filesystem;

class Search {
 public:
  Search(const SearchOptions& options, const engine::ExecutionOptions& execution,
         const experiment::Callbacks& callbacks)
      : options_(options),
        execution_(execution),
        callbacks_(callbacks),
        file_(space_for(options)),
        data_(options, builder_name(file_.architecture), execution, callbacks),
        space_(candidates_of(file_, data_.base())),
        costs_(data_.base(), train::text_length(data_.base(), options.length)),
        layer_costs_(data_.base().graph),
        budget_(options, file_, space_, costs_, layer_costs_) {
    if (space_.parameters().empty())
      fail("space {}: there is nothing to choose: every value is fixed", options.space);
    for (const std::string& sampler : options.samplers)
      with_place("sampler",
                 [&] { study::make_sampler(sampler, options.seed, &space_.parameters()); });
    if (options.supernet > 0 && !has_encoder_sizes(file_.architecture))
      fail("supernet: learns words for the family bert, and {} is of another",
           file_.architecture.model);
    check_precision();
    budget_.check(chooses_by_layer());
    if (options.tries_uniform) space_.uniform_candidates();  // fails before any work
    directory_.emplace(options);
    studies_.emplace(options, space_, [this](const study::Assignment& point) {
      return !budget_.is_given() || budget_.holds(point);
    });
    if (options.supernet > 0)
      data_.set_parent(train_supernet(options, file_.architecture, data_.base(),
                                      directory_->path() / "supernet", execution, callbacks));
  }

  // Trials alone.
  void work() {
    if (chooses_by_layer() && options_.is_damage_measured)
      starts_.emplace(options_, execution_, callbacks_, file_, data_, space_.layers(), layer_costs_,
                      *directory_);
    run_studies();
  }

  // A trial's model once more, to the same bits.
  TrainedCandidate rebuild(const std::string& sampler, int number) {
    for (const SearchStudies::Record& record : studies_->read()) {
      if (record.sampler != sampler) continue;
      if (number < 0 || number >= std::ssize(record.history.trials()))
        fail("trial {}: the study {} has {}", number, sampler, record.history.trials().size());
      const study::TrialRecord& trial = record.history.trials()[static_cast<std::size_t>(number)];
      return *train_candidate(data_, space_.candidate(trial.parameters), options_.seed, rungs(),
                              directory_->path() / "trials" /
                                  fmt::format("{}-{}-again", study_file_name(sampler), number),
                              false, execution_, {.callbacks = callbacks_});
    }
    throw unknown_name("sampler", sampler, options_.samplers);
  }

  SearchResult run() {
    const auto start = std::chrono::steady_clock::now();
    work();
    SearchResult result{.measured_on = data_.measured_on(),
                        .chance_level = data_.chance_level(),
                        .is_precision = space_.space().precision.has_value(),
                        .has_curves = options_.compares,
                        .front = options_.front};
    for (SearchStudies::Record& record : studies_->read())
      result.studies.push_back({std::move(record.sampler), std::move(record.history)});
    for (SearchStudies::Record& record : studies_->read_listed())
      result.studies.push_back({std::move(record.sampler), std::move(record.history)});
    result.finalists = choose_finalists(complete_trials(result), options_);
    if (options_.tries_uniform) add_compared(result.finalists);
    if (!result.finalists.empty()) {
      FinalistTraining training(options_, data_.builder(), rungs(), data_, *directory_, execution_,
                                callbacks_);
      training.train_again(result.finalists);
      const Finalist& chosen = result.finalists.front();
      result.test_accuracy = training.test(chosen);
      if (options_.longer > 0) {
        LearningCurve longer = training.train_longer(chosen);
        result.longer_accuracies = std::move(longer.accuracies);
        result.longer_losses = std::move(longer.losses);
      }
      if (options_.whole > 0) training.train_on_all(result.finalists);
      result.left_out = training.left_out();
    }
    result.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    write_report(result, options_, directory_->path());
    return result;
  }

 private:
  // Formats that no trial could compute are known before any work.
  void check_precision() const {
    if (!space_.space().precision) return;
    const auto check = [&](const std::vector<FormatChoices>& families) {
      for (const FormatChoices& family : families)
        for (const std::string& text : family.formats)
          if (const auto format = parse_format(text); format != nullptr)
            with_place(fmt::format("space {}", options_.space),
                       [&] { engine::check_format(*format, execution_.precision); });
    };
    for (const TensorChoices& tensor : space_.space().precision->tensors) check(tensor.families);
    check(space_.space().precision->uniform);
  }
  // Whether layers of one model have formats of their own.
  bool chooses_by_layer() const { return space_.space().precision && data_.base().fresh.empty(); }
  void run_studies() {
    std::vector<Allocation::Point> alike;
    if (options_.tries_uniform) alike = budget_.affordable(space_.uniform_points());
    if (!alike.empty()) run_listed(kUniform, alike);
    // What a front is compared with it begins with, too: known by now, its trials are copies.
    if (options_.front.empty()) alike.clear();
    thin_out(alike, options_.trials / 2);
    run_studies(options_.samplers, options_.trials,
                [&](const std::string& study, int number) -> std::optional<Allocation::Point> {
                  const auto begun = study.starts_with("grid") ? 0 : static_cast<int>(alike.size());
                  if (number < begun) return alike[static_cast<std::size_t>(number)];
                  return starts_ ? starts_->propose(study, number - begun) : std::nullopt;
                });
    if (options_.narrow > 0) run_narrowed();
    if (options_.family_trials > 0)
      for (const FamilyPoints& family :
           family_points(space_, options_.family_trials, options_.seed))
        run_listed(family_study(family.family).c_str(), budget_.affordable(family.points));
  }

  // Leaves so many of the points, evenly.
  static void thin_out(std::vector<Allocation::Point>& points, int most) {
    const std::size_t left = std::min(points.size(), static_cast<std::size_t>(most));
    for (std::size_t i = 0; i < left; ++i) points[i] = points[i * points.size() / left];
    points.resize(left);
  }

  void run_listed(const char* study, const std::vector<Allocation::Point>& points) {
    run_studies({study}, static_cast<int>(points.size()), [&](const std::string&, int number) {
      return std::optional(points[static_cast<std::size_t>(number)]);
    });
  }

  void run_studies(const std::vector<std::string>& samplers, int trials,
                   const ProposePoint& proposal) {
    studies_->run(
        samplers, trials,
        [&](const std::string& study, study::Trial& trial,
            const engine::ExecutionOptions& execution, const experiment::Callbacks& callbacks) {
          return evaluate(study, trial, execution, callbacks);
        },
        proposal, execution_, callbacks_, [&](const EndedTrial& ended) { tell(ended, trials); });
  }

  // The grid follows from the studies, which are over: a run that goes on makes the same.
  void run_narrowed() {
    const std::vector<SearchStudies::Record> records = studies_->read();
    std::vector<const study::History*> histories;
    for (const SearchStudies::Record& record : records) histories.push_back(&record.history);
    // Values that were affordable apart need not be together.
    run_listed(kNarrowed, budget_.affordable(
                              narrowed_grid(space_, histories, options_.narrow, options_.above)));
  }

  void tell(const EndedTrial& ended, int trials) const {
    callbacks_.tell({.activity = "searching by " + ended.study,
                     .unit = "trials",
                     .done = ended.num_finished,
                     .total = trials,
                     .note = ended.best ? fmt::format("best {:.4f}", *ended.best) : ""});
  }

  // What the candidate's bits cost, in accuracy.
  double cost_of(const compress::AverageBits& bits) const {
    return options_.bit_cost * (bits.weights + bits.data) / 2;
  }
  compress::AverageBits bits_of(const Candidate& candidate) const {
    return space_.space().precision ? costs_.average(candidate) : compress::AverageBits{};
  }
  // The values of a trial's objectives.
  std::vector<double> values_of(const Candidate& candidate, double score) const {
    if (options_.front.empty()) return {score};
    return {score, costs_.known(candidate).at(options_.front)};
  }

  // What must be measured to know whether a trial is within the budget. A trial that is not has
  // nothing trained.
  bool is_measured_within(const Candidate& candidate, study::Trial& trial,
                          const engine::ExecutionOptions& execution,
                          const experiment::Callbacks& callbacks) const {
    std::vector<double> excess;
    std::optional<io::Model> model;
    for (const auto& [name, most] : options_.limits) {
      if (!find_cost_kind(name).is_measured) continue;
      if (!model) model = build_candidate(data_, uncompressed(candidate), options_.seed, execution);
      const double cost =
          measure_cost(name, *model, candidate, train::text_length(*model, options_.length),
                       data_.calibration(), execution, callbacks);
      trial.set_user_attribute(name, fmt::format("{:.6g}", cost));
      excess.push_back(cost - most);
    }
    if (excess.empty()) return true;
    trial.set_constraints(excess);
    return std::ranges::all_of(excess, [](double each) { return each <= 0; });
  }

  // The same architecture without compression, for as many epochs in all; then compressed alone.
  void compare(const Candidate& candidate, study::Trial& trial, const fs::path& path,
               const engine::ExecutionOptions& execution, const experiment::Callbacks& callbacks) {
    const TrainedCandidate plain =
        *train_candidate(data_, uncompressed(candidate), options_.seed, {.factor = 1, .count = 1},
                         fs::path(path) += "-plain", false, execution, {.callbacks = callbacks});
    trial.set_user_attribute(kUncompressed, fmt::format("{:.6g}", plain.accuracy));
    io::Model model = plain.model;
    compress_candidate(model, candidate, data_.calibration(), options_.seed, execution);
    trial.set_user_attribute(
        kCompressed,
        fmt::format("{:.6g}", measure(model, data_.measured(), execution, callbacks).accuracy));
  }

  study::Outcome evaluate(const std::string& study, study::Trial& trial,
                          const engine::ExecutionOptions& execution,
                          const experiment::Callbacks& callbacks) {
    const Candidate candidate = space_.candidate(trial.record().parameters);
    const compress::AverageBits bits = bits_of(candidate);
    const double cost = space_.space().precision ? cost_of(bits) : 0;
    if (space_.space().precision) {
      trial.set_user_attribute("weight_bits", fmt::format("{:.6g}", bits.weights));
      trial.set_user_attribute("data_bits", fmt::format("{:.6g}", bits.data));
      trial.set_user_attribute("rounded_weights", fmt::format("{:.6g}", bits.rounded_weights));
    }
    for (const auto& [name, value] : costs_.known(candidate))
      if (name != "weight-bits" && name != "data-bits")
        trial.set_user_attribute(name, fmt::format("{:.6g}", value));
    if (!is_measured_within(candidate, trial, execution, callbacks)) {
      trial.set_user_attribute("over_budget", "true");
      return {.state = study::TrialState::Fail, .reason = "costs more than the budget"};
    }
    const fs::path path = directory_->path() / "trials" /
                          fmt::format("{}-{}", study_file_name(study), trial.number());
    const experiment::Callbacks quiet{.notice = callbacks.notice,
                                      .should_stop = callbacks.should_stop};
    const auto goes_on = [&](int resource, double score) {
      trial.report(resource, score);
      return trial.verdict() == study::Verdict::Continue;
    };
    if (const std::optional<KnownResult> known = studies_->known().find(candidate))
      if (const auto outcome = replay(*known, candidate, trial, cost, goes_on)) return *outcome;
    const std::optional<TrainedCandidate> trained = train_candidate(
        data_, candidate, options_.seed, rungs(), path, false, execution,
        {.goes_on = [&](int resource,
                        double accuracy) { return goes_on(resource, accuracy - cost); },
         .callbacks = quiet});
    if (!trained) return given_up(trial, cost);
    const double score = trained->accuracy - cost;
    trial.report(rungs().resource(rungs().count - 1), score);
    trial.set_user_attribute("accuracy", fmt::format("{:.6g}", trained->accuracy));
    trial.set_user_attribute("loss", fmt::format("{:.6g}", trained->loss));
    trial.set_user_attribute("seconds", fmt::format("{:.3f}", trained->seconds));
    label_chance(trial, trained->accuracy);
    if (options_.compares) compare(candidate, trial, path, execution, quiet);
    return {.values = values_of(candidate, score)};
  }

  // What the same model came to before, judged by this study; nothing where it must go on further
  // than it did.
  std::optional<study::Outcome> replay(const KnownResult& known, const Candidate& candidate,
                                       study::Trial& trial, double cost,
                                       const std::function<bool(int, double)>& goes_on) const {
    trial.set_user_attribute("copied_from", nlohmann::json(known.from).dump());
    const int last = rungs().resource(rungs().count - 1);
    for (const auto& [resource, accuracy] : known.reports) {
      if (resource == last)
        trial.report(resource, accuracy);
      else if (!goes_on(resource, accuracy))
        return given_up(trial, cost);
    }
    if (!known.accuracy) return std::nullopt;
    for (const char* const key :
         {"accuracy", "loss", "collapsed", "seconds", kUncompressed, kCompressed})
      if (const auto found = known.attributes.find(key); found != known.attributes.end())
        trial.set_user_attribute(key, found->second);
    return study::Outcome{.values = values_of(candidate, *known.accuracy)};
  }

  study::Outcome given_up(study::Trial& trial, double cost) const {
    const std::map<int, double>& reports = trial.record().intermediate_values;
    if (!reports.empty()) label_chance(trial, reports.rbegin()->second + cost);
    return {.state = study::TrialState::Pruned};
  }

  // No result that guessing has too goes unlabelled.
  void label_chance(study::Trial& trial, double accuracy) const {
    if (accuracy <= data_.chance_level()) trial.set_user_attribute("collapsed", "true");
  }

  Rungs rungs() const {
    return options_.halving == 0 || !options_.front.empty()
               ? Rungs{.factor = 1, .count = 1}
               : Rungs{.factor = options_.halving, .count = options_.rungs};
  }

  Finalist finalist(const std::string& sampler, int trial, Candidate candidate) const {
    Finalist each{.sampler = sampler, .trial = trial, .candidate = std::move(candidate)};
    each.bits = bits_of(each.candidate);
    each.costs = costs_.known(each.candidate);
    each.cost = space_.space().precision ? cost_of(each.bits) : 0;
    return each;
  }

  // Formats that no trial may have stand beside the finalists and are trained with them.
  void add_compared(std::vector<Finalist>& finalists) const {
    int number = 0;
    for (Candidate& candidate : space_.uniform_candidates()) {
      const int own = number++;
      if (budget_.is_given() && !budget_.holds(candidate)) continue;
      if (std::ranges::find(finalists, candidate, &Finalist::candidate) != finalists.end())
        continue;
      finalists.push_back(finalist(kBeside, own, std::move(candidate)));
      finalists.back().is_uniform = true;
    }
  }

  std::vector<Finalist> complete_trials(const SearchResult& result) const {
    std::vector<Finalist> trials;
    for (const SearchResult::Study& study : result.studies)
      for (const study::TrialRecord& trial : study.history.trials()) {
        if (trial.state != study::TrialState::Complete) continue;
        Finalist each = finalist(study.sampler, trial.number, space_.candidate(trial.parameters));
        each.is_uniform = study.sampler == kUniform;
        each.found = trial.values.front() + each.cost;
        each.found_loss = number_of(trial, "loss");
        trials.push_back(std::move(each));
      }
    return trials;
  }

  const SearchOptions& options_;
  const engine::ExecutionOptions& execution_;
  const experiment::Callbacks& callbacks_;
  const SearchSpace file_;
  TrialData data_;
  const CandidateSpace space_;
  const CandidateCosts costs_;
  const PrecisionCosts layer_costs_;
  const SearchBudget budget_;
  // Once all that may be wrong with those is known: a mistake must not leave a directory.
  std::optional<SearchDirectory> directory_;
  std::optional<SearchStudies> studies_;
  std::optional<FormatStarts> starts_;
};

}  // namespace

SearchResult run_search(const SearchOptions& options, const engine::ExecutionOptions& execution,
                        const experiment::Callbacks& callbacks) {
  check_options(options);
  return Search(options, execution, callbacks).run();
}

void work_on_search(const std::string& storage, const std::string& study,
                    const std::function<void(SearchOptions&)>& change,
                    const engine::ExecutionOptions& execution,
                    const experiment::Callbacks& callbacks) {
  SearchOptions options = read_stored_search(storage, study);
  if (change) change(options);
  check_options(options);
  Search(options, execution, callbacks).work();
}

std::optional<double> export_trial(const ExportOptions& options,
                                   const engine::ExecutionOptions& execution,
                                   const experiment::Callbacks& callbacks) {
  SearchOptions search = read_search(options.search);
  io::check_output_directory(options.target, options.replaces, {options.search});
  const auto write = [&](const io::Model& model) {
    io::write_output_directory(options.target, options.replaces,
                               [&](const fs::path& path) { io::write_checkpoint(path, model); });
  };
  if (!options.trial) {
    const fs::path best = options.search / "best";
    if (!fs::exists(best))
      fail("{}: the search has not chosen a model yet", options.search.string());
    write(io::load_model(best.string()));
    return std::nullopt;
  }
  std::string sampler = options.sampler;
  if (sampler.empty() && search.samplers.size() == 1) sampler = search.samplers.front();
  if (sampler.empty())
    fail("sampler: the search has several: {}", fmt::join(search.samplers, ", "));
  const TrainedCandidate trained =
      Search(search, execution, callbacks).rebuild(sampler, *options.trial);
  write(as_stored(trained.model));
  return trained.accuracy;
}

}  // namespace lathe::search
