#pragma once

#include <map>
#include <string>

#include "lathe/core/tensor.h"
#include "lathe/io/storage/stored_form.h"

namespace lathe::io {

/// How small a model's files are made. All of them give the same numbers back, bit for bit.
enum class Storage {
  Plain,    ///< every tensor as it is: what other programs read
  Sparse,   ///< masks as bits, and of what they mask only the rest; the other tensors as they are
  Compact,  ///< all that, coded by statistics where that is smaller; texts compressed
};
/// "plain", "sparse", "compact".
std::string_view name(Storage storage);
/// The storage of that name; fails with the nearest one.
Storage parse_storage(std::string_view text);

/// What is known of a tensor that helps to store it.
struct StorageHint {
  int width = 0;               ///< it holds codes of so many bits, 0 where it does not
  std::int64_t columns = 0;    ///< and so many in a row
  std::string mask = {};       ///< the tensor whose zeros make zeros of this one
  bool is_transposed = false;  ///< that one's rows are this one's columns
};
using StorageHints = std::map<std::string, StorageHint, std::less<>>;

/// A model's tensors as its files hold them: those without a form as they are, the others as bytes.
struct StoredWeights {
  State tensors;
  StoredForms forms;
};

/// Chooses a form for each tensor by the bytes it takes. Hints need not be true: what does not hold
/// is not used.
StoredWeights store_weights(const State& weights, const StorageHints& hints, Storage storage);

/// The tensors themselves. Fails by name where bytes and form do not belong together.
State restore_weights(const StoredWeights& stored);

}  // namespace lathe::io
