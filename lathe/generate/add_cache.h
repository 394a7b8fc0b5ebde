#pragma once

#include "lathe/core/graph.h"

namespace lathe::generate {

/// What a graph with caches is fed with, besides `input_ids` and `offsets` of the tokens to add:
/// the place of each token in its sequence, and of each sequence the first row of its keys in the
/// caches and how many of them are there.
inline constexpr const char* kPositions = "positions";
inline constexpr const char* kStarts = "starts";
inline constexpr const char* kLengths = "lengths";

/// How caches hold keys and values: as floats, which changes nothing, as bfloat16 numbers, or as
/// whole numbers of 8 bits with a scale for each head of each token (ops/cache_rows.h).
enum class CacheFormat { Float32, Bf16, Int8 };
/// "float32", "bf16", "int:8".
std::string_view name(CacheFormat format);
/// Fails naming the text and what was expected.
CacheFormat parse_cache_format(std::string_view text);

/// The graph of a causal language model, which reads whole sequences, as one that goes on with
/// them: attention looks at keys and values that states of role `cache` hold, of `rows` tokens in
/// all, and puts those of new tokens behind them; `logits` are those of each sequence's last token,
/// [S,vocabulary]. One graph reads a prompt and a token after it: their number is no part of it.
///
/// Fails naming a node that needs whole sequences: attention that looks ahead, or whose weights are
/// rounded together.
Graph with_cache(const Graph& graph, std::int64_t rows, CacheFormat format = CacheFormat::Float32);

/// What a graph with caches gives behind `choose_likeliest`: the token for each sequence, i32[S].
inline constexpr const char* kLikeliest = "likeliest";
/// Lets it give those in the place of logits, so that a device keeps these to itself.
void choose_likeliest(Graph& graph);

/// Zeros for the states that `with_cache` added.
State empty_caches(const Graph& graph);

}  // namespace lathe::generate
