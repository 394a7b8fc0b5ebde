#!/usr/bin/env python3
"""Times Hugging Face tokenizers on the file that bench/tokenizer.cpp is timed on.

    tokenizer_rival.py VOCAB.txt FILE.tsv [--ours MB_PER_SECOND] [--repeats N] [--checksum]

FILE holds label<TAB>text lines, decompressed. One core, one thread: the process is pinned and the
library's own parallelism is off, so the figure compares with "1 thread" of bench_tokenizer. Both
ways of calling the library are timed, text by text and as one batch, and the faster one counts.
The token count and the checksum equal those of bench_tokenizer when both made the same ids.
"""

import argparse
import os
import time

# Read when the library starts its threads, so it must be set before the import.
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import tokenizers  # noqa: E402


def read_texts(path):
    # Only "\n" ends a line: some texts hold U+0085, which Python's splitlines takes for one.
    with open(path, encoding="utf-8", errors="replace", newline="\n") as file:
        lines = file.read().split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    return [line.split("\t", 1)[1].removesuffix("\r") for line in lines]


def checksum(encodings):
    """FNV-1a over the ids as 32-bit numbers, all texts in order."""
    value = 0xCBF29CE484222325
    for encoding in encodings:
        for token in encoding.ids:
            value = ((value ^ token) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def best_of(repeats, function):
    best, result = float("inf"), None
    for _ in range(repeats):
        result = None  # freed outside the timed part
        start = time.perf_counter()
        result = function()
        best = min(best, time.perf_counter() - start)
    return best, result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("vocabulary")
    parser.add_argument("file")
    parser.add_argument("--ours", type=float, help="MB/s of bench_tokenizer on one thread")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--checksum", action="store_true", help="a few seconds of pure Python")
    arguments = parser.parse_args()

    tokenizer = tokenizers.BertWordPieceTokenizer(arguments.vocabulary, lowercase=True)
    texts = read_texts(arguments.file)
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    print(f"tokenizers {tokenizers.__version__}: {len(texts)} texts, {megabytes:.2f} MB")

    one_by_one, _ = best_of(arguments.repeats, lambda: [tokenizer.encode(text) for text in texts])
    print(f"encode:       {one_by_one:.3f} s, {megabytes / one_by_one:.2f} MB/s")
    batch, encodings = best_of(arguments.repeats, lambda: tokenizer.encode_batch(texts))
    print(f"encode_batch: {batch:.3f} s, {megabytes / batch:.2f} MB/s")

    best = megabytes / min(one_by_one, batch)
    num_tokens = sum(len(encoding.ids) for encoding in encodings)
    print(f"1 thread: {best:.2f} MB/s; {num_tokens} tokens", end="")
    print(f", checksum {checksum(encodings):016x}" if arguments.checksum else "")
    if arguments.ours:
        print(f"ours is {arguments.ours / best:.1f} times as fast")


if __name__ == "__main__":
    main()
