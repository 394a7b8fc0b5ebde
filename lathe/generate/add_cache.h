#pragma once

#include "lathe/core/graph.h"

namespace lathe::generate {

/// What a graph with caches is fed with, besides `input_ids` and `offsets` of the tokens to add:
/// the place of each token in its sequence, and of each sequence the first row of its keys in the
/// caches and how many of them are there.
inline constexpr const char* kPositions = "positions";
inline constexpr const char* kStarts = "starts";
inline constexpr const char* kLengths = "lengths";

/// The graph of a causal language model, which reads whole sequences, as one that goes on with
/// them: attention looks at keys and values that states of role `cache` hold, of `rows` tokens in
/// all, and puts those of new tokens behind them; `logits` are those of each sequence's last token,
/// [S,vocabulary]. One graph reads a prompt and a token after it: their number is no part of it.
///
/// Fails naming a node that needs whole sequences: attention that looks ahead, or whose weights are
/// rounded together.
Graph with_cache(const Graph& graph, std::int64_t rows);

/// What a graph with caches gives behind `choose_likeliest`: the token for each sequence, i32[S].
inline constexpr const char* kLikeliest = "likeliest";
/// Lets it give those in the place of logits, so that a device keeps these to itself.
void choose_likeliest(Graph& graph);

/// Zeros for the states that `with_cache` added.
State empty_caches(const Graph& graph);

}  // namespace lathe::generate
