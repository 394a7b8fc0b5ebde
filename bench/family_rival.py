#!/usr/bin/env python3
"""Makes random models of a family with Hugging Face's transformers, for comparison.

    python3 bench/family_rival.py --family gpt2 --count 10 --out rivals
    for m in rivals/*/; do
      lathe run --model $m --inputs $m/inputs.safetensors --out $m/outputs.safetensors
    done
    python3 bench/family_rival.py --compare rivals
    for m in rivals/*/; do lathe export --model $m --out $m/exported; done
    python3 bench/family_rival.py --reopen rivals

or all of that for every family, a line each, at most --seconds and one core a family, --cores of them at once:

    python3 bench/family_rival.py --check all --lathe LATHE --count 10 --out rivals [--keep FOLDER] [--cores 4] [--seconds 60]

Each directory holds a model with random weights in a random configuration and task, the tensors to
feed it with (`inputs.safetensors`) and what transformers answers (`expected.safetensors`).
`--greedy` writes prompts of ids and their greedy continuations instead (`greedy.json`), which
`--continue rivals --lathe LATHE --devices cpu,cuda` compares with what `lathe generate` puts behind them.
`--family resnet` writes images in place of ids, and one model in three with torchvision's names of
its tensors, as a pickled file; `--family torchvision` has torchvision make and open its own ResNets.
`--compare` prints the largest difference of each and fails above --tolerance.
`--reopen` lets the library open `exported` in each directory (`lathe export`) and compares too.
`--check` puts models that differ or fail into --keep, with their configuration beside the reason.
Needs torch, transformers and safetensors, and torchvision for its own.
"""

import argparse
import json
import multiprocessing
import pathlib
import random
import shutil
import subprocess
import sys
import time
import traceback

import torch
from safetensors.torch import load_file, save_file

from family_configs import families, torchvision_resnet


def shake(model, generator):
    """Gives biases and norms values of their own: transformers starts them at zero and one."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))


TORCHVISION_NAMES = [
    (r"^resnet\.embedder\.embedder\.convolution\.", "conv1."),
    (r"^resnet\.embedder\.embedder\.normalization\.", "bn1."),
    (r"^classifier\.1\.", "fc."),
    (r"shortcut\.convolution\.", "downsample.0."),
    (r"shortcut\.normalization\.", "downsample.1."),
]


def torchvision_name(name):
    """What torchvision calls a tensor of transformers' ResNet."""
    import re

    def counted(match):
        stage, part, rest = match.groups()
        inner = re.match(r"layer\.(\d+)\.(convolution|normalization)\.", rest)
        if inner:
            kind = "conv" if inner.group(2) == "convolution" else "bn"
            rest = f"{kind}{int(inner.group(1)) + 1}." + rest[inner.end() :]
        return f"layer{int(stage) + 1}.{part}.{rest}"

    for pattern, replacement in TORCHVISION_NAMES:
        name = re.sub(pattern, replacement, name)
    return re.sub(r"^resnet\.encoder\.stages\.(\d+)\.layers\.(\d+)\.(.*)$", counted, name)


def random_model(family, index, seed):
    """A model of random sizes and weights, and what to draw the rest from."""
    rng = random.Random(f"{family}/{seed}/{index}")
    generator = torch.Generator().manual_seed(rng.randrange(2**31))
    torch.manual_seed(rng.randrange(2**31))
    config_of, classes = families()[family]
    config = config_of(rng)
    model = classes[index % len(classes)](config).eval()
    shake(model, generator)
    return rng, generator, config, model


def settle_statistics(model, generator):
    """Running means and variances of its own."""
    with torch.no_grad():
        for name, buffer in model.named_buffers():
            if name.endswith("running_mean"):
                buffer.copy_(0.5 * torch.randn(buffer.shape, generator=generator))
            if name.endswith("running_var"):
                buffer.copy_(0.5 + torch.rand(buffer.shape, generator=generator))


def make_images(family, index, out, seed):
    """The same for a family that reads images, with running statistics of its own."""
    rng, generator, config, model = random_model(family, index, seed)
    settle_statistics(model, generator)
    rows = rng.randint(1, 3)
    pixels = torch.randn((rows, config.num_channels, *config.image_size), generator=generator)
    name, expected = answer(model, {"pixel_values": pixels})
    directory = out / f"{family}-{index}-{type(model).__name__}"
    model.save_pretrained(directory)
    if index % 3 == 1:
        (directory / "model.safetensors").unlink()
        tensors = {torchvision_name(key): value for key, value in model.state_dict().items()}
        torch.save(tensors, directory / "pytorch_model.bin")
    save_file({"pixel_values": pixels}, directory / "inputs.safetensors")
    save_file({name: expected.contiguous()}, directory / "expected.safetensors")
    return directory


def make_torchvision(family, index, out, seed):
    """A ResNet of torchvision's own making, with the configuration that says the same."""
    rng = random.Random(f"{family}/{seed}/{index}")
    generator = torch.Generator().manual_seed(rng.randrange(2**31))
    torch.manual_seed(rng.randrange(2**31))
    config, model = torchvision_resnet(rng)
    model.eval()
    settle_statistics(model, generator)
    pixels = torch.randn((rng.randint(1, 3), 3, *config.image_size), generator=generator)
    with torch.no_grad():
        expected = model(pixels)
    directory = out / f"{family}-{index}-{config.layer_type}"
    config.save_pretrained(directory)
    torch.save(model.state_dict(), directory / "pytorch_model.bin")
    save_file({"pixel_values": pixels}, directory / "inputs.safetensors")
    save_file({"logits": expected}, directory / "expected.safetensors")
    return directory


def open_exported(directory, said):
    """The model of `exported` as the library opens it, and the names that it misses without our saying so, or does not know."""
    import transformers

    kind = directory.name.rsplit("-", 1)[1]
    if directory.name.startswith("torchvision"):
        config = transformers.ResNetConfig.from_pretrained(directory)
        _, model = torchvision_resnet(None, config)
        tensors = load_file(directory / "exported" / "model.safetensors")
        found = model.load_state_dict(tensors, strict=False)
        wrong = [*found.missing_keys, *found.unexpected_keys]
    else:
        model, loading = getattr(transformers, kind).from_pretrained(
            directory / "exported", output_loading_info=True, dtype=torch.float32
        )
        wrong = [*loading["missing_keys"], *loading["unexpected_keys"]]
    # Tensors that nothing reads are left out, which `lathe export` says; counters say nothing.
    wrong = [key for key in wrong if "num_batches_tracked" not in key and key not in said]
    return model.eval(), wrong


def reopened_difference(directory, said=""):
    """How far the answers of `exported` in the library are from those of the model it was made of."""
    model, wrong = open_exported(directory, said)
    if wrong:
        raise ValueError(f"missing or unexpected in what was exported: {', '.join(wrong[:4])}")
    inputs = load_file(directory / "inputs.safetensors")
    if directory.name.startswith("torchvision"):
        with torch.no_grad():
            found = model(inputs["pixel_values"])
    else:
        _, found = answer(model, inputs)
    return max(distance(found, value) for value in load_file(directory / "expected.safetensors").values())


def model_directories(out):
    return sorted(path for path in out.iterdir() if (path / "expected.safetensors").exists())


def reopen(out, tolerance):
    """Opens what `lathe export` wrote in the library and compares its answers."""
    worst = 0.0
    for directory in model_directories(out):
        difference = reopened_difference(directory)
        worst = max(worst, difference)
        print(f"{directory.name:45} {difference:.2e}")
    print(f"largest difference {worst:.2e}")
    return 0 if worst <= tolerance else 1


def text_inputs(rng, generator, config):
    rows, length = rng.randint(1, 4), rng.randint(2, 20)
    lengths = [length] + [rng.randint(1, length) for _ in range(rows - 1)]
    # Every id but that of padding, which marks where a classifier looks for the last token.
    choices = [i for i in range(config.vocab_size) if i != config.pad_token_id]
    ids = torch.full((rows, length), config.pad_token_id, dtype=torch.int64)
    mask = torch.zeros((rows, length), dtype=torch.int64)
    for row, count in enumerate(lengths):
        ids[row, :count] = torch.tensor([rng.choice(choices) for _ in range(count)])
        mask[row, :count] = 1
    return {"input_ids": ids, "attention_mask": mask}


def image_inputs(rng, generator, config):
    shape = (rng.randint(1, 4), config.num_channels, config.image_size, config.image_size)
    return {"pixel_values": torch.randn(shape, generator=generator)}


def without_padding(value, inputs):
    """What stands at padding means nothing."""
    if value.dim() == 3 and "attention_mask" in inputs:
        return value.masked_fill(inputs["attention_mask"][:, :, None] == 0, 0)
    return value


def answer(model, inputs):
    with torch.no_grad():
        result = model(**inputs)
    name = "logits" if "logits" in result else "last_hidden_state"
    return name, without_padding(result[name], inputs)


def make(family, index, out, seed):
    rng, generator, config, model = random_model(family, index, seed)
    stored = torch.bfloat16 if rng.random() < 0.3 else torch.float32
    with torch.no_grad():  # answers in float, from what the file will hold; buffers are not stored
        for parameter in model.parameters():
            parameter.copy_(parameter.to(stored))
    inputs = (image_inputs if family == "vit" else text_inputs)(rng, generator, config)
    name, expected = answer(model, inputs)
    directory = out / f"{family}-{index}-{type(model).__name__}"
    shards = {"max_shard_size": "24KB"} if rng.random() < 0.3 else {}
    model.to(stored).save_pretrained(directory, **shards)
    save_file(inputs, directory / "inputs.safetensors")
    save_file({name: expected.contiguous()}, directory / "expected.safetensors")
    return directory


def continuations(family, index, out, seed, num_prompts=5, num_tokens=64):
    """Writes a causal model and the tokens that greedy decoding appends to prompts of ids."""
    rng = random.Random(f"greedy/{family}/{seed}/{index}")
    generator = torch.Generator().manual_seed(rng.randrange(2**31))
    torch.manual_seed(rng.randrange(2**31))
    config_of, classes = families()[family]
    causal = next(c for c in classes if "CausalLM" in c.__name__ or "LMHead" in c.__name__)
    config = config_of(rng)
    setattr(config, "n_positions" if family == "gpt2" else "max_position_embeddings", 128)
    model = causal(config).eval()
    shake(model, generator)
    model.generation_config.eos_token_id = None
    rows = []
    for _ in range(num_prompts):
        prompt = [rng.randrange(config.vocab_size) for _ in range(rng.randint(1, 24))]
        with torch.no_grad():
            ids = torch.tensor([prompt])
            result = model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=num_tokens,
                do_sample=False,
                eos_token_id=None,
                return_dict_in_generate=True,
                output_logits=True,
            )
        best = torch.stack(result.logits)[:, 0].topk(2).values
        rows.append(
            {
                "prompt": prompt,
                "tokens": result.sequences[0, len(prompt) :].tolist(),
                "smallest_lead": (best[:, 0] - best[:, 1]).min().item(),
            }
        )
    directory = out / f"greedy-{family}-{index}"
    model.save_pretrained(directory)
    (directory / "greedy.json").write_text(json.dumps(rows))
    return directory


def distance(found, expected):
    """The largest difference; where numbers are larger than 1, of the largest of them, for floats are no finer."""
    return ((found - expected).abs().max() / expected.abs().max().clamp(min=1)).item()


def difference_of_outputs(directory):
    inputs = load_file(directory / "inputs.safetensors")
    outputs = load_file(directory / "outputs.safetensors")
    return max(distance(without_padding(outputs[name], inputs), value)
               for name, value in load_file(directory / "expected.safetensors").items())


def compare(out, tolerance):
    worst = 0.0
    for directory in model_directories(out):
        difference = difference_of_outputs(directory)
        worst = max(worst, difference)
        print(f"{directory.name:50} {difference:.2e}")
    print(f"largest difference {worst:.2e}")
    return 0 if worst <= tolerance else 1


def writer_of(family):
    return {"resnet": make_images, "torchvision": make_torchvision}.get(family, make)


def check_model(family, index, arguments):
    """One model there and back: how far each way is off, or why there is no telling."""

    def call(*command):
        done = subprocess.run([arguments.lathe, *map(str, command)], capture_output=True, text=True, timeout=30)
        if done.returncode:
            raise ValueError(f"{command[0]}: {(done.stderr or done.stdout).strip()[-500:]}")
        return done.stderr

    record = {"model": f"{family}-{index}"}
    try:
        directory = writer_of(family)(family, index, arguments.out, arguments.seed)
        record["model"] = directory.name
        call("run", "--model", directory, "--inputs", directory / "inputs.safetensors", "--out",
             directory / "outputs.safetensors")
        record["difference"] = difference_of_outputs(directory)
        said = call("export", "--model", directory, "--out", directory / "exported",
                    *(["--format", "torchvision"] if family == "torchvision" else []))
        record["reopened"] = reopened_difference(directory, said)
    except Exception as wrong:  # the other models are still to come
        is_ours = isinstance(wrong, ValueError)
        record["failed"] = str(wrong) if is_ours else traceback.format_exc(limit=-2).strip()[-700:]
    return record


def check_family(family, arguments):
    """In a process of its own. A line a model, so that what is done counts though the rest takes too long."""
    torch.set_num_threads(1)
    with (arguments.out / f"{family}.jsonl").open("w", buffering=1) as log:
        for index in range(arguments.count):
            log.write(json.dumps(check_model(family, index, arguments)) + "\n")


def keep_model(directory, keep):
    """Copies a model that is small enough to be sent."""
    size = sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())
    if keep and size < 2_000_000:
        shutil.copytree(directory, keep / directory.name, dirs_exist_ok=True)


def report_family(family, arguments, seconds, is_late):
    """Prints a family's line and those of its failures; returns whether all is well."""
    log = arguments.out / f"{family}.jsonl"
    records = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def worst(key):
        found = [record[key] for record in records if key in record]
        return f"{max(found):.1e} of {len(found)}" if found else "nothing compared"

    bad = [record for record in records if "failed" in record or not
           max(record["difference"], record["reopened"]) <= arguments.tolerance]
    late = f", stopped after {arguments.seconds} s" if is_late else ""
    print(f"{family:11} {len(records) - len(bad)} of {arguments.count} equal; largest difference {worst('difference')}, "
          f"of ours opened there {worst('reopened')}; {seconds:.0f} s{late}", flush=True)
    for record in bad:
        directory = arguments.out / record["model"]
        reason = record.get("failed") or f"{record['difference']:.2e} there, {record['reopened']:.2e} back"
        config = directory / "config.json"
        said = json.dumps(json.loads(config.read_text())) if config.exists() else "no configuration"
        print(f"  {record['model']}: {reason}\n    {said[:1500]}", flush=True)
        if config.exists():
            keep_model(directory, arguments.keep)
    return not bad and len(records) == arguments.count


def check_all(names, arguments):
    """Every family in a process of its own, some at once; returns how many are not equal throughout."""
    import transformers  # once, for all processes

    transformers.utils.logging.disable_progress_bar()
    arguments.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    context = multiprocessing.get_context("fork")
    waiting, running, failed = list(names), {}, 0
    while waiting or running:
        while waiting and len(running) < arguments.cores:
            family = waiting.pop(0)
            running[family] = (context.Process(target=check_family, args=(family, arguments)), time.monotonic())
            running[family][0].start()
        for family, (process, start) in list(running.items()):
            seconds = time.monotonic() - start
            if process.is_alive() and seconds <= arguments.seconds:
                continue
            is_late = process.is_alive()
            if is_late:
                process.kill()
            process.join()
            del running[family]
            failed += not report_family(family, arguments, seconds, is_late)
        time.sleep(0.05)
    return failed


def compare_continuations(out, lathe, devices):
    """Counts the prompts behind which our program puts other tokens, on each device."""
    failed = 0
    for directory in sorted(path for path in out.iterdir() if (path / "greedy.json").exists()):
        rows = json.loads((directory / "greedy.json").read_text())
        for device in devices:
            command = [lathe, "generate", "--model", str(directory), "--json", "--ignore-end", "--device", device,
                       "--max-new-tokens", str(len(rows[0]["tokens"]))]
            for row in rows:
                command += ["--prompt-ids", ",".join(map(str, row["prompt"]))]
            done = subprocess.run(command, capture_output=True, text=True)
            ours = [json.loads(line)["tokens"] for line in done.stdout.splitlines()]
            equal = sum(mine == row["tokens"] for mine, row in zip(ours, rows))
            failed += len(rows) - equal
            print(f"{directory.name:24} {device:5} {equal} of {len(rows)} prompts equal, {len(rows[0]['tokens'])} tokens "
                  f"each, smallest lead {min(row['smallest_lead'] for row in rows):.1e} {done.stderr.strip()[-200:]}",
                  flush=True)
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--family", default="gpt2")
    parser.add_argument("--greedy", action="store_true", help="write continuations of prompts")
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("rivals"))
    parser.add_argument("--check", help="families between commas, or all: make, run, compare, export and reopen")
    parser.add_argument("--cores", type=int, default=4, help="families at once, each on one")
    parser.add_argument("--seconds", type=int, default=60, help="for one family")
    parser.add_argument("--keep", type=pathlib.Path, help="where models go that differ")
    parser.add_argument("--compare", type=pathlib.Path, help="directory of models that were run")
    parser.add_argument("--continue", dest="continued", type=pathlib.Path, help="directory of --greedy models")
    parser.add_argument("--lathe", default="lathe")
    parser.add_argument("--devices", default="cpu,cuda")
    parser.add_argument("--reopen", type=pathlib.Path, help="directory of models that were exported")
    parser.add_argument("--tolerance", type=float, default=1e-4)
    arguments = parser.parse_args()
    if arguments.continued:
        sys.exit(compare_continuations(arguments.continued, arguments.lathe, arguments.devices.split(",")))
    if arguments.compare:
        sys.exit(compare(arguments.compare, arguments.tolerance))
    if arguments.reopen:
        sys.exit(reopen(arguments.reopen, arguments.tolerance))
    if arguments.check:
        everything = [*families(), "torchvision"]
        names = everything if arguments.check == "all" else arguments.check.split(",")
        sys.exit(1 if check_all(names, arguments) else 0)
    write = continuations if arguments.greedy else writer_of(arguments.family)
    for index in range(arguments.count):
        print(write(arguments.family, index, arguments.out, arguments.seed))


if __name__ == "__main__":
    main()
