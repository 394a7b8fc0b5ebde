#include "lathe/core/registry.h"
#include "lathe/study/pruners/pruner.h"

namespace lathe::study {
namespace {

class NoPruner final : public Pruner {
 public:
  Verdict judge(const History&, const TrialRecord&, Attributes&) override {
    return Verdict::Continue;
  }
};

const Register no_pruner{PrunerKind{
    .name = "none",
    .summary = "let every trial run to its end",
    .options = {},
    .make = [](const Options&) -> std::unique_ptr<Pruner> { return std::make_unique<NoPruner>(); },
}};

}  // namespace
}  // namespace lathe::study
