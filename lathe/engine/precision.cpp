#include "lathe/engine/precision.h"

#include "lathe/core/error.h"

namespace lathe::engine {

Precision parse_precision(std::string_view name) {
  if (name == "float32") return Precision::Float32;
  if (name == "tf32") return Precision::Tf32;
  if (name == "bf16") return Precision::Bf16;
  throw unknown_name("precision", name, {"bf16", "float32", "tf32"});
}

std::string_view name(Precision precision) {
  switch (precision) {
    case Precision::Float32:
      return "float32";
    case Precision::Tf32:
      return "tf32";
    case Precision::Bf16:
      return "bf16";
  }
  return "";
}

}  // namespace lathe::engine
