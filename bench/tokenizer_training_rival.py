#!/usr/bin/env python3
"""Races `lathe tokenizer train` against Hugging Face's trainers on the same texts and cores.

    tokenizer_training_rival.py LATHE DATA [--cores N] [--repeats N] [--size N] [--lines N]

DATA is a directory with train.tsv or train.tsv.zst of label<TAB>text lines. Both are given the texts
in memory: what counts is `train_seconds` of Lathe and the time of `train_from_iterator`, the best of
the repeats, for WordPiece with BERT's normalizer and for byte-level BPE. Both processes are bound to
the same cores. Then the vocabularies are compared, and the first lines of the data are encoded by
Hugging Face from our tokenizer.json and by `lathe tokenize`: all ids must be equal.
"""

import argparse
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser()
parser.add_argument("lathe")
parser.add_argument("data", type=pathlib.Path)
parser.add_argument("--cores", type=int, default=2)
parser.add_argument("--repeats", type=int, default=3)
parser.add_argument("--size", type=int, default=8000)
parser.add_argument("--lines", type=int, default=10000, help="encoded by both")
arguments = parser.parse_args()

os.environ["TOKENIZERS_PARALLELISM"] = "true"
os.environ["RAYON_NUM_THREADS"] = str(arguments.cores)
os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[: arguments.cores]))

import tokenizers  # noqa: E402
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers  # noqa: E402


def decompressed(data):
    """By the library itself: Python has no zstd of its own before 3.14."""
    zstd = ctypes.CDLL("libzstd.so.1")
    zstd.ZSTD_getFrameContentSize.restype = ctypes.c_ulonglong
    zstd.ZSTD_decompress.restype = ctypes.c_size_t
    size = zstd.ZSTD_getFrameContentSize(data, ctypes.c_size_t(len(data)))
    if size > 1 << 34:  # unknown
        size = 40 * len(data)
    buffer = ctypes.create_string_buffer(size)
    count = zstd.ZSTD_decompress(buffer, ctypes.c_size_t(size), data, ctypes.c_size_t(len(data)))
    return buffer.raw[:count]


def read_texts(directory):
    plain = directory / "train.tsv"
    contents = plain.read_bytes() if plain.exists() else decompressed((directory / "train.tsv.zst").read_bytes())
    lines = contents.decode("utf-8", errors="replace").split("\n")
    return [line.split("\t", 1)[1].removesuffix("\r") for line in lines if line]


def wordpiece():
    tokenizer = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    return tokenizer, trainers.WordPieceTrainer(vocab_size=arguments.size, min_frequency=2, limit_alphabet=1000,
                                                special_tokens=special, show_progress=False)


def byte_level_bpe():
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer, trainers.BpeTrainer(vocab_size=arguments.size, min_frequency=2, show_progress=False,
                                          special_tokens=["<|endoftext|>"],
                                          initial_alphabet=pre_tokenizers.ByteLevel.alphabet())


def race(kind, make, texts, folder):
    theirs, ours = float("inf"), float("inf")
    out = folder / kind
    for _ in range(arguments.repeats):
        tokenizer, trainer = make()
        start = time.perf_counter()
        tokenizer.train_from_iterator(texts, trainer, length=len(texts))
        theirs = min(theirs, time.perf_counter() - start)
        command = [arguments.lathe, "tokenizer", "train", "--data", str(arguments.data), "--kind", kind, "--size",
                   str(arguments.size), "--out", str(out), "--force", "--json", "--threads", str(arguments.cores)]
        result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        ours = min(ours, result["train_seconds"])
    mine = tokenizers.Tokenizer.from_file(str(out / "tokenizer.json"))
    common = len(set(mine.get_vocab()) & set(tokenizer.get_vocab()))
    print(f"{kind}: Hugging Face {theirs:.3f} s, Lathe {ours:.3f} s: {theirs / ours:.1f} times as fast; "
          f"{mine.get_vocab_size()} and {tokenizer.get_vocab_size()} tokens, {common} in both", flush=True)

    lines = [text for text in texts[: arguments.lines]]
    (folder / "lines.txt").write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    command = [arguments.lathe, "tokenize", "--tokenizer", str(out), str(folder / "lines.txt"), "--json"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    expected = [encoding.ids for encoding in mine.encode_batch(lines)]
    differing = sum(json.loads(line) != ids for line, ids in zip(printed, expected, strict=True))
    print(f"{kind}: {len(lines)} lines encoded by both, {sum(map(len, expected))} ids, {differing} lines differ", flush=True)
    return differing == 0


def main():
    texts = read_texts(arguments.data)
    size = sum(len(text.encode()) for text in texts) / 1e6
    print(f"tokenizers {tokenizers.__version__}, {len(texts)} texts, {size:.1f} MB, {arguments.cores} cores")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        equal = [race("wordpiece", wordpiece, texts, folder), race("byte-level-bpe", byte_level_bpe, texts, folder)]
    sys.exit(0 if all(equal) else 1)


if __name__ == "__main__":
    main()
