#!/usr/bin/env python3
"""Fine-tunes models of random weights with Lathe and with PyTorch on equal batches and compares their losses.

    fine_tune_rival.py --lathe LATHE --data FILE.tsv --out FOLDER [--families roberta,distilbert] [--steps 200]
        [--device cpu] [--tolerance 0.02]

FILE holds label<TAB>text lines, labels 0 and 1. transformers makes each model and a byte-level tokenizer of the texts;
`lathe train` goes through the examples in an order that follows from the seed, the number of the epoch and of examples
(CounterRandom in lathe/data), which is computed here again. No dropout, AdamW with decay on matrices, gradients clipped
to a norm of 1, and the rate of every step as Lathe wrote it. Prints the largest difference of a step's losses and of the
means of 20 steps, and fails where one is above the tolerance.
"""

import argparse
import json
import pathlib
import subprocess
import sys

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers

WORD = 2**64 - 1


def mix(value):
    value = ((value ^ value >> 30) * 0xBF58476D1CE4E5B9) & WORD
    value = ((value ^ value >> 27) * 0x94D049BB133111EB) & WORD
    return value ^ value >> 31


def shuffled(count, seed, epoch):
    """The order of examples in an epoch."""
    state = mix((mix((mix(seed + 1) + 1 + 1) & WORD) + epoch + 1) & WORD)
    order = list(range(count))
    for i in range(count, 1, -1):
        usable = WORD - (WORD % i + 1) % i
        while True:
            state = (state + 0x9E3779B97F4A7C15) & WORD
            value = mix(state)
            if value <= usable:
                break
        order[i - 1], order[value % i] = order[value % i], order[i - 1]
    return order


def make_tokenizer(texts):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=4000, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return tokenizer


def make_model(family, vocabulary):
    torch.manual_seed(1)
    names = {"id2label": {0: "0", 1: "1"}, "label2id": {"0": 0, "1": 1}}
    if family == "roberta":
        return transformers.RobertaForSequenceClassification(transformers.RobertaConfig(
            vocab_size=vocabulary, hidden_size=128, num_hidden_layers=2, num_attention_heads=2, intermediate_size=512,
            max_position_embeddings=514, type_vocab_size=1, pad_token_id=1, bos_token_id=0, eos_token_id=2,
            hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, **names))
    return transformers.DistilBertForSequenceClassification(transformers.DistilBertConfig(
        vocab_size=vocabulary, dim=128, n_layers=2, n_heads=2, hidden_dim=512, max_position_embeddings=512, pad_token_id=1,
        dropout=0.0, attention_dropout=0.0, seq_classif_dropout=0.0, **names))


def train_with_pytorch(model, batches, rates, device):
    model.to(device).train()
    decayed = [one for one in model.parameters() if one.dim() >= 2]
    others = [one for one in model.parameters() if one.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}],
                                  lr=1e-3, betas=(0.9, 0.999), eps=1e-8)
    losses = []
    for (rows, labels), rate in zip(batches, rates):
        longest = max(map(len, rows))
        ids = torch.tensor([row + [1] * (longest - len(row)) for row in rows], device=device)
        mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows], device=device)
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss = model(input_ids=ids, attention_mask=mask, labels=torch.tensor(labels, device=device)).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--lathe", required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--families", default="roberta,distilbert")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rate", default="3e-4")
    parser.add_argument("--tolerance", type=float, default=0.02)
    arguments = parser.parse_args()
    transformers.utils.logging.disable_progress_bar()
    arguments.out.mkdir(parents=True, exist_ok=True)
    rows = [line.split("\t", 1) for line in arguments.data.read_text(encoding="utf-8").split("\n") if "\t" in line]
    # Short enough that nothing is cut to the model's positions.
    rows = [(label, " ".join(text.split()[:80])) for label, text in rows][:arguments.steps * arguments.batch]
    rows = [(label, text) for label, text in rows if text]
    (arguments.out / "train.tsv").write_text("".join(f"{label}\t{text}\n" for label, text in rows), encoding="utf-8")
    tokenizer = make_tokenizer([text for _, text in rows])
    ids = [tokenizer.encode(text).ids for _, text in rows]
    print(f"{len(rows)} texts, {max(map(len, ids))} tokens at most", flush=True)
    is_far = False
    for family in arguments.families.split(","):
        folder, run = arguments.out / family, arguments.out / f"{family}-run"
        model = make_model(family, tokenizer.get_vocab_size())
        model.save_pretrained(folder)
        tokenizer.save(str(folder / "tokenizer.json"))
        subprocess.run([arguments.lathe, "train", "--model", str(folder), "--data", str(arguments.out / "train.tsv"),
                        "--header", "no", "--label-column", "1", "--text-column", "2", "--objective", "classify",
                        "--batch-size", str(arguments.batch), "--epochs", "1", "--steps", str(arguments.steps), "--lr",
                        arguments.rate, "--no-dropout", "--seed", "7", "--device", arguments.device, "--no-eval", "--quiet",
                        "--force", "--out", str(run)], check=True, stdout=subprocess.DEVNULL)
        steps = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        steps = [step for step in steps if "loss" in step][:arguments.steps]
        order = shuffled(len(rows), 7, 0)
        batches = [([ids[i] for i in part], [int(rows[i][0]) for i in part])
                   for part in (order[at:at + arguments.batch] for at in range(0, len(order), arguments.batch))]
        losses = train_with_pytorch(model, batches, [step["learning_rate"] for step in steps], arguments.device)
        ours = [step["loss"] for step in steps]
        apart = [abs(a - b) for a, b in zip(ours, losses)]
        means = [abs(sum(ours[at:at + 20]) - sum(losses[at:at + 20])) / 20 for at in range(0, len(apart), 20)]
        is_far = is_far or len(apart) < arguments.steps or max(apart) > arguments.tolerance
        print(f"{family}: {len(apart)} steps, losses {ours[0]:.4f} to {ours[-1]:.4f} by Lathe, {losses[0]:.4f} to "
              f"{losses[-1]:.4f} by PyTorch; largest difference {max(apart):.1e} at step {apart.index(max(apart)) + 1}, of "
              f"means of 20 {max(means):.1e}", flush=True)
    sys.exit(1 if is_far else 0)


if __name__ == "__main__":
    main()
