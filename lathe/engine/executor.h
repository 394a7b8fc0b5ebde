#pragma once

#include <deque>
#include <memory>
#include <string>

#include "lathe/core/graph.h"
#include "lathe/core/isa.h"
#include "lathe/core/pass.h"
#include "lathe/core/thread_pool.h"
#include "lathe/engine/plan_report.h"
#include "lathe/engine/precision.h"

namespace lathe::engine {

/// How to execute a graph.
struct ExecutionOptions {
  std::string device = "cpu";  ///< the name of a `Backend`
  ThreadPool* pool = nullptr;  ///< nullptr: the calling thread alone
  Isa isa = best_isa();
  Precision precision = Precision::Float32;
  /// Multiplies numbers that are rounded to whole ones as such (integer_products.h) where the
  /// backend can, instead of the floats that stand for them.
  bool uses_integers = false;
  /// Convolutions multiply windows as they are defined, where Winograd's products would be faster
  /// and round more (winograd.h).
  bool plain_convolutions = false;
};

/// Runs one graph again and again, from the values of its states on.
///
/// States live where the backend keeps them, on a device perhaps. A run reads and writes them there
/// and only its outputs come back, so that a step of training moves no state; `state` and
/// `set_state` are copies, made when somebody asks.
class Executor {
 public:
  virtual ~Executor() = default;
  /// The graph's outputs by name for these inputs. Fails when an input is missing or does not fit.
  /// When the graph binds states, they take their new values once everything else is computed.
  virtual Feed run(const Feed& inputs) = 0;
  /// Begins a run whose outputs `finish` gives. Where a device works beside the caller it returns
  /// at once, so that the next run's inputs are made and copied while this one computes. States
  /// are those after the runs begun before. Begin no more than `most_begun` without finishing one.
  virtual void start(const Feed& inputs) { finished_.push_back(run(inputs)); }
  /// Waits for the first run that was begun and not finished yet, and gives its outputs.
  virtual Feed finish() {
    Feed outputs = std::move(finished_.front());
    finished_.pop_front();
    return outputs;
  }
  /// Runs that may be begun and not finished; 1 where a run is over when `start` returns.
  virtual int most_begun() const { return 1; }
  /// The states' values after the last run, copied back.
  virtual State state() const = 0;
  /// Gives some states other values for the runs to come. Fails when one is none of the executor's
  /// states or does not fit.
  virtual void set_state(const State& values) = 0;
  /// The plan and what it has used so far; empty for an executor that makes none.
  virtual PlanReport report() const { return {}; }
  /// Does again what the last run did, with the inputs that are on the device, and gives the
  /// seconds that each of `times` repetitions takes. A step of training is taken as often as it is
  /// repeated, and more often where one is too short to time. `replays`: as one captured graph
  /// where the device has captured it; else kernel by kernel. Empty for an executor that cannot.
  virtual std::vector<double> repeat(int /*times*/, bool /*replays*/) { return {}; }
  /// Measures how long the steps of the report take, from now on.
  virtual void set_timing(bool /*on*/) {}

 private:
  std::deque<Feed> finished_;
};

/// Prepares a graph for execution on `options.device`: checks the states and, where that plans
/// ahead, plans. States that the graph updates are copied, except those that are moved in and
/// shared with nobody.
std::unique_ptr<Executor> make_executor(const Graph& graph, State state,
                                        const ExecutionOptions& options = {});

}  // namespace lathe::engine
