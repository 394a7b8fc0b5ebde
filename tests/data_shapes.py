#!/usr/bin/env python3
"""Ten small data sets of different shapes, each through train, eval, predict and quantize.

    data_shapes.py LATHE

What `eval` says is compared with figures computed here, from what `predict` answers to every row and
from the labels this file wrote: accuracy, confusion and F1 of classes, squared error and correlations
of numbers, F1 of sets of labels. The numbers of classes and sets must be equal; those of numbers may
differ by what is lost where a float is printed.
"""

import csv
import gzip
import io
import json
import math
import os
import random
import subprocess
import sys
import tempfile

LATHE = sys.argv[1]
GOOD = "fine great lovely superb bright warm".split()
BAD = "dull awful poor grim bleak cold".split()
THINGS = "film plot cast music scene story".split()


def lathe(*arguments, stdin=None):
    result = subprocess.run([LATHE, *map(str, arguments)], input=stdin, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"lathe {' '.join(map(str, arguments))}: exit {result.returncode}\n{result.stderr}")
    return result.stdout


class Words:
    """Texts whose mood is a number from 0 to 1, the share of good words."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def text(self, mood):
        words = [self.random.choice(GOOD if i < round(4 * mood) else BAD) for i in range(4)]
        words += [self.random.choice(THINGS) for _ in range(3)]
        self.random.shuffle(words)
        return " ".join(words)


def write(path, text, encoding="utf-8"):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding=encoding, newline="") as file:
        file.write(text)


def csv_text(header, rows, quote_all=False):
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL if quote_all else csv.QUOTE_MINIMAL)
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()


def tsv_text(rows):
    return "".join("\t".join(map(str, row)) + "\n" for row in rows)


def jsonl_text(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


# Each function writes its data and returns (arguments of train and eval, arguments of predict or None for
# lines, the test split's labels, the test split's texts).
def words_without_header(folder):
    words = Words(1)
    for split, count in (("train", 64), ("test", 24)):
        rows = [("good" if i % 2 else "bad", words.text(i % 2)) for i in range(count)]
        write(f"{folder}/{split}.tsv", tsv_text(rows))
    return [], ["--header", "no", "--text-column", "2", f"{folder}/test.tsv"], [label for label, _ in rows], None


def stars_with_header_and_dev(folder):
    words = Words(2)
    for split, count in (("train", 80), ("dev", 20), ("test", 25)):
        rows = [(i, words.text(i % 5 / 4), 1 + i % 5) for i in range(count)]
        write(f"{folder}/{split}.tsv", tsv_text([("id", "review", "stars"), *rows]))
    return [], [f"{folder}/test.tsv"], [str(row[2]) for row in rows], None


def signs_in_quotes_of_several_lines(folder):
    words = Words(3)
    for split, count in (("train", 64), ("test", 24)):
        rows = [(f'{words.text(i % 2)}\nthey said, "{words.text(i % 2)}"', 1 if i % 2 else -1) for i in range(count)]
        write(f"{folder}/{split}.csv", csv_text(("what they wrote", "vote"), rows, quote_all=True))
    columns = ["--text-column", "what they wrote", "--label-column", "vote"]
    return columns, [f"{folder}/test.csv"], [str(row[1]) for row in rows], None


def floats_with_validation(folder):
    words = Words(4)
    for split, count in (("train", 80), ("validation", 20), ("test", 24)):
        rows = [(words.text(i % 5 / 4), i % 5 / 4 + 0.25) for i in range(count)]
        write(f"{folder}/{split}.csv", csv_text(("text", "score"), rows))
    return [], [f"{folder}/test.csv"], [row[1] for row in rows], None


def columns_of_labels(folder):
    words = Words(5)
    for split, count in (("train", 80), ("test", 24)):
        texts = [words.text(i % 2) for i in range(count)]
        rows = [(text, i % 2, int("music" in text)) for i, text in enumerate(texts)]
        write(f"{folder}/{split}.csv", csv_text(("text", "happy", "musical"), rows))
    names = ("happy", "musical")
    return (["--label-column", "happy,musical"], [f"{folder}/test.csv"],
            [{name for name, has in zip(names, row[1:]) if has} for row in rows], None)


def pairs_of_sentences(folder):
    words = Words(6)
    for split, count in (("train", 64), ("test", 24)):
        rows = [{"premise": words.text(i % 2), "hypothesis": words.text(i // 2 % 2),
                 "label": "agrees" if i % 2 == i // 2 % 2 else "differs"} for i in range(count)]
        write(f"{folder}/{split}.jsonl", jsonl_text(rows))
    return [], [f"{folder}/test.jsonl"], [row["label"] for row in rows], None


def lists_of_labels(folder):
    words = Words(7)
    for split, count in (("train", 80), ("valid", 16), ("test", 24)):
        rows = []
        for i in range(count):
            text = words.text(i % 2)
            rows.append({"id": i, "body": text, "tags": ["happy"] * (i % 2) + [t for t in ("plot", "cast") if t in text]})
        write(f"{folder}/{split}.jsonl", jsonl_text(rows))
    return (["--text-column", "body", "--label-column", "tags"], [f"{folder}/test.jsonl"],
            [set(row["tags"]) for row in rows], None)


def compressed_with_a_mark(folder):
    words = Words(8)
    os.makedirs(folder)
    for split, count in (("train", 64), ("test", 24)):
        rows = [(words.text(i % 2), i % 2) for i in range(count)]
        with gzip.open(f"{folder}/{split}.csv.gz", "wb") as file:
            file.write(("\ufeff" + csv_text(("sentence", "label"), rows)).encode())
    return [], [f"{folder}/test.csv.gz"], [str(row[1]) for row in rows], None


def folders_of_texts(folder):
    words = Words(9)
    for split, count in (("train", 64), ("test", 24)):
        rows = sorted((i % 2, i) for i in range(count))
        texts = [words.text(label) for label, _ in rows]
        for (label, i), text in zip(rows, texts):
            write(f"{folder}/{split}/{'pos' if label else 'neg'}/{i}_7.txt", text)
    return [], None, ["pos" if label else "neg" for label, _ in rows], texts


def numbered_columns_with_gaps(folder):
    words = Words(10)
    for split, count in (("train", 72), ("val", 18), ("test", 24)):
        rows = [(f"r{i}", (0, 2, 7)[i % 3], "-", words.text(i % 3 / 2)) for i in range(count)]
        write(f"{folder}/{split}.tsv", tsv_text(rows))
    columns = ["--header", "no", "--text-column", "4", "--label-column", "2"]
    return columns, ["--header", "no", "--text-column", "4", f"{folder}/test.tsv"], [str(row[1]) for row in rows], None


def mean(values):
    return sum(values) / len(values)


def correlation(a, b):
    center_a, center_b = mean(a), mean(b)
    product = sum((x - center_a) * (y - center_b) for x, y in zip(a, b))
    return product / math.sqrt(sum((x - center_a) ** 2 for x in a) * sum((y - center_b) ** 2 for y in b))


def ranks(values):
    return [mean([rank for rank, other in enumerate(sorted(values), 1) if other == value]) for value in values]


def f1(right, given, true):
    return 2 * right / (given + true) if given + true else 0.0


def check(name, what, said, computed, tolerance=0.0):
    if abs(said - computed) > tolerance * max(1, abs(computed)):
        sys.exit(f"{name}: {what} is {said}, but the predictions give {computed}")


def predictions(model, arguments, texts):
    """What the model answers to every row of the test split, as objects."""
    if arguments is None:
        lines = lathe("predict", "--model", model, "--json", "-", stdin="\n".join(texts) + "\n")
    else:
        lines = lathe("predict", "--model", model, "--json", *arguments)
    return [json.loads(line) for line in lines.splitlines()]


def compare(name, evaluation, answers, labels):
    if len(answers) != len(labels) or evaluation["examples"] != len(labels):
        sys.exit(f"{name}: {len(answers)} answers and {evaluation['examples']} examples, expected {len(labels)}")
    if isinstance(labels[0], set):
        given = [set(answer["labels"]) for answer in answers]
        counts = {label: (sum(label in g and label in t for g, t in zip(given, labels)), sum(label in g for g in given),
                          sum(label in t for t in labels)) for label in evaluation["labels"]}
        scores = {label: f1(*count) for label, count in counts.items()}
        check(name, "micro F1", evaluation["micro_f1"], f1(*map(sum, zip(*counts.values()))), 1e-12)
        check(name, "macro F1", evaluation["macro_f1"], mean(list(scores.values())), 1e-12)
        check(name, "exact", evaluation["exact"], mean([g == t for g, t in zip(given, labels)]), 1e-12)
        for label, score in scores.items():
            check(name, f"F1 of {label}", evaluation["f1_by_label"][label], score, 1e-12)
        return f"F1 {evaluation['micro_f1']:.3f}"
    if isinstance(labels[0], float):
        values = [answer["value"] for answer in answers]
        # Floats are printed with all their digits: sums of 24 doubles are all that differs.
        check(name, "error", evaluation["mean_squared_error"], mean([(v - t) ** 2 for v, t in zip(values, labels)]), 1e-9)
        check(name, "Pearson", evaluation["pearson"], correlation(values, labels), 1e-6)
        check(name, "Spearman", evaluation["spearman"], correlation(ranks(values), ranks(labels)), 1e-9)
        return f"Pearson {evaluation['pearson']:.3f}"
    # Labels that are the numbers from 0 name nothing: such a model's are LABEL_0, LABEL_1 as everywhere.
    given = [answer["label_name"].removeprefix("LABEL_") for answer in answers]
    check(name, "accuracy", evaluation["accuracy"], mean([g == t for g, t in zip(given, labels)]))
    order = [label.removeprefix("LABEL_") for label in evaluation["labels"]]
    confusion = [[sum(g == column and t == row for g, t in zip(given, labels)) for column in order] for row in order]
    if evaluation["confusion"] != confusion:
        sys.exit(f"{name}: confusion is {evaluation['confusion']}, but the predictions give {confusion}")
    scores = [f1(confusion[i][i], sum(row[i] for row in confusion), sum(confusion[i])) for i in range(len(order))]
    check(name, "mean F1", evaluation["f1"], mean(scores), 1e-12)
    return f"accuracy {evaluation['accuracy']:.3f}"


def check_table(name, model, arguments, labels):
    """The table that predict writes is the one it read, with columns added."""
    path = arguments[-1]
    written = lathe("predict", "--model", model, *arguments)
    if ".csv" in path:
        opened = gzip.open(path, "rt", encoding="utf-8-sig", newline="") if path.endswith(".gz") else open(path, newline="")
        with opened as file:
            before = list(csv.reader(file))
        after = list(csv.reader(io.StringIO(written)))
        width = len(before[0])
        if [row[:width] for row in after] != before or after[0][width] != "predicted":
            sys.exit(f"{name}: the table of predictions is not the table read")
    elif path.endswith(".jsonl"):
        with open(path) as file:
            before = [json.loads(line) for line in file]
        for old, new in zip(before, map(json.loads, written.splitlines()), strict=True):
            if any(new[key] != value for key, value in old.items()) or "predicted" not in new:
                sys.exit(f"{name}: a predicted row is {new}, read was {old}")


def run(shape, work):
    name = shape.__name__
    folder = f"{work}/{name}"
    arguments, predict_arguments, labels, texts = shape(folder)
    lathe("tokenizer", "train", "--data", folder, *arguments, "--size", 300, "--least-count", 1, "--out", f"{work}/{name}-tokens")
    lathe("train", "--model", "bert-tiny", "--tokenizer", f"{work}/{name}-tokens", "--data", folder, *arguments,
          "--epochs", 10, "--batch-size", 16, "--lr", "1e-3", "--length", 48, "--seed", 1, "--out", f"{work}/{name}-run", "--quiet")
    with open(f"{work}/{name}-run/results.json") as file:
        results = json.load(file)
    # Columns, length and labels are the model's own by now; only what a table without names needs is told again.
    again = ["--header", "no"] if "--header" in arguments else []
    shown = []
    for model in (f"{work}/{name}-run", f"{work}/{name}-q8"):
        if model.endswith("q8"):
            lathe("quantize", "--model", f"{work}/{name}-run", "--weights", "int:8,channel", "--out", model, "--quiet")
        evaluation = json.loads(lathe("eval", "--model", model, "--data", folder, *again, "--json", "--quiet"))
        if evaluation["length"] != 48:
            sys.exit(f"{name}: the model forgot its length: {evaluation['length']}")
        answers = predictions(model, predict_arguments, texts)
        shown.append(compare(name, evaluation, answers, labels))
        if model.endswith("run"):
            for key, value in results.items():
                if key in evaluation and evaluation[key] != value:
                    sys.exit(f"{name}: results.json says {key} is {value}, eval says {evaluation[key]}")
            if predict_arguments:
                check_table(name, model, predict_arguments, labels)
    print(f"{name}: {shown[0]}, in 8 bits {shown[1]}", flush=True)


def main():
    shapes = [words_without_header, stars_with_header_and_dev, signs_in_quotes_of_several_lines, floats_with_validation,
              columns_of_labels, pairs_of_sentences, lists_of_labels, compressed_with_a_mark, folders_of_texts,
              numbered_columns_with_gaps]
    with tempfile.TemporaryDirectory() as work:
        for shape in shapes:
            run(shape, work)
    print(f"{len(shapes)} data sets: all figures agree")


if __name__ == "__main__":
    main()
