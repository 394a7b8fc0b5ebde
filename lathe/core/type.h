#pragma once

#include <string>
#include <vector>

#include "lathe/core/dtype.h"
#include "lathe/core/size.h"

namespace lathe {

using Shape = std::vector<Size>;

/// What a value of the graph is: how its elements are stored, and its shape. Written
/// `f32[B,L,128]`.
///
/// Which numbers the elements may be is said by the node that makes them so: a `quantize` has a
/// format, and nobody has to keep a second copy of it true.
struct Type {
  DType dtype = DType::F32;
  Shape shape = {};

  bool operator==(const Type&) const = default;
  std::size_t rank() const { return shape.size(); }
  /// The size of an axis; negative axes count from the end.
  const Size& axis(std::int64_t index) const;
  Size num_elements() const;
  Size num_bytes() const;
  /// The concrete shape under `values`; fails on an unknown symbol or a negative size.
  std::vector<std::int64_t> dims(const SymbolValues& values) const;
};

std::string to_text(const Shape& shape);
std::string to_text(const Type& type);

}  // namespace lathe
