#!/usr/bin/env python3
"""Writes 10,000 varied lines and the ids that Hugging Face tokenizers gives them.

    tokenizer_ids_rival.py DIRECTORY --out FOLDER [--train TEXT] [--lines N]

DIRECTORY holds tokenizer.json; with --train TEXT it is made first: a byte-level BPE of 8,000 tokens
trained on that text. FOLDER gets lines.txt, ids.jsonl (a list of ids a line, as `lathe tokenize
--json` prints them) and lines_and_ids.json. To compare:

    lathe tokenize --tokenizer DIRECTORY FOLDER/lines.txt --json | cmp - FOLDER/ids.jsonl

No output means that all ids are equal.
"""

import argparse
import json
import pathlib
import random

import tokenizers

SNIPPETS = [
    # prose and contractions
    "the", " film", " wasn't", "it's", " they'll", "I'VE", " don't", "'tis", " rock'n'roll", "naïve",
    # white space of every kind; "\n" would end the line
    " ", "  ", "     ", "\t", "\t\t", "\v", "\f", "\u0085", "\u00a0", "\u2003", "\u3000", "\u2028",
    # code
    "if (x == 0) {", "}", "return *p++;", "def f(a, b=None):", "    ", "a[i]->next", "<div class=\"x\">",
    "0xDEADBEEF", "/* note */", "// TODO", "std::vector<int>", "SELECT * FROM t;", "\\n", "$HOME/.cfg",
    # numbers
    "0", "42", "1,000,000.5", "3.14e-10", "½", "²", "Ⅷ", "٣٤", "一二三",
    # scripts
    "中文分词", "日本語のテキスト", "한국어", "Привет", "مرحبا", "שלום", "हिन्दी", "ภาษาไทย", "Ελλάδα",
    # marks, joiners, emoji
    "e\u0301", "a\u0328\u0301", "👍", "👍🏽", "👩\u200d🚀", "🇨🇭", "❤\ufe0f", "\u200b", "\u200d", "\ufeff",
    # controls and what is hardly ever seen
    "\x00", "\x01", "\x07", "\x1b[31m", "\x7f", "\u0080", "\ufffd", "\U0001f9ff", "\U00020000", "\U0010fffd",
    # punctuation and special tokens
    "...", "—", "“quoted”", "!?!", "#hashtag", "@user", "https://example.org/a?b=c", "<|endoftext|>",
    "<|endoftext", "[CLS]", "[SEP]", "[MASK]",
]


def make_line(rng, words):
    parts = []
    for _ in range(rng.randint(0, 24)):
        kind = rng.random()
        if kind < 0.45:
            parts.append(rng.choice(SNIPPETS))
        elif kind < 0.85 and words:
            parts.append(rng.choice((" ", "")) + rng.choice(words))
        else:
            code_point = rng.choice((rng.randrange(0x20, 0x300), rng.randrange(0x110000)))
            if not 0xD800 <= code_point <= 0xDFFF:
                parts.append(chr(code_point))
    # Our program reads lines: it drops "\r" at their end and ends them at "\n".
    return "".join(parts).replace("\n", " ").rstrip("\r")


def train(text, directory):
    tokenizer = tokenizers.ByteLevelBPETokenizer()
    tokenizer.train([text], vocab_size=8000, min_frequency=2, special_tokens=["<|endoftext|>"])
    directory.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(directory / "tokenizer.json"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--train", metavar="TEXT", help="train the tokenizer on this file first")
    parser.add_argument("--lines", type=int, default=10_000)
    arguments = parser.parse_args()
    words = []
    if arguments.train:
        train(arguments.train, arguments.directory)
        with open(arguments.train, encoding="utf-8", errors="replace") as file:
            words = file.read(2_000_000).split()
    tokenizer = tokenizers.Tokenizer.from_file(str(arguments.directory / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()

    rng = random.Random(1)
    lines = [make_line(rng, words) for _ in range(arguments.lines)]
    ids = [encoding.ids for encoding in tokenizer.encode_batch(lines)]
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "lines.txt").write_bytes("".join(line + "\n" for line in lines).encode())
    (arguments.out / "ids.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in ids))
    (arguments.out / "lines_and_ids.json").write_text(json.dumps({"lines": lines, "ids": ids}))
    print(f"{len(lines)} lines, {sum(map(len, ids))} ids, vocabulary {tokenizer.get_vocab_size()}")


if __name__ == "__main__":
    main()
