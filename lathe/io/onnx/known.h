#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lathe/core/graph.h"
#include "lathe/core/tensor.h"

namespace lathe::io::onnx {

/// A small array of integers or truth values whose elements are sizes, such as what Shape gives:
/// [B, L, 128].
struct SizeArray {
  DType dtype = DType::I64;
  std::vector<std::int64_t> dims = {};  ///< none: a single number
  std::vector<Size> elements = {};
};

/// An array of integers of any size whose element at (i, j, ..) is offset + slopes[0] * i +
/// slopes[1] * j + ..: what Range gives, and what indices of rows and positions are made of.
struct AffineArray {
  DType dtype = DType::I64;
  Shape shape = {};
  Size offset = {};
  std::vector<Size> slopes = {};  ///< one for each axis
};

/// What is known of a value of an ONNX graph before it runs. At least one of these is there; a
/// number that is a size is both a SizeArray and an AffineArray.
struct Known {
  std::string name = {};                   ///< in the file, for what is made of it
  Value value = kNone;                     ///< in the graph, once somebody asked for it
  std::optional<Tensor> constant = {};     ///< it is the same in every run
  std::optional<SizeArray> sizes = {};     ///< it depends on sizes alone
  std::optional<AffineArray> affine = {};  ///< it depends on sizes and places alone
  /// Tuples along its last axis, each element an affine array: indices of GatherND.
  std::vector<AffineArray> tuple = {};
  /// The constant is that of another value, a matrix, transposed: a weight that two layers share
  /// stays one.
  std::string transposed_of = {};
  bool is_buffer = false;  ///< a constant that the importer made: nothing to train
};

/// Whether a name is one that exporters give what has none in the program: `onnx::MatMul_338`,
/// `val_72`, a node's output.
bool is_anonymous(const std::string& name);

/// A term of a size: a number times a product of symbols.
struct SizeTerm {
  std::int64_t coefficient = 1;
  Size symbols = 1;
};
std::vector<SizeTerm> terms_of(const Size& size);

/// a / b where that is a polynomial again; nullopt where it is not.
std::optional<Size> exact_quotient(const Size& a, const Size& b);
/// Whether a size is at least `least` whatever its symbols are, which count something: from 1 up.
bool is_at_least(const Size& size, std::int64_t least);

/// The elements of a constant array of integers as sizes; nullopt where it is none or is large.
std::optional<SizeArray> size_array(const Tensor& tensor);
/// The array as a tensor, where no symbol is in it.
std::optional<Tensor> constant_of(const SizeArray& array);
/// A number that is a size, as an array without axes.
AffineArray affine_of(const SizeArray& number);

}  // namespace lathe::io::onnx
