// Fine-tunes a model on the built-in reviews, rounds it to eight bits, and measures both.
#include <cstdio>

#include "lathe/experiment/evaluate.h"
#include "lathe/experiment/fine_tune.h"
#include "lathe/experiment/quantize.h"

using namespace lathe;

int main() {
  ThreadPool pool(2);
  const engine::ExecutionOptions execution{.pool = &pool};

  experiment::FineTuneOptions training;
  training.model = "bert-tiny";
  training.data = "reviews:train=8000,test=1000";
  training.out = "run";
  training.replaces = true;
  const experiment::FineTuned tuned = experiment::fine_tune(training, execution);
  std::printf("trained for %d steps\n", static_cast<int>(tuned.training.progress.step));

  experiment::QuantizeOptions rounding;
  rounding.weights = rounding.embeddings = "int:8,channel";
  rounding.activations = "int:8,asymmetric";
  rounding.calibrate = training.data;
  const io::Model loaded = io::load_model("run");
  const experiment::Quantized small = experiment::quantize(loaded, rounding, execution);

  const experiment::EvaluateOptions measuring{.data = training.data};
  const double before = experiment::evaluate_on(loaded, measuring, execution).classes->accuracy;
  const double after = experiment::evaluate_on(small.model, measuring, execution).classes->accuracy;
  std::printf("learned to read: %s\n", before > 0.6 ? "yes" : "no");
  std::printf("a quarter of the bytes: %s\n",
              small.bits.stored < 0.27 * small.bits.floats ? "yes" : "no");
  std::printf("within a point of float: %s\n", after > before - 0.01 ? "yes" : "no");
}
