"""PyTorch beside Lathe on the same training batches: BERT, AdamW, dropout, pinned cores, one run.

    python3 bench/training_rival.py --lathe bench_training --model MODEL_DIR [--tokens FILE]
        [--shapes 16x128,1x128]

MODEL_DIR may be `bert-base` or `bert-tiny`: then the weights are made up. FILE is made by `bench_inference MODEL_DIR dump:DATA:FILE:BATCHES`. Prints a line per case with each
rival's tokens a second and the ratio of Lathe's to it: PyTorch eager, in bfloat16 by autocast and by
torch.compile, all with clipping and fused AdamW; Lathe in float32. On real batches PyTorch pads each
to its longest row, once in the shuffled batches that Lathe gets and once sorted by length (which is
the fastest order, not one to train in), and useful tokens are counted. Lathe computes the last layer
for the first token of each row only, as nothing else is read by a classifier.
"""

import argparse
import json
import os
import pathlib
import tempfile

import rival_race
from rival_race import Function, attempt, made_up_ids, padded, race


def training(torch, model, batches, autocast=False):
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, weight_decay=0.01, fused=True)

    def once():
        for ids, mask, labels in batches:
            with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    return Function(once)


def main():
    parser = argparse.ArgumentParser()
    rival_race.add_arguments(parser)
    arguments = parser.parse_args()
    cores = {int(core) for core in arguments.cores.split(",")}
    rival_race.pin(cores)

    import torch

    transformers = rival_race.import_transformers()
    threads = len(cores)
    torch.set_num_threads(threads)

    def fresh():
        return rival_race.classifier(transformers, arguments.model)

    def run(case, name, tokens, contenders, rounds):
        race(name, tokens, rival_race.lathes(arguments, case, threads),
             rival_race.chosen(arguments, contenders), arguments, rounds)

    print(json.dumps({"torch": torch.__version__, "transformers": transformers.__version__,
                      "threads": torch.get_num_threads(), "cores": sorted(cores),
                      "nice": os.nice(0)}), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        model = fresh()
        rival_race.save_made_up(model, arguments, folder)
        for rows, length in rival_race.shapes(arguments):
            ids = torch.from_numpy(made_up_ids(rows, length))
            batch = [(ids, torch.ones_like(ids), torch.arange(rows) % 2)]
            contenders = {"eager": training(torch, model, batch),
                          "eager bf16": training(torch, model, batch, autocast=True)}
            if not arguments.no_compile:
                contenders["compile"] = attempt(
                    lambda batch=batch: training(torch, torch.compile(fresh()), batch))
            run(f"full:{rows}x{length}", f"full {rows}x{length}", rows * length, contenders,
                arguments.rounds)

        if arguments.tokens is None:
            return
        real = rival_race.read_batches(arguments.tokens)
        useful = sum(len(row) for rows in real for row in rows)
        contenders = {}
        for order, batches in [("shuffled", real), ("sorted", rival_race.sorted_by_length(real))]:
            batches = [padded(torch, rows) + (torch.arange(len(rows)) % 2,) for rows in batches]
            contenders[f"eager, {order}"] = training(torch, fresh(), batches)
            contenders[f"eager bf16, {order}"] = training(torch, fresh(), batches, autocast=True)
        # A round is all the batches here, and takes as long as many rounds of one.
        name = f"{pathlib.Path(arguments.tokens).name}, {len(real)} batches, useful tokens"
        run(f"packed:{arguments.tokens}", name, useful, contenders, max(1, arguments.rounds // 10))


if __name__ == "__main__":
    main()
