#include <algorithm>

#include "lathe/core/error.h"
#include "lathe/experiment/bench/mxint8.h"
#include "lathe/report/svg_elements.h"

namespace lathe::experiment::bench {
namespace {

// What a screen or a page holds of a tile.
constexpr std::int64_t kMostRows = 16, kMostRuns = 12;

struct Figure {
  std::int64_t runs = 0;  // in a row of the tile
  std::int64_t shown_rows = 0, shown_runs = 0;
  std::int64_t turns = 0;  // how often all threads copy
};

Figure figure_of(const engine::Tile& tile, std::int64_t run) {
  Figure figure;
  figure.runs = (tile.columns + run - 1) / run;
  figure.shown_rows = std::min(tile.rows, kMostRows);
  figure.shown_runs = std::min(figure.runs, kMostRuns);
  figure.turns = (tile.rows * figure.runs + tile.threads - 1) / tile.threads;
  return figure;
}

}  // namespace

std::string tile_text(const engine::Tile& tile, std::int64_t run) {
  const Figure figure = figure_of(tile, run);
  std::string text =
      fmt::format("a tile of {}x{} codes, {} threads, {} codes a copy, {} turn{}\n", tile.rows,
                  tile.columns, tile.threads, run, figure.turns, figure.turns == 1 ? "" : "s");
  text += fmt::format("{:>6}", "column");
  for (std::int64_t i = 0; i < figure.shown_runs; ++i) text += fmt::format(" {:>5}", i * run);
  text += '\n';
  for (std::int64_t row = 0; row < figure.shown_rows; ++row) {
    text += fmt::format("row {:>2}", row);
    for (std::int64_t i = 0; i < figure.shown_runs; ++i)
      text += fmt::format(" {:>5}", fmt::format("t{}", (row * figure.runs + i) % tile.threads));
    text += figure.shown_runs < figure.runs ? " ...\n" : "\n";
  }
  if (figure.shown_rows < tile.rows) text += "...\n";
  return text;
}

std::string tile_svg(const engine::Tile& tile, std::int64_t run) {
  constexpr double kCellWidth = 46, kCellHeight = 22, kLeft = 60, kTop = 56;
  const Figure figure = figure_of(tile, run);
  const std::string title = fmt::format("Which thread copies what: tile {}x{}, {} threads",
                                        tile.rows, tile.columns, tile.threads);
  std::string body = report::svg_text(kLeft, 22, "start", title, 14);
  for (std::int64_t i = 0; i < figure.shown_runs; ++i)
    body += report::svg_text(kLeft + (static_cast<double>(i) + 0.5) * kCellWidth, kTop - 8,
                             "middle", fmt::format("{}", i * run), 11);
  for (std::int64_t row = 0; row < figure.shown_rows; ++row) {
    const double y = kTop + static_cast<double>(row) * kCellHeight;
    body += report::svg_text(kLeft - 8, y + 15, "end", fmt::format("row {}", row), 11);
    for (std::int64_t i = 0; i < figure.shown_runs; ++i) {
      const std::int64_t place = row * figure.runs + i;
      const std::int64_t turn = place / tile.threads, thread = place % tile.threads;
      const double share =
          figure.turns > 1 ? static_cast<double>(turn) / static_cast<double>(figure.turns) : 0;
      // From light to darker blue, turn by turn.
      const auto level = static_cast<int>(235 - 120 * share);
      const double x = kLeft + static_cast<double>(i) * kCellWidth;
      body += report::svg_rectangle(
          x, y, kCellWidth - 2, kCellHeight - 2, fmt::format("#{:02x}{:02x}ff", level, level),
          fmt::format("thread {} copies codes {} to {} of row {} in turn {}", thread, i * run,
                      (i + 1) * run - 1, row, turn));
      body += report::svg_text(x + kCellWidth / 2 - 1, y + 14, "middle", fmt::format("t{}", thread),
                               11);
    }
  }
  const int width =
      static_cast<int>(kLeft + static_cast<double>(figure.shown_runs) * kCellWidth) + 20;
  const int height =
      static_cast<int>(kTop + static_cast<double>(figure.shown_rows) * kCellHeight) + 20;
  return report::svg_document(std::max(width, 480), height, title, body);
}

}  // namespace lathe::experiment::bench
