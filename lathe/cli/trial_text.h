#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lathe/cli/print_json.h"
#include "lathe/study/trial_record.h"

namespace lathe::cli {

/// A value for people and for commands: texts without quotes, numbers in as few digits as tell them
/// from their neighbours.
std::string value_text(const study::Choice& value);
std::string value_text(const study::Parameter& parameter);
/// A number for people: six digits at most.
std::string number_text(double value);
/// The values of all objectives, separated by blanks; "-" where there are none.
std::string values_text(const std::vector<double>& values);
/// `x=0.5 activation=gelu`
std::string parameters_text(const std::vector<study::Parameter>& parameters);
/// `complete`, `running`, ...
std::string state_text(study::TrialState state);
/// How long the trial took, in seconds, if that is known.
std::optional<double> trial_seconds(const study::TrialRecord& trial);
/// `2024-05-01T12:30:00.250000Z`
std::string time_text(study::Time time);

/// JSON has no word for what is not finite: "nan", "inf", "-inf".
nlohmann::ordered_json number_json(double value);
nlohmann::ordered_json value_json(const study::Choice& value);
nlohmann::ordered_json parameters_json(const std::vector<study::Parameter>& parameters);
/// An attribute's text as JSON; as a string when it is none.
nlohmann::ordered_json attribute_json(const std::string& text);
nlohmann::ordered_json attributes_json(const study::Attributes& attributes);
/// Number, state, value or values, and params.
nlohmann::ordered_json trial_json(const study::TrialRecord& trial);

}  // namespace lathe::cli
