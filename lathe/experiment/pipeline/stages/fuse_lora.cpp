#include "lathe/compress/lora.h"
#include "lathe/experiment/pipeline/stage.h"
#include "lathe/io/model.h"

// fuse-lora: adds the paths of low rank to the weights beside them.
namespace lathe::experiment::fuse_lora_stage {
namespace {

void run(const StageRun& stage) {
  io::Model model = io::load_model(stage.model, {.seed = stage.seed, .with_masters = true});
  if (compress::find_lora(model.graph).empty()) fail("{}: has no paths of LoRA", stage.model);
  compress::fuse_lora(model.graph, model.state);
  io::write_checkpoint(stage.out, model);
}

const Register registration{Stage{
    .name = "fuse-lora",
    .summary = "add the paths of LoRA to the weights",
    .check =
        [](const nlohmann::json& settings) {
          for (const auto& [name, value] : settings.items())
            fail("{}: the stage has no settings", name);
        },
    .run = run,
}};

}  // namespace
}  // namespace lathe::experiment::fuse_lora_stage
