#include "lathe/hardware/external/external_layer.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "lathe/core/error.h"
#include "lathe/hardware/external/integer_expression.h"
#include "lathe/hardware/low_bits.h"

namespace lathe::hardware {
namespace {

using Evaluate = std::function<std::vector<Values>(const BlockCall&, const std::vector<Values>&)>;

// The line of arithmetic and its registers, which step once for each beat and go on from frame to
// frame.
Evaluate by_arithmetic(const ExternalLayer& layer) {
  struct Definition {
    std::vector<std::int64_t> initial;
    std::unique_ptr<IntegerExpression> result;
    std::vector<std::unique_ptr<IntegerExpression>> next;  // null: keeps its value
  };
  std::vector<std::string> registers, variables;
  const auto definition = std::make_shared<Definition>();  // std::function must be copyable
  for (const auto& [name, value] : layer.registers) {
    registers.push_back(name);
    definition->initial.push_back(value);
  }
  for (const auto& [name, text] : layer.next)
    if (!layer.registers.contains(name)) throw unknown_name("register", name, registers);
  variables = registers;
  variables.push_back("x");
  definition->result = std::make_unique<IntegerExpression>(layer.result, variables);
  for (const std::string& name : registers) {
    const auto found = layer.next.find(name);
    definition->next.push_back(found == layer.next.end()
                                   ? nullptr
                                   : std::make_unique<IntegerExpression>(found->second, registers));
  }
  return [definition](const BlockCall& call, const std::vector<Values>& inputs) {
    const auto size = static_cast<std::size_t>(call.inputs[0].size);
    const auto lanes = static_cast<std::size_t>(call.inputs[0].lanes);
    std::vector<std::int64_t> state = definition->initial;
    Values result = inputs[0];
    for (std::size_t vector = 0; vector < result.size(); vector += size)
      for (std::size_t beat = 0; beat < size; beat += lanes) {
        std::vector<std::int64_t> variables_now = state;
        variables_now.push_back(0);
        for (std::size_t i = beat; i < std::min(size, beat + lanes); ++i) {
          variables_now.back() = result[vector + i];
          result[vector + i] =
              low_bits(definition->result->evaluate(variables_now), call.inputs[0].element);
        }
        std::vector<std::int64_t> after = state;
        for (std::size_t r = 0; r < state.size(); ++r)
          if (definition->next[r]) after[r] = definition->next[r]->evaluate(state);
        state = std::move(after);
      }
    return std::vector<Values>{result};
  };
}

Evaluate by_function(const ExternalLayer& layer) {
  using Function = void (*)(const std::int64_t*, std::int64_t*, std::int64_t, std::int64_t);
  void* const library = dlopen(layer.library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail("{}: cannot be loaded: {}", layer.library, dlerror());
  const std::shared_ptr<void> keep(library, dlclose);  // lives as long as the definition
  const auto function = reinterpret_cast<Function>(dlsym(library, layer.function.c_str()));
  if (function == nullptr) fail("{}: has no function {}", layer.library, layer.function);
  return [keep, function](const BlockCall& call, const std::vector<Values>& inputs) {
    Values result(inputs[0].size());
    function(inputs[0].data(), result.data(), std::ssize(result), call.inputs[0].lanes);
    for (std::int64_t& y : result) y = low_bits(y, call.inputs[0].element);
    return std::vector<Values>{result};
  };
}

}  // namespace

Block external_block(const ExternalLayer& layer) {
  return with_place("layer \"" + layer.layer + "\"", [&] {
    if (layer.result.empty() == layer.library.empty())
      fail("expected a definition: a line y, or a library and a function");
    if (layer.stages < 1 || layer.stages > 64) fail("stages {} must be 1 to 64", layer.stages);
    const std::string text = layer.library.empty()
                                 ? "y = " + layer.result
                                 : fmt::format("y by {} of {}", layer.function, layer.library);
    return Block{
        .name = layer.module,
        .summary = "the user's own: " + text,
        .has_memory = true,  // a function may have one too
        .source = layer.source,
        .infer = [](const BlockCall& call) { return call.inputs; },
        .evaluate = layer.library.empty() ? by_arithmetic(layer) : by_function(layer),
        .timing = [stages = layer.stages](const BlockCall&) -> Timing {
          return beat_by_beat(1, stages);
        },
        .module_parameters = [](const BlockCall& call) -> ModuleParameters {
          return {.integers = {{"LANES", call.inputs[0].lanes},
                               {"WIDTH", call.inputs[0].element.width}}};
        },
        .describe =
            [text](const BlockCall& call) {
              return fmt::format("{}, in {}", text, call.inputs[0].element.text());
            },
    };
  });
}

}  // namespace lathe::hardware
