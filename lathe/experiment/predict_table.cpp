#include "lathe/experiment/predict_table.h"

#include <filesystem>

#include "lathe/core/error.h"
#include "lathe/core/json_reader.h"
#include "lathe/data/csv_records.h"
#include "lathe/data/dataset_reader.h"
#include "lathe/data/utf8.h"

namespace lathe::experiment {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kRowsAtOnce = 64;

// One cell of an answer: the name of its column and its text.
struct Cell {
  std::string column, text;
};

std::string number_text(double value) {
  return fmt::format("{:.6g}", value);
}

std::vector<Cell> cells_of(const Prediction& prediction, const AnswerKind& kind,
                           const AnswerOptions& options) {
  const std::vector<std::string>& names = kind.label_names;
  if (kind.labels == LabelKind::Number)
    return {{"predicted", number_text(prediction.logits.at(0))}};
  if (kind.labels == LabelKind::Set) {
    Cell labels{"predicted", ""}, probabilities{"probability", ""};
    for (const std::size_t label : prediction.chosen()) {
      const std::string between = labels.text.empty() ? "" : kind.separator;
      labels.text += between + names[label];
      probabilities.text += between + fmt::format("{:.4f}", prediction.probabilities[label]);
    }
    return {labels, probabilities};
  }
  std::vector<Cell> cells;
  const std::vector<std::size_t> best = prediction.likeliest(static_cast<std::size_t>(options.top));
  for (std::size_t i = 0; i < best.size(); ++i) {
    const std::string number = options.top == 1 ? "" : fmt::format("_{}", i + 1);
    cells.push_back({"predicted" + number, names[best[i]]});
    cells.push_back(
        {"probability" + number, fmt::format("{:.4f}", prediction.probabilities[best[i]])});
  }
  return cells;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

std::string dump(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

// A row of a table while its answer is awaited.
struct Waiting {
  std::vector<std::string> fields;
  ordered_json object;
};

class TablePredictor {
 public:
  TablePredictor(Predictor& predictor, TextFormat format, const data::ColumnOptions& columns,
                 const AnswerOptions& options, const std::function<void(const std::string&)>& write,
                 const ShouldStop& should_stop)
      : predictor_(predictor),
        format_(format),
        columns_(columns),
        options_(options),
        write_(write),
        should_stop_(should_stop) {
    columns_.known_text = predictor.reading().text_columns;
  }

  void run(std::string_view contents) {
    if (format_ == TextFormat::Csv)
      read_csv(contents);
    else if (format_ == TextFormat::Tsv)
      read_tsv(contents);
    else
      read_jsonl(contents);
    answer();
  }

 private:
  void read_csv(std::string_view contents) {
    data::CsvRecords records(contents);
    while (!records.at_end()) {
      const std::int64_t line = records.line();
      std::vector<std::string> fields = records.next();
      if (fields.size() == 1 && fields[0].empty()) continue;
      take_fields(std::move(fields), columns_.header != data::Header::No, line);
    }
  }

  void read_tsv(std::string_view contents) {
    contents = data::without_byte_order_mark(contents);
    for (std::int64_t number = 1; !contents.empty(); ++number) {
      const std::size_t length = contents.find('\n');
      std::string_view line = contents.substr(0, length);
      contents.remove_prefix(length == contents.npos ? contents.size() : length + 1);
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.empty() && number > 1) continue;
      std::vector<std::string> fields = data::split_tabs(line);
      const bool has_header = header_.empty() && data::is_header(fields, columns_, false);
      take_fields(std::move(fields), has_header, number);
    }
  }

  // The first one decides what there is.
  void take_fields(std::vector<std::string> fields, bool may_be_header, std::int64_t line) {
    if (header_.empty()) {
      const bool is_named = may_be_header;
      header_ = is_named ? fields : data::numbered_columns(fields.size());
      if (!is_named && !data::has_told_columns(columns_, fields.size())) {
        const std::size_t needed = predictor_.reads_pairs() ? 2 : 1;
        if (fields.size() != needed)
          throw UserError(fmt::format("{}: has {} fields and no header", line, fields.size()),
                          "`header` no and `text-column` N say which holds the text");
        choice_.text = needed == 2 ? std::vector<std::size_t>{0, 1} : std::vector<std::size_t>{0};
      } else {
        choice_ = with_place(fmt::format("{}", line),
                             [&] { return data::choose_columns(header_, columns_, false); });
      }
      has_names_ = is_named;
      if (is_named) return;
    }
    if (fields.size() != header_.size())
      fail("{}: has {} fields, but the first line has {}", line, fields.size(), header_.size());
    data::Example example{fields[choice_.text[0]], data::kNoLabel};
    if (choice_.text.size() > 1) example.second = fields[choice_.text[1]];
    add(std::move(example), choice_.text.size() > 1, {.fields = std::move(fields), .object = {}});
  }

  void read_jsonl(std::string_view contents) {
    contents = data::without_byte_order_mark(contents);
    for (std::int64_t number = 1; !contents.empty(); ++number) {
      const std::size_t length = contents.find('\n');
      const std::string_view line = contents.substr(0, length);
      contents.remove_prefix(length == contents.npos ? contents.size() : length + 1);
      if (line.find_first_not_of(" \t\r") == line.npos) continue;
      const std::string sound = data::is_utf8(line) ? std::string(line) : data::as_utf8(line);
      parse_json(sound, "", {}, number);  // with its limits and its messages
      ordered_json object = ordered_json::parse(sound);
      if (!object.is_object()) fail("{}: is not a JSON object", number);
      std::vector<std::string> keys;
      for (const auto& [key, value] : object.items()) keys.push_back(key);
      const data::ColumnChoice choice = with_place(
          fmt::format("{}", number), [&] { return data::choose_columns(keys, columns_, false); });
      std::vector<std::string> texts;
      for (const std::size_t column : choice.text) {
        const ordered_json& text = object[keys[column]];
        if (!text.is_string())
          fail("{}: {} is {}, expected a text", number, keys[column], dump(text));
        texts.push_back(text.get<std::string>());
      }
      data::Example example{texts[0], data::kNoLabel};
      if (texts.size() > 1) example.second = texts[1];
      add(std::move(example), texts.size() > 1, {.fields = {}, .object = std::move(object)});
    }
  }

  void add(data::Example example, bool is_pair, Waiting row) {
    if (is_pair != predictor_.reads_pairs())
      fail("the model was trained on {}, but {}",
           predictor_.reads_pairs() ? "pairs of texts" : "single texts",
           is_pair ? "two text columns are read" : "one text column is read");
    examples_.has_pairs = is_pair;
    examples_.examples.push_back(std::move(example));
    waiting_.push_back(std::move(row));
    if (waiting_.size() == kRowsAtOnce) answer();
  }

  void answer() {
    if (should_stop_ && should_stop_()) throw Interrupted();
    const std::vector<Prediction> predictions = predictor_.predict(examples_);
    for (std::size_t i = 0; i < predictions.size(); ++i) write_row(i, predictions[i]);
    waiting_.clear();
    examples_.examples.clear();
  }

  void write_row(std::size_t index, const Prediction& prediction) {
    if (options_.is_json) {
      ordered_json line = to_json(prediction, predictor_.answers(), options_);
      const data::Example& example = examples_.examples[index];
      if (options_.with_text) line["text"] = example.text;
      if (options_.with_text && examples_.has_pairs) line["second_text"] = example.second;
      write_(dump(line));
      return;
    }
    const std::vector<Cell> cells = cells_of(prediction, predictor_.answers(), options_);
    Waiting& row = waiting_[index];
    if (format_ == TextFormat::Jsonl) {
      add_keys(row.object, prediction, cells);
      write_(dump(row.object));
      return;
    }
    if (has_names_ && !is_header_written_) write_header(cells);
    std::string line;
    for (const std::string& field : row.fields) append(line, field);
    for (const Cell& cell : cells) append(line, cell.text);
    write_(line);
    is_first_field_ = true;
  }

  void add_keys(ordered_json& object, const Prediction& prediction,
                const std::vector<Cell>& cells) {
    for (const Cell& cell : cells) {
      refuse_double(object.contains(cell.column), cell.column);
      object[cell.column] = cell.text;
    }
    // Numbers are numbers there, and sets are lists.
    if (predictor_.answers().labels == LabelKind::Number)
      object["predicted"] = prediction.logits[0];
    if (predictor_.answers().labels == LabelKind::Set) {
      object["predicted"] = ordered_json::array();
      object["probability"] = ordered_json::array();
      for (const std::size_t label : prediction.chosen()) {
        object["predicted"].push_back(predictor_.answers().label_names[label]);
        object["probability"].push_back(prediction.probabilities[label]);
      }
    }
    if (predictor_.answers().labels == LabelKind::Class) {
      const std::vector<std::size_t> best =
          prediction.likeliest(static_cast<std::size_t>(options_.top));
      for (std::size_t i = 0; i < best.size(); ++i)
        object[cells[2 * i + 1].column] = prediction.probabilities[best[i]];
    }
  }

  void write_header(const std::vector<Cell>& cells) {
    std::string line;
    for (const std::string& column : header_) append(line, column);
    for (const Cell& cell : cells) {
      refuse_double(std::ranges::find(header_, cell.column) != header_.end(), cell.column);
      append(line, cell.column);
    }
    write_(line);
    is_first_field_ = is_header_written_ = true;
  }

  static void refuse_double(bool is_there, const std::string& column) {
    if (is_there) fail("the table has a column {} already, which would be written twice", column);
  }

  void append(std::string& line, const std::string& field) {
    if (!is_first_field_) line += format_ == TextFormat::Csv ? ',' : '\t';
    line += format_ == TextFormat::Csv ? csv_field(field) : field;
    is_first_field_ = false;
  }

  Predictor& predictor_;
  TextFormat format_;
  data::ColumnOptions columns_;
  const AnswerOptions& options_;
  const std::function<void(const std::string&)>& write_;
  const ShouldStop& should_stop_;
  std::vector<std::string> header_;
  bool has_names_ = false, is_header_written_ = false, is_first_field_ = true;
  data::ColumnChoice choice_;
  data::Dataset examples_;
  std::vector<Waiting> waiting_;
};

}  // namespace

TextFormat parse_text_format(std::string_view name) {
  if (name == "lines") return TextFormat::Lines;
  if (name == "csv") return TextFormat::Csv;
  if (name == "tsv") return TextFormat::Tsv;
  if (name == "jsonl") return TextFormat::Jsonl;
  throw unknown_name("format", name, {"csv", "jsonl", "lines", "tsv"});
}

TextFormat text_format_of(const std::string& path) {
  std::filesystem::path name(path);
  if (name.extension() == ".zst" || name.extension() == ".gz") name.replace_extension();
  const std::string ending = name.extension().string();
  return ending == ".csv"     ? TextFormat::Csv
         : ending == ".tsv"   ? TextFormat::Tsv
         : ending == ".jsonl" ? TextFormat::Jsonl
                              : TextFormat::Lines;
}

ordered_json to_json(const Prediction& prediction, const AnswerKind& kind,
                     const AnswerOptions& options) {
  const std::vector<std::string>& names = kind.label_names;
  ordered_json line;
  if (kind.labels == LabelKind::Number) {
    line["value"] = prediction.logits.at(0);
    return line;
  }
  if (kind.labels == LabelKind::Class) {
    line["label"] = prediction.label;
    line["label_name"] = names[prediction.label];
  } else {
    line["labels"] = ordered_json::array();
    for (const std::size_t label : prediction.chosen()) line["labels"].push_back(names[label]);
  }
  line["probabilities"] = prediction.probabilities;
  line["logits"] = prediction.logits;
  if (options.top > 1)
    for (const std::size_t label : prediction.likeliest(static_cast<std::size_t>(options.top)))
      line["top"].push_back(
          {{"label_name", names[label]}, {"probability", prediction.probabilities[label]}});
  return line;
}

std::string to_line(const Prediction& prediction, const AnswerKind& kind,
                    const AnswerOptions& options) {
  std::string line;
  for (const Cell& cell : cells_of(prediction, kind, options))
    line += (line.empty() ? "" : "\t") + cell.text;
  return line;
}

void predict_table(Predictor& predictor, std::string_view contents, TextFormat format,
                   const data::ColumnOptions& columns, const AnswerOptions& options,
                   const std::function<void(const std::string&)>& write,
                   const ShouldStop& should_stop) {
  check(format != TextFormat::Lines, "a table");
  TablePredictor(predictor, format, columns, options, write, should_stop).run(contents);
}

data::Dataset line_examples(std::span<const std::string> lines, const Predictor& predictor) {
  data::Dataset examples;
  examples.has_pairs = predictor.reads_pairs();
  for (const std::string& line : lines) {
    if (!examples.has_pairs) {
      examples.examples.push_back({line, data::kNoLabel});
      continue;
    }
    const std::size_t tab = line.find('\t');
    if (tab == line.npos)
      fail("the model was trained on pairs of texts: expected two in a line, with a tab between");
    examples.examples.push_back({line.substr(0, tab), data::kNoLabel, line.substr(tab + 1)});
  }
  return examples;
}

}  // namespace lathe::experiment
