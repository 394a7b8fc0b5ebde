#include "lathe/search/search_options.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "lathe/core/error.h"
#include "lathe/experiment/recorded_options.h"
#include "lathe/search/candidate_costs.h"
#include "lathe/search/space_file.h"
#include "lathe/train/augmentation.h"

namespace lathe::search {

nlohmann::json to_json(const SearchOptions& options) {
  // A name is no path, though there may be a file of that name.
  const std::vector<std::string> shipped = shipped_spaces();
  const bool is_shipped = std::ranges::find(shipped, options.space) != shipped.end();
  return {{"space", is_shipped ? options.space : experiment::recorded_path(options.space)},
          {"model", experiment::recorded_path(options.model)},
          {"data", experiment::recorded_path(options.data)},
          {"tokenizer", experiment::recorded_path(options.tokenizer)},
          {"from", experiment::recorded_path(options.from)},
          {"supernet", options.supernet},
          {"images", options.images},
          {"augment", options.augment},
          {"teacher", options.teacher},
          {"compresses", options.compresses},
          {"epochs", options.epochs.value_or(-1)},
          {"epochs-after", options.epochs_after.value_or(-1)},
          {"length", options.length},
          {"truncation", options.truncation},
          {"limit", options.limit},
          {"objective-split", options.objective_split},
          {"validation", options.validation},
          {"halving", options.halving},
          {"rungs", options.rungs},
          {"rung-rows", options.rung_rows},
          {"bit-cost", options.bit_cost},
          {"max-weight-bits", options.max_weight_bits.value_or(0)},
          {"max-data-bits", options.max_data_bits.value_or(0)},
          {"max", options.limits},
          {"front", options.front},
          {"compare", options.compares},
          {"sensitivity", options.is_damage_measured},
          {"calibration", options.calibration},
          {"finalists", options.finalists},
          {"seeds", options.seeds},
          {"seed", options.seed}};
}

void take_recorded(SearchOptions& options, const nlohmann::json& recorded) {
  const auto take = [&](const char* name, auto& value) {
    if (recorded.contains(name)) recorded[name].get_to(value);
  };
  const auto take_path = [&](const char* name, std::string& path) {
    take(name, path);
    path = experiment::path_of_record(path);
  };
  const auto take_limit = [&](const char* name, std::optional<double>& value) {
    const double bits = recorded.value(name, 0.0);
    value = bits > 0 ? std::optional(bits) : std::nullopt;
  };
  const auto take_epochs = [&](const char* name, std::optional<int>& value) {
    const int epochs = recorded.value(name, -1);
    value = epochs >= 0 ? std::optional(epochs) : std::nullopt;
  };
  try {
    take_path("space", options.space);
    take_path("model", options.model);
    take_path("data", options.data);
    take_path("tokenizer", options.tokenizer);
    take_path("from", options.from);
    take("supernet", options.supernet);
    take("images", options.images);
    take("augment", options.augment);
    take("teacher", options.teacher);
    take("compresses", options.compresses);
    take_epochs("epochs", options.epochs);
    take_epochs("epochs-after", options.epochs_after);
    take("length", options.length);
    take("truncation", options.truncation);
    take("limit", options.limit);
    take("objective-split", options.objective_split);
    take("validation", options.validation);
    take("halving", options.halving);
    take("rungs", options.rungs);
    take("rung-rows", options.rung_rows);
    take("bit-cost", options.bit_cost);
    take_limit("max-weight-bits", options.max_weight_bits);
    take_limit("max-data-bits", options.max_data_bits);
    take("max", options.limits);
    take("front", options.front);
    take("compare", options.compares);
    take("sensitivity", options.is_damage_measured);
    take("calibration", options.calibration);
    take("finalists", options.finalists);
    take("seeds", options.seeds);
    take("seed", options.seed);
  } catch (const nlohmann::json::exception&) {
    fail("what the search was started with is damaged: {}", recorded.dump());
  }
}

void check_options(const SearchOptions& options) {
  if (options.data.empty()) fail("data: is missing: expected a directory, or reviews");
  if (options.out.empty()) fail("out: is missing: expected a directory for the search");
  if (!options.storage.empty() && options.study.empty())
    throw UserError("storage: needs study, a name for this search there", "--study NAME");
  if (options.samplers.empty()) fail("sampler: is missing: expected one or several");
  std::set<std::string> names;
  for (const std::string& sampler : options.samplers)
    if (!names.insert(sampler).second) fail("sampler {}: stands there twice", sampler);
  if (options.halving == 1) fail("halving 1: every trial would go on; expected 0, or 2 and more");
  if (options.rungs < 1) fail("rungs {}: expected 1 or more", options.rungs);
  if (!(options.bit_cost >= 0) || std::isinf(options.bit_cost))
    fail("bit-cost {}: expected 0 or more", options.bit_cost);
  if (options.target && std::isnan(*options.target)) fail("target nan: expected a number");
  for (const auto& [name, bits] : {std::pair("max-weight-bits", options.max_weight_bits),
                                   std::pair("max-data-bits", options.max_data_bits)})
    if (bits && !(*bits > 0)) fail("{} {}: expected more than 0", name, *bits);
  for (const auto& [name, most] : options.limits) {
    find_cost_kind(name);
    if (!(most > 0)) fail("max {}={}: expected more than 0", name, most);
  }
  if (!options.front.empty()) {
    if (find_cost_kind(options.front).is_measured)
      fail("front {}: is known only of a built model; expected a cost of sizes and formats",
           options.front);
    if (options.bit_cost > 0)
      fail("front {}: not with bit-cost, which makes one of both", options.front);
  }
  if (!options.whole_model.empty() && options.model.empty())
    fail("whole-model: models are built by a space; {} is of no use", options.whole_model);
  if (!options.whole_teacher.empty() && options.teacher.empty())
    throw UserError("whole-teacher: trials have no teacher", "--teacher DIR");
  if (!options.from.empty() && !options.model.empty())
    fail("from: models are built by a space; {} is one already", options.model);
  if (options.supernet > 0 && !(options.from.empty() && options.model.empty()))
    fail("supernet: is made for models that start from nothing, not from {}",
         options.from.empty() ? options.model : options.from);
  if (const auto augmentation =
          with_place("augment", [&] { return train::parse_augmentation(options.augment); });
      augmentation != train::Augmentation() && !options.teacher.empty())
    fail("augment: a teacher answers for images as they are");
  if (options.finalists < 1) fail("finalists {}: expected 1 or more", options.finalists);
  if (options.seeds < 1) fail("seeds {}: expected 1 or more", options.seeds);
  if (options.above != 0 && options.narrow == 0)
    throw UserError("above: chooses values for narrow, and nothing is narrowed", "--narrow 60");
  if (options.whole == 0 && !options.is_worker)
    for (const auto& [name, is_given] :
         {std::pair("whole-epochs", options.whole_epochs.has_value()),
          std::pair("whole-model", !options.whole_model.empty()),
          std::pair("whole-teacher", !options.whole_teacher.empty())})
      if (is_given)
        throw UserError(fmt::format("{}: nothing is trained on all of train", name), "--whole 3");
}

}  // namespace lathe::search
