#include "lathe/experiment/teachers.h"

#include "lathe/experiment/model_list.h"
#include "lathe/experiment/read_data.h"
#include "lathe/train/answer_cache.h"

namespace lathe::experiment {
namespace {

void check_teacher(const io::Model& teacher) {
  for (const std::string& name : teacher.fresh)
    if (teacher.graph.find(name)) fail("has no trained classifier: tensor \"{}\" is missing", name);
}

std::string teacher_place(const std::string& name) {
  return "teacher " + name;
}

// Where the student's labels stand among the teacher's.
std::vector<std::size_t> check_fits(const io::Model& teacher, const io::Model& student) {
  if (train::reads_of(*teacher.family) != train::reads_of(*student.family))
    fail("a {} model does not read what a {} model does", teacher.family->name,
         student.family->name);
  check_same_images(teacher, student);
  return train::match_columns(teacher.label_names, student.label_names);
}

// Ids mean the same tokens to both.
void check_same_vocabulary(const io::Model& teacher, const io::Model& student) {
  const std::shared_ptr<const data::Tokenizer> theirs = train::load_tokenizer(teacher);
  const std::shared_ptr<const data::Tokenizer> own = train::load_tokenizer(student);
  if (theirs->vocabulary_size() != own->vocabulary_size())
    fail("has a vocabulary of {} tokens: to follow its layers, expected the model's {}",
         theirs->vocabulary_size(), own->vocabulary_size());
  for (std::int32_t id = 0; id < own->vocabulary_size(); ++id)
    if (theirs->token(id) != own->token(id))
      fail("its token {} is \"{}\": to follow its layers, expected \"{}\", as the model's", id,
           theirs->token(id), own->token(id));
}

}  // namespace

Teachers load_teachers(const FineTuneOptions& options) {
  const std::vector<std::string> names =
      with_place("teacher", [&] { return model_list(options.teacher); });
  Teachers result;
  for (const std::string& name : names) {
    io::Model teacher = with_place("teacher", [&] {
      return io::load_model(name, {.task = "classify", .seed = options.trainer.seed});
    });
    with_place(teacher_place(name), [&] { check_teacher(teacher); });
    result.hashes.push_back(train::fingerprint(teacher));
    result.models.push_back(std::move(teacher));
  }
  for (std::size_t i = 0; i < options.teacher_hashes.size() && i < names.size(); ++i)
    if (options.teacher_hashes[i] != result.hashes[i])
      fail("{}: is no longer the model that the run was started with", teacher_place(names[i]));
  return result;
}

void check_layers_can_be_followed(const Teachers& teachers, const io::Model& student,
                                  std::int64_t length) {
  for (const io::Model& teacher : teachers.models)
    with_place(teacher_place(teacher.directory.string()), [&] {
      for (const io::Model* model : {&teacher, &student})
        if (train::max_length(*model) == 0)
          fail("a {} model has no layers to follow", model->family->name);
      check_same_vocabulary(teacher, student);
      const std::int64_t needed = train::text_length(student, length);
      if (train::max_length(teacher) < needed)
        fail("reads {} tokens at most: to follow its layers, expected {}, as the model's",
             train::max_length(teacher), needed);
    });
}

Tensor ask_teachers(const Teachers& teachers, const io::Model& student,
                    const data::Dataset& examples, const FineTuneOptions& options,
                    const std::filesystem::path& cache, const engine::ExecutionOptions& execution,
                    const Callbacks& callbacks) {
  std::vector<std::vector<std::size_t>> columns;
  for (const io::Model& teacher : teachers.models)  // before any of them is run
    columns.push_back(with_place(teacher_place(teacher.directory.string()),
                                 [&] { return check_fits(teacher, student); }));
  std::vector<Tensor> logits;
  for (const io::Model& teacher : teachers.models) {
    train::AskOptions asking{.length = options.length,
                             .truncation = options.truncation,
                             .cache = cache,
                             .execution = execution,
                             .progress = {},
                             .notice = callbacks.notice,
                             .should_stop = callbacks.should_stop};
    asking.progress = [&, activity = fmt::format("asking teacher {} of {}", logits.size() + 1,
                                                 teachers.models.size())](std::int64_t done,
                                                                          std::int64_t) {
      return callbacks.goes_on({.activity = activity,
                                .unit = "examples",
                                .done = done,
                                .total = static_cast<std::int64_t>(examples.examples.size())});
    };
    const Tensor answers = with_place(teacher_place(teacher.directory.string()),
                                      [&] { return train::ask(teacher, examples, asking); });
    logits.push_back(train::pick_columns(answers, columns[logits.size()]));
  }
  return train::mean_probabilities(logits, options.graph.distillation.temperature);
}

}  // namespace lathe::experiment
