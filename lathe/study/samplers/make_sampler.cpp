#include "lathe/core/registry.h"
#include "lathe/study/option_reader.h"
#include "lathe/study/samplers/sampler.h"

namespace lathe::study {

std::unique_ptr<Sampler> make_sampler(std::string_view text, std::uint64_t seed,
                                      const Space* space) {
  const NamedOptions parsed = parse_named_options(text);
  const SamplerKind& kind = Registry<SamplerKind>::instance().at(parsed.name, "sampler");
  return with_place(fmt::format("sampler \"{}\"", parsed.name), [&] {
    require_known(parsed.options, kind.options);
    return kind.make(parsed.options, seed, space);
  });
}

}  // namespace lathe::study
