// Signs: plus or minus 1, plus or minus the mean magnitude of the row (XNOR-Net), or a sum of such
// terms where each takes the sign and the mean magnitude of what those before it left over.
#include "lathe/core/number_format.h"
#include "lathe/numerics/format_arguments.h"
#include "lathe/numerics/term_format.h"

namespace lathe::numerics {

namespace {

std::shared_ptr<const NumberFormat> parse(std::string_view text) {
  FormatArguments arguments(text);
  TermSpec spec;
  spec.facts.family = "binary";
  spec.facts.text = "binary";
  const bool is_tensor = arguments.flag("tensor");
  const std::optional<std::string> kind = arguments.next_text();
  if (!kind) {
    spec.is_unit = true;
    if (is_tensor) fail("tensor needs scaled or residual: plain binary has no scale");
  } else if (*kind == "scaled") {
    spec.facts.text += ":scaled";
  } else if (*kind == "residual") {
    spec.terms = static_cast<int>(arguments.integer("number of terms", 1, 8));
    spec.facts.text += fmt::format(":residual,{}", spec.terms);
  } else {
    throw unknown_name("kind of binary", *kind, {"scaled", "residual"});
  }
  spec.facts.granularity = spec.is_unit || is_tensor ? Granularity::Tensor : Granularity::Row;
  if (is_tensor) spec.facts.text += ",tensor";
  arguments.finish();
  return make_term_format(std::move(spec));
}

const Register registration{FormatFamily{
    .name = "binary",
    .summary = "signs, alone or times the mean magnitude of their row",
    .syntax = "binary[:scaled|residual,TERMS][,tensor]",
    .parse = parse,
    .examples = {"binary", "binary:scaled", "binary:residual,2", "binary:residual,3",
                 "binary:scaled,tensor"},
}};

}  // namespace
}  // namespace lathe::numerics
