// Element formats against LLVM's APFloat, where it is installed: tests/CMakeLists.txt looks for it.
#include <gtest/gtest.h>

#ifdef LATHE_HAVE_APFLOAT

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wshadow"
#include <llvm/ADT/APFloat.h>
#include <llvm/Config/llvm-config.h>
#pragma GCC diagnostic pop

#include "lathe/core/number_format.h"
#include "lathe/numerics/number_line.h"
#include "lathe/numerics/testing/matrix.h"
#include "lathe/numerics/testing/probes.h"

namespace lathe::numerics {
namespace {

struct ApFloatCase {
  const char* format;
  const llvm::fltSemantics* semantics;
  bool saturates;
};

std::vector<ApFloatCase> cases() {
  std::vector<ApFloatCase> all = {
      {"minifloat:e5m2", &llvm::APFloat::Float8E5M2(), true},
      {"minifloat:e5m2,overflow", &llvm::APFloat::Float8E5M2(), false},
      {"minifloat:e4m3", &llvm::APFloat::Float8E4M3FN(), true},
      {"minifloat:e4m3,overflow", &llvm::APFloat::Float8E4M3FN(), false},
      {"minifloat:16,5,bias=15,inf,overflow", &llvm::APFloat::IEEEhalf(), false},
      {"minifloat:16,8,bias=127,inf,overflow", &llvm::APFloat::BFloat(), false},
  };
#if LLVM_VERSION_MAJOR >= 19
  all.push_back({"minifloat:e3m2", &llvm::APFloat::Float6E3M2FN(), true});
  all.push_back({"minifloat:e2m3", &llvm::APFloat::Float6E2M3FN(), true});
  all.push_back({"minifloat:e2m1", &llvm::APFloat::Float4E2M1FN(), true});
#endif
  return all;
}

TEST(ApFloat, AgreesOnEveryProbeAndCode) {
  for (const ApFloatCase& test : cases()) {
    const auto format = parse_format(test.format);
    const std::vector<double> numbers = representable_numbers(*format);
    Matrix matrix{1, 0, {}};
    for (const float x : probes(numbers))
      if (std::isfinite(x)) matrix.values.push_back(x);
    matrix.columns = std::ssize(matrix.values);
    const std::vector<float> y = quantized(*format, matrix, best_isa());
    const EncodedMatrix encoded = format->encode(arguments(matrix, {}, nullptr, best_isa()));
    int shown = 0;
    for (std::size_t i = 0; i < y.size() && shown < 3; ++i) {
      const float x = matrix.values[i];
      llvm::APFloat converted(x);
      bool loses = false;
      converted.convert(*test.semantics, llvm::APFloat::rmNearestTiesToEven, &loses);
      llvm::APFloat back = converted;
      back.convert(llvm::APFloat::IEEEsingle(), llvm::APFloat::rmNearestTiesToEven, &loses);
      float expected = back.convertToFloat();
      if (test.saturates && !std::isfinite(expected))
        expected = std::copysign(static_cast<float>(numbers.back()), x);
      if (is_same(y[i], expected)) continue;
      ADD_FAILURE() << test.format << ": " << x << " became " << y[i] << " instead of " << expected;
      ++shown;
    }
    // Bit patterns too, of every number that the format has.
    if (format->facts().element_bits != 8) continue;
    for (std::size_t i = 0; i < y.size() && shown < 3; ++i) {
      if (!std::isfinite(y[i])) continue;
      llvm::APFloat number(y[i]);
      bool loses = false;
      number.convert(*test.semantics, llvm::APFloat::rmNearestTiesToEven, &loses);
      const auto bits = static_cast<std::uint8_t>(number.bitcastToAPInt().getZExtValue());
      if (encoded.codes[i] == bits) continue;
      ADD_FAILURE() << test.format << ": the code of " << y[i];
      ++shown;
    }
  }
}

}  // namespace
}  // namespace lathe::numerics

#else

TEST(ApFloat, AgreesOnEveryProbeAndCode) {
  GTEST_SKIP() << "LLVM's headers are not installed (Debian: llvm-16-dev, or llvm-19-dev for 4 and "
                  "6 bits); oracle_test.cpp checks the same";
}

#endif
