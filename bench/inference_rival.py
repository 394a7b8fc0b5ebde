"""PyTorch and onnxruntime beside Lathe on the same batches: BERT forward on pinned cores, in one run.

    python3 bench/inference_rival.py --lathe build/release/bench/bench_inference --model MODEL_DIR
        [--tokens FILE] [--shapes 16x128,1x128] [--cores 0,1] [--integers PACKED_DIR]

MODEL_DIR may be `bert-base` or `bert-tiny`: then the weights are made up. FILE is made by `bench_inference MODEL_DIR dump:DATA:FILE:BATCHES`. Prints a line per case with each
rival's tokens a second and the ratio of Lathe's to it: PyTorch eager, in bfloat16 by autocast, with
all of the model turned into bfloat16 (which rounds norms and residual sums, too), and by
torch.compile; onnxruntime in float and with weights and activations in int8 (dynamic quantization).
On real batches rivals pad to the longest row, once in the shuffled batches that Lathe gets and once
sorted by length; useful tokens are counted. A rival that is not installed, or cannot do it, is named
with the reason. Lathe computes the last layer for the first token of each row only, as nothing else
is read by a classifier; the rivals compute all of it, as their libraries do.
"""

import argparse
import json
import os
import pathlib
import tempfile

import rival_race
from rival_race import Function, attempt, made_up_ids, padded, race


ONNX_RIVALS = ("onnxruntime", "onnxruntime int8")


def forward(torch, model, batches, autocast=False):
    def once():
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            for ids, mask in batches:
                model(input_ids=ids, attention_mask=mask)

    return Function(once)


def export_onnx(torch, model, path):
    """Writes the model as ONNX with free batch size and length, by whichever exporter there is."""

    class Logits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, input_ids, attention_mask):
            return self.model(input_ids=input_ids, attention_mask=attention_mask).logits

    names = ["input_ids", "attention_mask"]
    sample = (torch.ones(2, 7, dtype=torch.long), torch.ones(2, 7, dtype=torch.long))
    free = {0: "rows", 1: "length"}
    common = {"input_names": names, "output_names": ["logits"], "opset_version": 18}
    try:
        torch.onnx.export(Logits().eval(), sample, path, dynamo=False,
                          dynamic_axes={name: free for name in names}, **common)
    except Exception as first:  # noqa: BLE001: versions differ in which exporter they still have
        try:
            shape = {0: torch.export.Dim("rows"), 1: torch.export.Dim("length")}
            torch.onnx.export(Logits().eval(), sample, path, dynamo=True,
                              dynamic_shapes=(shape, shape), **common)
        except Exception as second:  # noqa: BLE001
            raise RuntimeError(f"export failed: {first}; {second}") from second


class OnnxModels:
    """The model's sessions, or why there are none; `differences` is how far their logits are off."""

    def __init__(self, torch, transformers, arguments, threads, folder):
        import onnxruntime  # noqa: F401: without it there is nothing to export for

        self.sessions, self.differences = {}, {}
        model = rival_race.classifier(transformers, arguments.model,
                                      attn_implementation="eager").eval()
        path = os.path.join(folder, "model.onnx")
        exported = None if os.path.exists(path) else attempt(lambda: export_onnx(torch, model, path))
        for name in ONNX_RIVALS:
            self.sessions[name] = exported if isinstance(exported, Exception) else attempt(
                lambda name=name: self.open(torch, model, path, name, threads))

    def open(self, torch, model, path, name, threads):
        import onnxruntime

        if name.endswith("int8"):
            from onnxruntime.quantization import QuantType, quantize_dynamic

            small = path.replace(".onnx", ".int8.onnx")
            if not os.path.exists(small):
                quantize_dynamic(path, small, weight_type=QuantType.QInt8)
            path = small
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        # Other sizes than those it was exported with, and padding: what was baked in shows here.
        ids = torch.from_numpy(made_up_ids(3, 19))
        mask = torch.ones_like(ids)
        mask[1, 5:] = 0
        with torch.inference_mode():
            expected = model(input_ids=ids, attention_mask=mask).logits
        logits = session.run(["logits"], {"input_ids": ids.numpy(), "attention_mask": mask.numpy()})[0]
        self.differences[name] = float((torch.from_numpy(logits) - expected).abs().max())
        if not name.endswith("int8") and self.differences[name] > 1e-3:
            raise RuntimeError(f"logits differ from PyTorch's by {self.differences[name]:.2g}")
        return session

    def contenders(self, batches, suffix=""):
        feeds = [{"input_ids": ids.numpy(), "attention_mask": mask.numpy()} for ids, mask in batches]

        def contender(session):
            if isinstance(session, Exception):
                return session
            return Function(lambda: [session.run(["logits"], feed) for feed in feeds])

        return {name + suffix: contender(session) for name, session in self.sessions.items()}


def main():
    parser = argparse.ArgumentParser()
    rival_race.add_arguments(parser)
    parser.add_argument("--integers", help="the same model as `lathe quantize` packed it: Lathe "
                        "multiplies whole numbers too")
    parser.add_argument("--no-onnx", action="store_true", help="leave onnxruntime out")
    parser.add_argument("--onnx", help="a folder to keep onnxruntime's models of --model in, for the "
                        "next run")
    arguments = parser.parse_args()
    cores = {int(core) for core in arguments.cores.split(",")}
    rival_race.pin(cores)

    import torch

    transformers = rival_race.import_transformers()
    threads = len(cores)
    torch.set_num_threads(threads)
    model = rival_race.classifier(transformers, arguments.model).eval()
    rounded = rival_race.classifier(transformers, arguments.model).eval().to(torch.bfloat16)

    with tempfile.TemporaryDirectory() as empty:
        folder = arguments.onnx or empty
        os.makedirs(folder, exist_ok=True)
        onnx = (RuntimeError("not asked for") if arguments.no_onnx else
                attempt(lambda: OnnxModels(torch, transformers, arguments, threads, folder)))
        is_absent = isinstance(onnx, Exception)
        rival_race.save_made_up(model, arguments, empty)

        def onnx_contenders(batches, suffix=""):
            if is_absent:
                return {name + suffix: onnx for name in ONNX_RIVALS}
            return onnx.contenders(batches, suffix)

        print(json.dumps({"torch": torch.__version__, "transformers": transformers.__version__,
                          "onnxruntime": str(attempt(lambda: __import__("onnxruntime").__version__)),
                          "threads": torch.get_num_threads(), "cores": sorted(cores),
                          "nice": os.nice(0),
                          "logit_differences": {} if is_absent else onnx.differences}), flush=True)

        def run(case, name, tokens, contenders):
            race(name, tokens, rival_race.lathes(arguments, case, threads),
                 rival_race.chosen(arguments, contenders), arguments, arguments.rounds)

        for rows, length in rival_race.shapes(arguments):
            ids = torch.from_numpy(made_up_ids(rows, length))
            batch = [(ids, torch.ones_like(ids))]
            contenders = {"eager": forward(torch, model, batch),
                          "eager bf16": forward(torch, model, batch, autocast=True),
                          "eager all bf16": forward(torch, rounded, batch)}
            if not arguments.no_compile:
                contenders["compile"] = attempt(
                    lambda batch=batch: forward(torch, torch.compile(model, dynamic=None), batch))
            run(f"padded:{rows}x{length}", f"padded {rows}x{length}", rows * length,
                {**contenders, **onnx_contenders(batch)})

        if arguments.tokens is None:
            return
        real = rival_race.read_batches(arguments.tokens)
        useful = sum(len(row) for rows in real for row in rows)
        contenders = {}
        for order, batches in [("shuffled", real), ("sorted", rival_race.sorted_by_length(real))]:
            batches = [padded(torch, rows) for rows in batches]
            contenders[f"eager, {order}"] = forward(torch, model, batches)
            contenders[f"eager bf16, {order}"] = forward(torch, model, batches, autocast=True)
            contenders[f"eager all bf16, {order}"] = forward(torch, rounded, batches)
            contenders |= onnx_contenders(batches, f", {order}")
        name = f"{pathlib.Path(arguments.tokens).name}, {len(real)} batches, useful tokens"
        run(f"packed:{arguments.tokens}", name, useful, contenders)


if __name__ == "__main__":
    main()
