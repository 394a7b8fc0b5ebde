#include "lathe/compress/shrinking/shrink.h"
#include "lathe/core/pass.h"

namespace lathe::compress {
namespace {

PassResult run_shrink(Graph& graph, PassContext& context) {
  const AttributeReader options(context.options, PassRegistry::instance().find("shrink")->options);
  const ShrinkReport report = shrink(
      graph, *context.state, {.neurons = options.flag("neurons"), .heads = options.flag("heads")});
  std::string text;
  for (const ShrunkPart& part : report.parts)
    text += fmt::format("{}: {} {} instead of {}\n", part.name, part.after,
                        part.is_attention ? "heads" : "neurons", part.before);
  for (const std::string& note : report.notes) text += note + "\n";
  return {static_cast<int>(report.parts.size()), std::move(text)};
}

const Register shrink_pass{Pass{
    .name = "shrink",
    .summary = "take away neurons and heads that masks make useless",
    .run = run_shrink,
    .options = {{"neurons", true, "of feed-forward parts"}, {"heads", true, "of attention"}},
    .needs_state = true,
}};

}  // namespace
}  // namespace lathe::compress
