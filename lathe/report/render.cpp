#include "lathe/report/render.h"

#include <fmt/format.h>

#include <optional>

#include "lathe/core/child_process.h"
#include "lathe/core/error.h"
#include "lathe/report/markup.h"

namespace lathe::report {
namespace {

std::string output_of(const std::optional<ProcessResult>& result, std::string_view program) {
  if (result->exit_status == 0 && !result->output.empty()) return result->output;
  const std::string first_line = result->errors.substr(0, result->errors.find('\n'));
  fail("{} ended with status {}: {}", program, result->exit_status,
       first_line.empty() ? "no message" : printable_line(first_line));
}

}  // namespace

std::string render_svg(std::string_view dot_text) {
  const auto result = run_program({"dot", "-Tsvg"}, dot_text);
  if (!result) fail("graphviz is not installed: apt-get install graphviz");
  return output_of(result, "dot");
}

std::string svg_to_png(std::string_view svg, double zoom) {
  if (!(zoom > 0 && zoom <= 100)) fail("zoom is {}: expected more than 0, at most 100", zoom);
  const auto result = run_program(
      {"rsvg-convert", "--format=png", "--background-color=white", fmt::format("--zoom={}", zoom)},
      svg);
  if (!result) fail("rsvg-convert is not installed: apt-get install librsvg2-bin");
  return output_of(result, "rsvg-convert");
}

}  // namespace lathe::report
