#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lathe/core/graph.h"
#include "lathe/models/family.h"

/// Between the tensors of a family's files and the states of its graphs.
namespace lathe::io {

/// The tensors of a file under today's names, without those that say nothing. Fails when one is
/// there under its old and its new name.
State read_tensor_names(const models::ModelFamily& family, const State& tensors);

/// A tensor and what the file calls it, laid out as the state it is for.
struct FoundTensor {
  std::string name;
  Tensor value;
};
/// The tensor a state is stored in, if the file has it: under its own name, or else under that of
/// one that the configuration ties to it. (A head's own tensors that have two names are the same
/// under either.)
std::optional<FoundTensor> find_tensor(const models::ModelFamily& family, const Attributes& config,
                                       const State& tensors, const std::string& state);

/// A tied tensor that a file also holds under its second name.
struct SecondName {
  const models::TiedName* tied = nullptr;
  std::string name;      ///< what the file calls it
  bool is_same = false;  ///< as the state it is tied to
};
std::vector<SecondName> find_second_names(const models::ModelFamily& family,
                                          const Attributes& config, const State& tensors);

/// Those of the tensors named that are parts of the base model, whatever the task: what is left
/// of `tensors` when heads of other tasks are taken away. A graph that reads none of them computes
/// another model than the file's.
std::vector<std::string> parts_of_base(const models::ModelFamily& family, const State& tensors,
                                       const std::vector<std::string>& names);

/// The model's states as files hold them.
State to_file_layout(const models::ModelFamily& family, const State& state);

/// The value as the state's type wants it; fails where the shape differs or integers stand for
/// floats.
Tensor fit_state(const Graph& graph, NodeId state, const FoundTensor& tensor);

/// The first element that is no finite number; nullopt for integers and where all are.
std::optional<std::int64_t> find_non_finite(const Tensor& tensor);
/// The first element that is no number at all, where infinities are some.
std::optional<std::int64_t> find_nan(const Tensor& tensor);

}  // namespace lathe::io
