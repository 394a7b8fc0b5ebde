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

from tokenizer_lines import make_line


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
