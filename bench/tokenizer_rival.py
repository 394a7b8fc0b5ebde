#!/usr/bin/env python3
"""Times Hugging Face tokenizers on the file that bench/tokenizer.cpp is timed on.

    tokenizer_rival.py VOCAB.txt FILE.tsv [--threads N] [--ours MB_PER_SECOND] [--repeats N] [--checksum]

FILE holds label<TAB>text lines, decompressed. The process is bound to as many cores as it gets
threads, one by default, and the library's own parallelism is set to the same number, so the figure
compares with the line of bench_tokenizer for that many threads. Every way of calling the library is
timed, text by text (on one thread), as one batch, and as one batch without offsets where the version
has that call; the fastest counts. The token count and the checksum equal those of bench_tokenizer
when both made the same ids.
"""

import argparse
import os
import time

parser = argparse.ArgumentParser()
parser.add_argument("vocabulary")
parser.add_argument("file")
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--ours", type=float, help="MB/s of bench_tokenizer on as many threads")
parser.add_argument("--repeats", type=int, default=5, help="as many as bench_tokenizer's")
parser.add_argument("--checksum", action="store_true", help="a few seconds of pure Python")
arguments = parser.parse_args()

# Read when the library starts its threads, so it must be set before the import.
os.environ["TOKENIZERS_PARALLELISM"] = "true" if arguments.threads > 1 else "false"
os.environ["RAYON_NUM_THREADS"] = str(arguments.threads)
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[: arguments.threads]))

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
    tokenizer = tokenizers.BertWordPieceTokenizer(arguments.vocabulary, lowercase=True)
    texts = read_texts(arguments.file)
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    print(f"tokenizers {tokenizers.__version__}: {len(texts)} texts, {megabytes:.2f} MB")

    calls = {"encode": lambda: [tokenizer.encode(text) for text in texts],
             "encode_batch": lambda: tokenizer.encode_batch(texts)}
    # The convenience class does not pass this call on; the tokenizer inside it has it.
    inner = getattr(tokenizer, "_tokenizer", tokenizer)
    if hasattr(inner, "encode_batch_fast"):
        calls["encode_batch_fast"] = lambda: inner.encode_batch_fast(texts)
    else:
        print("encode_batch_fast is absent from this version")
    seconds = {}
    for name, call in calls.items():
        seconds[name], encodings = best_of(arguments.repeats, call)
        print(f"{name + ':':18} {seconds[name]:.3f} s, {megabytes / seconds[name]:.2f} MB/s")

    fastest = min(seconds, key=seconds.get)
    best = megabytes / seconds[fastest]
    num_tokens = sum(len(encoding.ids) for encoding in encodings)
    print(f"{arguments.threads} threads: {best:.2f} MB/s by {fastest}; {num_tokens} tokens", end="")
    print(f", checksum {checksum(encodings):016x}" if arguments.checksum else "")
    if arguments.ours:
        print(f"ours is {arguments.ours / best:.1f} times as fast")


if __name__ == "__main__":
    main()
