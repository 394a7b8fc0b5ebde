// Studies come and go: create, delete.
#include "lathe/cli/study_arguments.h"
#include "lathe/cli/study_text.h"
#include "lathe/cli/trial_text.h"
#include "lathe/study/space_file.h"

namespace lathe::cli::study_create_command {
namespace {

struct CreateArguments {
  StudyArguments study;
  std::vector<std::string> directions, objectives;
  std::string space;
  std::optional<std::string> sampler, pruner;
  bool skip_if_exists = false;
};

int create(const CreateArguments& arguments, const Settings& settings) {
  std::vector<study::Direction> directions;
  for (const std::string& text : arguments.directions) directions.push_back(parse_direction(text));
  if (directions.empty()) directions.push_back(study::Direction::Minimize);
  study::StudyOptions options{
      .sampler = arguments.sampler, .pruner = arguments.pruner, .seed = settings.seed};
  options.objectives = arguments.objectives;
  if (!arguments.space.empty()) options.space = study::read_space_file(arguments.space);
  // Wrong options are found before a study is made with them.
  study::make_sampler(arguments.sampler.value_or("auto"), settings.seed,
                      options.space ? &*options.space : nullptr);
  study::make_pruner(arguments.pruner.value_or("none"));

  const std::shared_ptr<study::Storage> storage = open_storage(arguments.study, true);
  const std::optional<study::StudyId> there = storage->find_study(arguments.study.study);
  if (there && !arguments.skip_if_exists)
    throw UserError(fmt::format("{}: there is already a study \"{}\"", storage->description(),
                                arguments.study.study),
                    "--skip-if-exists leaves it as it is");
  if (there) {
    // Left as it is, but it must be the study that was asked for.
    if (arguments.directions.empty()) directions = storage->study(*there).directions;
    options = {.space = std::move(options.space), .objectives = arguments.objectives};
  }
  study::Study::create(storage, arguments.study.study, directions, std::move(options));
  if (settings.json)
    print_json({{"study", arguments.study.study},
                {"storage", storage->description()},
                {"created", !there.has_value()},
                {"directions", direction_names(directions)}});
  else if (there)
    fmt::print("study {} is already in {}\n", arguments.study.study, storage->description());
  else
    fmt::print("created study {} in {}\n", arguments.study.study, storage->description());
  return 0;
}

std::function<int(const Settings&)> setup_create(Flags flags) {
  auto arguments = std::make_shared<CreateArguments>();
  add_study_options(flags, arguments->study);
  flags
      .add_option("--direction", arguments->directions,
                  "minimize or maximize, once for each objective [minimize]")
      .repeatable()
      .one_word();
  flags
      .add_option("--objective", arguments->objectives,
                  "what the results are called, such as accuracy, once for each direction")
      .repeatable()
      .one_word();
  flags.add_option("--space", arguments->space, "TOML file of the parameters");
  flags.add_option("--sampler", arguments->sampler,
                   "what proposes parameters, such as tpe:multivariate=true; lathe study samplers "
                   "lists them [auto]");
  flags.add_option("--pruner", arguments->pruner,
                   "what stops hopeless trials early, such as median; lathe study samplers lists "
                   "them [none]");
  flags.add_flag("--skip-if-exists", arguments->skip_if_exists, "an existing study is no error");
  return [arguments](const Settings& settings) { return create(*arguments, settings); };
}

int remove(const StudyArguments& arguments, const Settings& settings) {
  const StoredStudy study = read_study(arguments);
  study.storage->delete_study(study.record.id);
  if (settings.json)
    print_json({{"deleted", study.record.name}, {"trials", study.history.trials().size()}});
  else
    fmt::print("deleted study {} with {} trials\n", study.record.name,
               study.history.trials().size());
  return 0;
}

std::function<int(const Settings&)> setup_delete(Flags flags) {
  auto arguments = std::make_shared<StudyArguments>();
  add_study_options(flags, *arguments);
  return [arguments](const Settings& settings) { return remove(*arguments, settings); };
}

const Register create_command{Command{
    .name = "study create",
    .summary = "make a study: its objectives, parameters and sampler",
    .examples = "  lathe study create --study s --objective accuracy --direction maximize --space "
                "space.toml\n"
                "  lathe study create --study s --space space.toml --sampler tpe:multivariate=true "
                "--seed 7\n"
                "  lathe study create --study s --direction maximize --direction minimize \\\n"
                "      --space space.toml --storage postgresql://me@host/studies",
    .setup = setup_create,
}};
const Register delete_command{Command{
    .name = "study delete",
    .summary = "delete a study and its trials",
    .examples = "  lathe study delete --study s --storage sqlite:///runs.db",
    .setup = setup_delete,
}};

}  // namespace
}  // namespace lathe::cli::study_create_command
