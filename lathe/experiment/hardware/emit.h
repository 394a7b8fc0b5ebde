#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lathe/experiment/callbacks.h"
#include "lathe/hardware/mapping/design.h"
#include "lathe/io/model.h"

namespace lathe::experiment {

/// What to make of a quantized model in hardware. Without cycles, budget and lanes: the fastest
/// design that fits a Zynq 7020, or the smallest larger device that has room for any.
struct EmitOptions {
  std::string model = {};
  std::filesystem::path out = {};
  bool replaces = false;
  std::optional<std::int64_t> cycles = {};  ///< from one example to the next, at most
  std::optional<std::int64_t> dsp = {}, bram = {}, lut = {};
  std::vector<std::string> parallelism = {};  ///< "layers.0=4x8": lanes in and out
  std::string rules = {};                     ///< TOML file of lanes and modules by layer
  std::string toolchain = "internal";         ///< of layers that the rules say nothing of
  std::int64_t length =
      0;  ///< tokens of an example; 0: 128, or fewer where the model's most is less
  std::string name = "top";  ///< of the module
  std::uint64_t seed = 0;    ///< of a model that is built
};

struct EmitResult {
  hardware::Design design;
  std::vector<std::string> files;  ///< that were emitted, by relative path
};

/// The design of a model that is there, with nothing written.
hardware::Design design_model(const io::Model& model, const EmitOptions& options);

/// Makes `options.out`: top.sv, rtl/ and memory/, what `simulate` needs, the model, and a page.
/// What cannot be done is said before anything is written.
EmitResult emit(const EmitOptions& options);

}  // namespace lathe::experiment
