#pragma once

#include <cstddef>
#include <string_view>

namespace lathe::data {

/// How Llama 3 and its kin (GPT-4's cl100k) cut texts, and Qwen 2, whose digits stand alone.
inline constexpr std::string_view kLlama3Expression =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kQwen2Expression =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// The length in bytes of the piece at the beginning of `text`, which is UTF-8 and not empty, by
/// the first of these expressions, with at most `most_digits` to a number: a contraction, letters
/// with one character in front that is no letter, digit or end of a line, digits, other characters
/// with a space in front and ends of lines behind, white space up to the last end of a line, or
/// white space, of which the last character is left to the piece that follows.
std::size_t llama3_piece_length(std::string_view text, int most_digits);

}  // namespace lathe::data
