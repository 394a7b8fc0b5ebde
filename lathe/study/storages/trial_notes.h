#pragma once

#include <string>

#include "lathe/study/trial_record.h"

namespace lathe::study {

/// The system attributes in which storages keep what Optuna has no place for.
inline constexpr const char* kOwnerKey = "lathe:owner";      ///< who works on the trial
inline constexpr const char* kAttemptKey = "lathe:attempt";  ///< how often it was taken
/// When its owner was last heard of, in milliseconds since 1970 by the storage's own clock. There
/// is none, or `null`, when the trial was claimed without a lease.
inline constexpr const char* kHeartbeatKey = "lathe:heartbeat";
/// `true` while a trial waits for its promotion rather than for anybody.
inline constexpr const char* kPausedKey = "lathe:paused";
/// A text that only the worker knows that handed the trial back last.
inline constexpr const char* kReleaseKey = "lathe:released";
/// Optuna's: values that a waiting trial is to have.
inline constexpr const char* kFixedKey = "fixed_params";

/// The note of that name as JSON text, or an empty text.
std::string note(const TrialRecord& trial, const char* key);

/// The `fixed_params` of a trial that goes back to the queue: what was enqueued and what was chosen
/// since, so that a Python worker which takes it evaluates the same point. Empty: nothing to fix.
std::string fixed_parameters(const TrialRecord& trial);

}  // namespace lathe::study
