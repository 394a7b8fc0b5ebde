#pragma once

#include <cstddef>
#include <string_view>

namespace lathe::data {

inline constexpr std::string_view kGpt2Expression =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// The length in bytes of the piece at the beginning of `text`, which is UTF-8 and not empty, as
/// GPT-2 cuts texts: a contraction ('s 't 're 've 'm 'll 'd), a run of letters, of digits or of
/// anything else, each with one space in front, or a run of white space, of which the last
/// character is left to the piece that follows. In the words of its authors, kGpt2Expression.
std::size_t gpt2_piece_length(std::string_view text);

}  // namespace lathe::data
