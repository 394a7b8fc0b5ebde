// -1, 0 or +1 times the mean of the magnitudes that are not 0, which are those above 0.7 times the
// mean magnitude of the row (Ternary Weight Networks, arXiv 1605.04711).
#include "lathe/core/number_format.h"
#include "lathe/numerics/format_arguments.h"
#include "lathe/numerics/term_format.h"

namespace lathe::numerics {

namespace {

std::shared_ptr<const NumberFormat> parse(std::string_view text) {
  FormatArguments arguments(text);
  TermSpec spec;
  const bool is_tensor = arguments.flag("tensor");
  arguments.finish();
  spec.facts.family = "ternary";
  spec.facts.text = is_tensor ? "ternary:tensor" : "ternary";
  spec.facts.granularity = is_tensor ? Granularity::Tensor : Granularity::Row;
  spec.threshold = 0.7f;
  return make_term_format(std::move(spec));
}

const Register registration{FormatFamily{
    .name = "ternary",
    .summary = "-1, 0 and +1 times a mean magnitude of their row",
    .syntax = "ternary[:tensor]",
    .parse = parse,
    .examples = {"ternary", "ternary:tensor"},
}};

}  // namespace
}  // namespace lathe::numerics
