#include "lathe/experiment/hardware/hardware_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lathe/hardware/emission.h"
#include "lathe/report/html_page.h"

namespace lathe::experiment {

report::Table layer_table(const hardware::Design& design) {
  report::Table table(
      {"layer", "blocks", "in", "out", "cycles", "DSP", "RAMB18", "LUT", "parameters in"});
  for (const auto& [name, layer] : design.layers) {
    if (layer.modules.empty()) continue;
    table.row({name, fmt::format("{}", fmt::join(layer.modules, " + ")),
               layer.inputs.empty() ? "-" : layer.inputs.front().text(),
               layer.outputs.empty() ? "-" : layer.outputs.front().text(),
               fmt::format("{}", layer.cycles), fmt::format("{}", layer.resources.dsp),
               fmt::format("{}", layer.resources.bram18), fmt::format("{}", layer.resources.lut),
               layer.memories.empty() ? "-" : fmt::format("{}", fmt::join(layer.memories, ", "))});
  }
  return table;
}

report::Table fifo_table(const hardware::Design& design) {
  report::Table table({"FIFO in front of", "beats", "one less"});
  for (const hardware::FifoChoice& fifo : design.fifos)
    table.row({fifo.stream, fmt::format("{}", fifo.depth),
               fifo.is_tight   ? "stops the design"
               : fifo.is_least ? "costs cycles"
                               : "not tried"});
  return table;
}

std::string design_page(const std::string& model, const hardware::Design& design) {
  report::HtmlPage page("Hardware of " + model);
  page.section("Design");
  page.figures({{"cycles an example", fmt::format("{}", design.frame_interval)},
                {"cycles from first in to last out", fmt::format("{}", design.latency)},
                {"DSP", fmt::format("{}", design.resources.dsp)},
                {"block RAMs of 18 kbit", fmt::format("{}", design.resources.bram18)},
                {"LUTs, about", fmt::format("{}", design.resources.lut)},
                {"bits that may switch in a cycle", fmt::format("{:.0f}", design.switching)}});
  page.paragraph(
      fmt::format("{} blocks. At 200 MHz an example takes {:.3f} us, and {:.0f} examples a second "
                  "can follow each other.",
                  design.netlist.instances().size(), static_cast<double>(design.latency) / 200.0,
                  200e6 / static_cast<double>(design.frame_interval)));
  page.section("Layers");
  page.table(layer_table(design));
  if (!design.fifos.empty()) {
    page.section("FIFOs");
    page.paragraph("Depths are computed from when each block takes and gives its beats.");
    page.table(fifo_table(design));
  }
  const hardware::Emission emission = hardware::emit(design.netlist);
  page.section("Top module");
  page.details(emission.top + ".sv", emission.files.at(emission.top + ".sv"));
  return page.str();
}

}  // namespace lathe::experiment
