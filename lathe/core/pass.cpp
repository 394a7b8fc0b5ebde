#include "lathe/core/pass.h"

#include "lathe/core/text_scanner.h"

namespace lathe {

PassResult run_pass(std::string_view name, Graph& graph, PassContext& context) {
  const Pass& pass = PassRegistry::instance().at(name, "pass");
  return with_place(fmt::format("pass {}", pass.name), [&] {
    check_attributes(context.options, pass.options);
    if (pass.needs_state && context.state == nullptr)
      fail("needs the values of the states, and only a graph was given");
    if (pass.needs_feeds && context.feeds.empty()) fail("needs data to run the graph on");
    PassResult result = pass.run.call(graph, context);
    if (result.changed > 0) {
      graph.annotations().keep_only(pass.keeps);
      // A pass that leaves an invalid graph is our mistake, whatever it was given.
      try {
        verify(graph);
      } catch (const UserError& error) {
        throw InternalError(fmt::format("a valid graph after pass {}: {}", name, error.message()),
                            std::source_location::current());
      }
    }
    return result;
  });
}

int run_pass(std::string_view name, Graph& graph) {
  PassContext context;
  return run_pass(name, graph, context).changed;
}

Pipeline parse_pipeline(std::string_view text) {
  TextScanner scanner(text);
  Pipeline pipeline;
  while (!scanner.at_end()) {
    PassInvocation invocation;
    invocation.name = scanner.name();
    PassRegistry::instance().at(invocation.name, "pass");
    invocation.options = scanner.attributes();
    pipeline.push_back(std::move(invocation));
    if (!scanner.take(",") && !scanner.at_end())
      fail("expected \",\" between passes before \"{}\"", scanner.rest());
  }
  return pipeline;
}

std::string to_text(const Pipeline& pipeline) {
  std::string text;
  for (const PassInvocation& invocation : pipeline)
    text += (text.empty() ? "" : ", ") + invocation.name + to_text(invocation.options);
  return text;
}

void run_pipeline(Graph& graph, const Pipeline& pipeline, PassContext& context,
                  const std::function<void(const PassInvocation&, const PassResult&)>& log) {
  for (const PassInvocation& invocation : pipeline) {
    context.options = invocation.options;
    const PassResult result = run_pass(invocation.name, graph, context);
    if (log) log(invocation, result);
  }
}

}  // namespace lathe
