#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lathe/cli/value_list.h"
#include "lathe/core/number_format.h"
#include "lathe/numerics/round_matrix.h"

/// Number formats, and what they make of numbers, as `lathe format` shows them.
namespace lathe::cli {

/// Some values and what a format made of them.
struct FormatOutcome {
  ValueList input = {};
  numerics::RoundedMatrix rounded = {};
};
void add_outcome(nlohmann::ordered_json& line, const NumberFormat& format,
                 const FormatOutcome& outcome);
void print_outcome(const NumberFormat& format, const FormatOutcome& outcome);

/// "a power of two, made by its own values for each 32 values of a row, 8 bits".
std::string scale_text(const FormatFacts& facts);

/// The numbers on a line of characters: "|" is 0, "." one number, ":" several in the same place.
std::string draw_numbers(const std::vector<double>& numbers);

}  // namespace lathe::cli
