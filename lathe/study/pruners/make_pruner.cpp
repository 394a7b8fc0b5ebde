#include "lathe/core/registry.h"
#include "lathe/study/option_reader.h"
#include "lathe/study/pruners/pruner.h"

namespace lathe::study {

std::unique_ptr<Pruner> make_pruner(std::string_view text) {
  const NamedOptions parsed = parse_named_options(text);
  const PrunerKind& kind = Registry<PrunerKind>::instance().at(parsed.name, "pruner");
  return with_place(fmt::format("pruner \"{}\"", parsed.name), [&] {
    require_known(parsed.options, kind.options);
    return kind.make(parsed.options);
  });
}

}  // namespace lathe::study
