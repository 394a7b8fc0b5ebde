#!/usr/bin/env python3
"""Trains tokenizers of many kinds with Hugging Face tokenizers and writes its ids of varied lines.

    tokenizer_kinds_rival.py TEXT --out FOLDER [--lines N] [--kinds a,b] [--charsmap FILE] [--time FILE.tsv] [--lathe LATHE]
        [--bench BENCH_TOKENIZER]

TEXT is what they learn from. FOLDER gets lines.txt and, for each kind, KIND/tokenizer.json and KIND/ids.jsonl. To
compare:

    for kind in FOLDER/*/; do lathe tokenize --tokenizer $kind FOLDER/lines.txt --json | cmp - $kind/ids.jsonl; done

No output means that all ids are equal. --charsmap names the table of replacements of a SentencePiece model
(`precompiled_charsmap` in its normalizer_spec), for the kinds that need one. --time prints the speed of the library on one
core for the texts of FILE (label<TAB>text), to compare with `bench_tokenizer FOLDER/KIND FILE.tsv`. --lathe and --bench
do both here, kind by kind on the same core: the lines whose ids differ, and how many times as fast Lathe is.
"""

import argparse
import json
import os
import pathlib
import random
import re
import subprocess
import time

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("text")
parser.add_argument("--out", type=pathlib.Path, required=True)
parser.add_argument("--lines", type=int, default=10_000)
parser.add_argument("--charsmap", type=pathlib.Path)
parser.add_argument("--time", metavar="FILE.tsv")
parser.add_argument("--kinds", help="some of them, separated by commas")
parser.add_argument("--lathe", help="the program, to compare the ids of all lines")
parser.add_argument("--bench", help="bench_tokenizer, to time it with --time on the same core")
arguments = parser.parse_args()

# Read when the library starts its threads, so it must be set before the import.
if arguments.time:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    os.environ["RAYON_NUM_THREADS"] = "1"
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:1]))

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers  # noqa: E402
from tokenizers import processors, trainers  # noqa: E402

from tokenizer_lines import make_line  # noqa: E402

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
KINDS = {}


def kind(make):
    KINDS[make.__name__] = make
    return make


def around(tokenizer, begin, end):
    ids = [(token, tokenizer.token_to_id(token)) for token in (begin, end)]
    return processors.TemplateProcessing(single=f"{begin} $A {end}", pair=f"{begin} $A {end} $B:1 {end}:1",
                                         special_tokens=ids)


def byte_level(texts, pattern=None, **options):
    tokenizer = Tokenizer(models.BPE(**options))
    steps = [pre_tokenizers.Split(Regex(pattern), "isolated")] if pattern else []
    steps.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pattern is None))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps) if pattern else steps[0]
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=4000, special_tokens=["<s>", "</s>", "<|endoftext|>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def sentencepiece_bpe(texts):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=4000, limit_alphabet=700, special_tokens=["<unk>", "<s>", "</s>", *BYTES], show_progress=False))
    description = json.loads(tokenizer.to_str())
    description["added_tokens"] = description["added_tokens"][:3]  # bytes are no special tokens
    description["pre_tokenizer"] = None
    tokenizer = Tokenizer.from_str(json.dumps(description))
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)])
    return tokenizer


def unigram(texts, normalizer):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.train_from_iterator(texts, trainers.UnigramTrainer(
        vocab_size=2500, unk_token="<unk>", special_tokens=["<unk>", "<s>", "</s>", "<mask>"], show_progress=False))
    tokenizer.post_processor = around(tokenizer, "<s>", "</s>")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    return tokenizer


@kind
def wordpiece(texts):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(texts, trainers.WordPieceTrainer(vocab_size=3000, special_tokens=special,
                                                                   show_progress=False))
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tokenizer


@kind
def wordpiece_parts(texts):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents(),
                                                 normalizers.Strip()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(True)])
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(texts, trainers.WordPieceTrainer(vocab_size=3000, special_tokens=special,
                                                                   show_progress=False))
    tokenizer.post_processor = around(tokenizer, "[CLS]", "[SEP]")
    return tokenizer


@kind
def roberta(texts):
    tokenizer = byte_level(texts)
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False)])
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0), add_prefix_space=False)
    return tokenizer


@kind
def llama3(texts):
    tokenizer = byte_level(texts, LLAMA3, ignore_merges=True)
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False),
                                                    around(tokenizer, "<s>", "</s>")])
    return tokenizer


@kind
def qwen2(texts):
    tokenizer = byte_level(texts, LLAMA3.replace("{1,3}", ""))
    tokenizer.normalizer = normalizers.NFC()
    return tokenizer


@kind
def llama2(texts):
    tokenizer = sentencepiece_bpe(texts)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.post_processor = around(tokenizer, "<s>", "</s>")
    return tokenizer


@kind
def mistral(texts):
    tokenizer = sentencepiece_bpe(texts)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    return tokenizer


@kind
def gemma(texts):
    tokenizer = sentencepiece_bpe(texts)
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    return tokenizer


@kind
def unigram_nfkc(texts):
    return unigram(texts, normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(),
                                                normalizers.Replace(Regex(" {2,}"), " ")]))


@kind
def unigram_precompiled(texts):
    tokenizer = unigram(texts, normalizers.Precompiled(arguments.charsmap.read_bytes()))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(),
                                                       pre_tokenizers.Metaspace(prepend_scheme="always")])
    return tokenizer


@kind
def unigram_albert(texts):
    return unigram(texts, normalizers.Sequence([
        normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD(), normalizers.StripAccents(),
        normalizers.Lowercase(), normalizers.Precompiled(arguments.charsmap.read_bytes()),
        normalizers.Replace(Regex(" {2,}"), " ")]))


@kind
def suffixed(texts):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Digits(),
                                                       pre_tokenizers.Punctuation("contiguous")])
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=3000, limit_alphabet=600, show_progress=False,
                                                             special_tokens=["<unk>"], end_of_word_suffix="</w>"))
    return tokenizer


def seconds(tokenizer, texts):
    encode = getattr(tokenizer, "encode_batch_fast", tokenizer.encode_batch)
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        encode(texts)
        best = min(best, time.perf_counter() - start)
    return best


def differing_lines(folder, ids):
    """Lines whose ids are others by our program; its complaint if it refuses the tokenizer."""
    done = subprocess.run([arguments.lathe, "tokenize", "--tokenizer", str(folder), str(arguments.out / "lines.txt"),
                           "--json"], capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip()
    ours = [json.loads(line) for line in done.stdout.splitlines()]
    return [i for i in range(max(len(ids), len(ours))) if ids[i:i + 1] != ours[i:i + 1]]


def our_speed(folder):
    done = subprocess.run([arguments.bench, str(folder), arguments.time, "3"], capture_output=True, text=True)
    found = re.search(r"^1 thread: .*?([0-9.]+) MB/s", done.stdout, re.M)
    return float(found[1]) if found else float("nan")


def main():
    with open(arguments.text, encoding="utf-8", errors="replace") as file:
        texts = file.read().split("\n")
    words = [word for text in texts[:20_000] for word in text.split()]
    rng = random.Random(1)
    lines = [make_line(rng, words) for _ in range(arguments.lines)]
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "lines.txt").write_bytes("".join(line + "\n" for line in lines).encode())
    timed = []
    if arguments.time:
        with open(arguments.time, encoding="utf-8", errors="replace", newline="\n") as file:
            timed = [line.split("\t", 1)[1] for line in file.read().split("\n") if "\t" in line]
    for name, make in KINDS.items():
        if "charsmap" in make.__code__.co_names and not arguments.charsmap:
            continue
        if arguments.kinds and name not in arguments.kinds.split(","):
            continue
        folder = arguments.out / name
        folder.mkdir(exist_ok=True)
        make(texts).save(str(folder / "tokenizer.json"))
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        ids = [encoding.ids for encoding in tokenizer.encode_batch(lines)]
        (folder / "ids.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in ids))
        print(f"{name}: {tokenizer.get_vocab_size()} tokens, {sum(map(len, ids))} ids", end="")
        size = sum(len(text.encode()) for text in timed) / 1e6
        theirs = size / seconds(tokenizer, timed) if timed else 0
        if timed:
            print(f", {theirs:.2f} MB/s", end="")
        if timed and arguments.bench:
            ours = our_speed(folder)
            print(f", Lathe {ours:.2f} MB/s, {ours / theirs:.1f} times as fast", end="")
        if arguments.lathe:
            differ = differing_lines(folder, ids)
            is_list = isinstance(differ, list)
            print(f", {len(differ)} of {len(ids)} lines differ {differ[:12]}" if is_list else f", {differ}", end="")
            for line in differ[:12] if is_list else []:
                print(f"\n  {line}: {ascii(lines[line])}", end="")
        print(flush=True)


if __name__ == "__main__":
    main()
