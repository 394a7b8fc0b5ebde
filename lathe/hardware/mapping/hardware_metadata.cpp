#include "lathe/hardware/mapping/hardware_metadata.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace lathe::hardware {

std::string to_text(const HardwareMetadata& metadata) {
  const auto streams = [](const std::vector<Stream>& list) {
    std::vector<std::string> texts;
    for (const Stream& stream : list) texts.push_back(stream.text());
    return fmt::format("{}", fmt::join(texts, " and "));
  };
  if (metadata.modules.empty()) return "no block of its own, " + streams(metadata.outputs);
  std::string text =
      fmt::format("{} ({}, {}), in {}, out {}, {} cycle{}", fmt::join(metadata.modules, " + "),
                  metadata.toolchain, fmt::join(metadata.files, " "), streams(metadata.inputs),
                  streams(metadata.outputs), metadata.cycles, metadata.cycles == 1 ? "" : "s");
  if (!metadata.memories.empty())
    text += fmt::format(", parameters in {}, {}", fmt::join(metadata.memories, ", "),
                        metadata.is_transposed ? "transposed" : "not transposed");
  return text + ", " + metadata.interface;
}

}  // namespace lathe::hardware
