#include "lathe/search/search_options.h"

#include <set>

#include "lathe/core/error.h"
#include "lathe/experiment/recorded_options.h"

namespace lathe::search {

nlohmann::json to_json(const SearchOptions& options) {
  return {{"space", experiment::recorded_path(options.space)},
          {"model", experiment::recorded_path(options.model)},
          {"data", experiment::recorded_path(options.data)},
          {"tokenizer", experiment::recorded_path(options.tokenizer)},
          {"length", options.length},
          {"limit", options.limit},
          {"objective-split", options.objective_split},
          {"validation", options.validation},
          {"halving", options.halving},
          {"rungs", options.rungs},
          {"rung-rows", options.rung_rows},
          {"bit-cost", options.bit_cost},
          {"max-weight-bits", options.max_weight_bits.value_or(0)},
          {"max-data-bits", options.max_data_bits.value_or(0)},
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
  try {
    take_path("space", options.space);
    take_path("model", options.model);
    take_path("data", options.data);
    take_path("tokenizer", options.tokenizer);
    take("length", options.length);
    take("limit", options.limit);
    take("objective-split", options.objective_split);
    take("validation", options.validation);
    take("halving", options.halving);
    take("rungs", options.rungs);
    take("rung-rows", options.rung_rows);
    take("bit-cost", options.bit_cost);
    take_limit("max-weight-bits", options.max_weight_bits);
    take_limit("max-data-bits", options.max_data_bits);
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
  if (!(options.bit_cost >= 0)) fail("bit-cost {}: expected 0 or more", options.bit_cost);
  for (const auto& [name, bits] : {std::pair("max-weight-bits", options.max_weight_bits),
                                   std::pair("max-data-bits", options.max_data_bits)})
    if (bits && !(*bits > 0)) fail("{} {}: expected more than 0", name, *bits);
  if (options.finalists < 1) fail("finalists {}: expected 1 or more", options.finalists);
  if (options.seeds < 1) fail("seeds {}: expected 1 or more", options.seeds);
}

}  // namespace lathe::search
