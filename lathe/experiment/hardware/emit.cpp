#include "lathe/experiment/hardware/emit.h"

#include <algorithm>

#include "lathe/compress/integer/lower_to_integer.h"
#include "lathe/core/error.h"
#include "lathe/core/graph_text.h"
#include "lathe/experiment/hardware/hardware_report.h"
#include "lathe/hardware/design_file.h"
#include "lathe/io/atomic_file.h"
#include "lathe/io/mapped_file.h"
#include "lathe/io/new_directory.h"
#include "lathe/io/output_directory.h"
#include "lathe/train/make_source.h"

namespace lathe::experiment {
namespace {

hardware::DesignOptions to_design_options(const EmitOptions& options) {
  hardware::check_toolchain(options.toolchain);
  if (options.toolchain == "external")
    fail("toolchain external: name such layers and their modules in a rules file");
  hardware::DesignOptions result{.name = options.name,
                                 .goal = {.cycles = options.cycles,
                                          .dsp = options.dsp,
                                          .bram18 = options.bram,
                                          .lut = options.lut}};
  if (!options.rules.empty()) {
    hardware::HardwareRules rules =
        hardware::parse_hardware_rules(io::MappedFile::open(options.rules)->text(), options.rules);
    result.parallelism = std::move(rules.parallelism);
    result.external = std::move(rules.external);
  }
  hardware::Parallelism given;
  with_place("parallelism", [&] {
    for (const std::string& text : options.parallelism) hardware::add_parallelism(given, text);
  });
  for (const auto& [layer, lanes] : given) result.parallelism[layer] = lanes;
  if (!options.cycles && !result.goal.has_budget() && result.parallelism.empty())
    result.devices = hardware::known_devices();
  return result;
}

constexpr std::int64_t kUsualLength = 128;  // what a small device has room for

// Tokens of an example: what was asked for, or the usual number, where texts are read at all.
void set_length(hardware::DesignOptions& design, const io::Model& model,
                const EmitOptions& options) {
  const std::int64_t most = train::text_length(model, options.length);
  if (most == 0 && options.length > 0) fail("length {}: the model reads no texts", options.length);
  if (most > 0) design.symbols["L"] = options.length > 0 ? most : std::min(most, kUsualLength);
}

}  // namespace

hardware::Design design_model(const io::Model& model, const EmitOptions& options) {
  hardware::DesignOptions design_options = to_design_options(options);
  set_length(design_options, model, options);
  Graph graph = model.graph;
  State state = model.state;
  compress::lower_to_integer(graph, state);
  return hardware::design_hardware(graph, state, design_options);
}

EmitResult emit(const EmitOptions& options) {
  io::check_output_directory(options.out, options.replaces);
  to_design_options(options);  // what is wrong is said before the model is read
  const io::Model model =
      io::load_model(options.model, {.seed = options.seed, .with_masters = true});
  EmitResult result{.design = design_model(model, options), .files = {}};
  for (const auto& [path, text] : hardware::emit(result.design.netlist).files)
    result.files.push_back(path);
  io::write_output_directory(options.out, options.replaces, [&](const auto& path) {
    io::NewDirectory directory(path);
    hardware::write_design(result.design, directory.path());
    io::write_checkpoint(directory.path() / "model", model);
    io::write_atomically(directory.path() / "index.html",
                         design_page(options.model, result.design));
    directory.commit();
  });
  return result;
}

}  // namespace lathe::experiment
