#include "lathe/engine/cpu/kernels.h"

#include <gtest/gtest.h>

#include "lathe/core/error.h"
#include "lathe/engine/cpu/every_isa.h"

namespace lathe::engine {
namespace {

TEST(Isa, KernelsOfAnUnsupportedOneAreRefused) {
  for (const Isa isa : {Isa::Avx2, Isa::Avx512})
    if (!is_supported(isa)) {
      EXPECT_THROW(kernels(isa), InternalError);
    }
}

class KernelTable : public EveryIsa {};

TEST_P(KernelTable, IsNamedAfterItsInstructionSet) {
  EXPECT_EQ(table().isa, name(GetParam()));
}

TEST_P(KernelTable, CountsTheOperationsOfItsMultiplyAdds) {
  EXPECT_EQ(table().fma_burst(20), 2 * table().fma_burst(10));
  EXPECT_GT(fma_peak(GetParam(), 0.0), 0.0);
}

INSTANTIATE_TEST_SUITE_P(, KernelTable, testing::ValuesIn(supported_isas()), isa_name);

}  // namespace
}  // namespace lathe::engine
