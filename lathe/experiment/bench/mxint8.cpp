#include "lathe/experiment/bench/mxint8.h"

#include <algorithm>
#include <cstdio>

#include "lathe/core/error.h"
#include "lathe/core/number_format.h"
#include "lathe/engine/backend.h"

namespace lathe::experiment::bench {
namespace {

void check_options(const Mxint8Options& options, std::int64_t columns) {
  if (options.group < 16 || options.group > 128 || (options.group & (options.group - 1)) != 0)
    fail("group {}: expected 16, 32, 64 or 128", options.group);
  if (columns % options.group != 0)
    fail("columns {}: expected a multiple of the group, {}", columns, options.group);
  for (const std::string& format : options.formats)
    if (parse_format(format) == nullptr) fail("format \"{}\" is not packed", format);
}

std::string tile_name(const engine::Tile& tile) {
  return fmt::format("tile {}x{}, {} threads", tile.rows, tile.columns, tile.threads);
}

// Those of the known tiles that are asked for.
std::vector<engine::Tile> wanted_tiles(const Mxint8Options& options,
                                       const std::vector<engine::Tile>& known) {
  std::vector<engine::Tile> wanted;
  std::vector<std::string> names;
  for (const engine::Tile& tile : known) {
    names.push_back(fmt::format("{}x{} by {}", tile.rows, tile.columns, tile.threads));
    const bool has_shape = options.tile.rows == 0 ||
                           (tile.rows == options.tile.rows && tile.columns == options.tile.columns);
    if (has_shape && (options.threads == 0 || tile.threads == options.threads))
      wanted.push_back(tile);
  }
  if (!wanted.empty()) return wanted;
  const std::string shape =
      options.tile.rows == 0 ? "tiles"
                             : fmt::format("tile {}x{}", options.tile.rows, options.tile.columns);
  throw UserError(options.threads == 0 ? fmt::format("{}: there is no such kernel", shape)
                                       : fmt::format("{} by {} threads: there is no such kernel",
                                                     shape, options.threads),
                  fmt::format("there is {}", fmt::join(names, ", ")));
}

// Floats are timed beside packed weights where the device multiplies both (`has_floats`).
void time_products(const Mxint8Options& options, engine::Precision precision, bool has_floats,
                   engine::DeviceMeasure& device, Result& result, const Callbacks& callbacks) {
  const auto add = [&](const std::string& name, const engine::PackedLinearCase& what) {
    callbacks.tell({"timing products", "", 0, 0});
    const auto format = parse_format(what.format);
    const double bits = format == nullptr ? 32 : format->bits_per_element(what.n, what.k);
    const double numbers = static_cast<double>(what.n) * static_cast<double>(what.k);
    result.rows.push_back(
        {.name = fmt::format("{} {}x{}x{}", name, what.rows, what.n, what.k),
         .time = timing_of(device.time_packed_linear(what, options.repeats.samples)),
         .bytes = numbers * bits / 8,
         .flops = 2.0 * static_cast<double>(what.rows) * numbers});
    return result.rows.back().time.median;
  };
  for (const std::int64_t size : options.sizes)
    for (const std::int64_t batch : options.batches) {
      engine::PackedLinearCase what{
          .format = "float", .rows = batch, .n = size, .k = size, .precision = precision};
      const double of_floats = has_floats ? add("linear float", what) : 0;
      for (const std::string& format : options.formats) {
        const auto parsed = parse_format(format);
        what.format = format;
        what.encodes = false;
        const double packed = add(fmt::format("linear {}", format), what);
        if (has_floats)
          result.notes.push_back(fmt::format("{} row{} of {}: {} is {:.2f}x as fast as floats",
                                             batch, batch == 1 ? "" : "s", size, format,
                                             of_floats / packed));
        if (parsed->facts().family != "mxint" || parsed->facts().element_bits != 8) continue;
        what.encodes = true;
        add(fmt::format("{} by {}", format, format), what);
      }
    }
}

}  // namespace

engine::Tile parse_tile(const std::string& text) {
  long long rows = 0, columns = 0;
  int read = 0;
  if (std::sscanf(text.c_str(), "%lldx%lld%n", &rows, &columns, &read) != 2 ||
      read != static_cast<int>(text.size()) || rows < 1 || columns < 1)
    fail("tile \"{}\": expected ROWSxCOLUMNS, such as 8x512", text);
  return {rows, columns, 0};
}

Result time_mxint8(const Mxint8Options& options, const engine::ExecutionOptions& execution,
                   const Callbacks& callbacks) {
  const engine::Backend& backend = engine::find_backend(execution.device);
  if (backend.measure == nullptr) fail("device {} has nothing to time", execution.device);
  const std::unique_ptr<engine::DeviceMeasure> device = backend.measure(execution.pool);
  device->between = [&] { check_stop(callbacks); };
  const std::vector<engine::Tile> tiles = device->tiles();
  const bool has_tiles = !tiles.empty();
  const std::int64_t rows = options.rows > 0 ? options.rows : has_tiles ? 16384 : 8192;
  const std::int64_t columns = options.columns > 0 ? options.columns : has_tiles ? 16384 : 4096;
  check_options(options, columns);
  if (!has_tiles && options.tile.rows > 0)
    fail("tile: only the kernels of a GPU work by tiles: --device cuda");
  const bool to_float = options.to_float;
  Result result{.bench = "mxint8",
                .title = fmt::format("MXINT8 {}x{}, groups of {}, to {}", rows, columns,
                                     options.group, to_float ? "float" : "bfloat16"),
                .device = device->description()};
  const double numbers = static_cast<double>(rows) * static_cast<double>(columns);
  const double bytes = numbers * (1 + 1 / static_cast<double>(options.group) + (to_float ? 4 : 2));
  // As many bytes as decoding moves, half of them read.
  const auto half = static_cast<std::int64_t>(bytes / 2) / 4096 * 4096;
  const Timing copy = timing_of(device->time_copy(half, options.repeats.samples));
  result.limits.bytes_per_second = 2 * static_cast<double>(half) / copy.median;
  result.rows.push_back({.name = "copy", .time = copy, .bytes = 2 * static_cast<double>(half)});

  const std::vector<engine::Tile> timed =
      has_tiles ? wanted_tiles(options, tiles) : std::vector<engine::Tile>{{}};
  std::int64_t done = 0;
  for (const engine::Tile& tile : timed) {
    if (!callbacks.goes_on({"timing", "tiles", done++, static_cast<std::int64_t>(timed.size())}))
      throw Interrupted();
    const engine::DequantizeCase what{rows, columns, options.group, to_float, tile};
    result.rows.push_back(
        {.name = has_tiles ? tile_name(tile) : "decode",
         .time = timing_of(device->time_dequantize(what, options.repeats.samples)),
         .bytes = bytes});
  }
  if (has_tiles) {
    const engine::Tile& shown = timed.front();
    result.drawing = tile_text(shown, device->run_of_tile(to_float));
    result.drawing_svg = tile_svg(shown, device->run_of_tile(to_float));
  }
  if (!options.multiplies) return result;
  Mxint8Options products = options;
  if (products.sizes.empty())
    products.sizes =
        has_tiles ? std::vector<std::int64_t>{4096, 8192} : std::vector<std::int64_t>{4096};
  if (products.batches.empty())
    products.batches =
        has_tiles ? std::vector<std::int64_t>{1, 4, 16} : std::vector<std::int64_t>{1, 4, 512};
  time_products(products, execution.precision, !has_tiles, *device, result, callbacks);
  result.notes.push_back(
      fmt::format("weights{} are read cold: as many copies in turn as no cache holds; activations "
                  "in {}",
                  has_tiles ? "" : " of few rows", engine::name(execution.precision)));
  return result;
}

}  // namespace lathe::experiment::bench
