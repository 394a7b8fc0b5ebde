#include "lathe/cli/lora_training.h"

#include <cstdio>

#include "lathe/compress/lora_adapter.h"
#include "lathe/compress/trained_parameters.h"
#include "lathe/report/table.h"

namespace lathe::cli {

std::vector<std::string> prepare_lora(io::Model& model, const compress::LoraOptions& options,
                                      const train::TrainingGraphOptions& training,
                                      const State* resumed, std::uint64_t seed) {
  if (resumed != nullptr) {
    State state = model.state;
    return compress::parameters_with_moments(
        train::make_training_graph(model, training, state).graph, *resumed);
  }
  // Before the insertion, after which the paths' states would count as the file's.
  const std::vector<std::string> fresh = compress::fresh_head(model);
  with_place("--lora", [&] { compress::insert_lora(model.graph, model.state, options, seed); });
  return compress::lora_parameters(model.graph, fresh);
}

void print_trained_parameters(const Graph& graph, const std::vector<std::string>& trained) {
  report::Table table({"trains", "parameters", "share"});
  std::int64_t total = 0, count = 0;
  const std::vector<compress::ModuleParameters> modules =
      compress::count_parameters(graph, trained);
  for (const compress::ModuleParameters& module : modules) {
    total += module.trained + module.frozen;
    count += module.trained;
  }
  const auto share = [&](std::int64_t part) {
    return fmt::format("{:.2f} %", 100 * static_cast<double>(part) /
                                       static_cast<double>(std::max<std::int64_t>(total, 1)));
  };
  for (const compress::ModuleParameters& module : modules)
    if (module.trained > 0)
      table.row({module.module, fmt::format("{}", module.trained), share(module.trained)});
  table.row({"all that trains", fmt::format("{}", count), share(count)});
  table.row({"all that is frozen", fmt::format("{}", total - count), share(total - count)});
  fmt::print(stderr, "{}", table.to_text());
}

void save_trained_adapter(const std::filesystem::path& run, const io::Model& model,
                          const std::vector<std::string>& trained, const std::string& base) {
  std::vector<std::string> saved = trained;
  for (const compress::LoraPath& path : compress::find_lora(model.graph)) {
    std::erase(saved, compress::lora_a_name(path.name));
    std::erase(saved, compress::lora_b_name(path.name));
  }
  compress::save_adapter(run / "adapter", model, saved, base);
}

}  // namespace lathe::cli
