#!/usr/bin/env python3
"""Tokens a second of Lathe, transformers and llama.cpp with one Llama of random weights.

    generate_rival.py --lathe LATHE --bench BENCH_GENERATE --out FOLDER [--cores 2,16] [--cuda]
        [--ways eager:float32,compiled:float32,compiled:bfloat16] [--compile-limit SECONDS] [--compile-for THREADS]
        [--caches float32,bf16,int:8] [--blocks N] [--llama-bench PROGRAM --gguf FOLDER] [--until FILE]

The model has 110 million weights (hidden 768, 12 layers, 12 heads, vocabulary 32,000, tied) unless --layers and --hidden
say otherwise. Everybody reads a prompt of 128 tokens and adds 128 to it, one sequence, greedily; what counts is the
time of a token behind the prompt, the best of the rounds. Contenders run one after the other, each on the same cores
(N from --first-core on, by affinity, with as many threads); --blocks goes through Lathe and llama.cpp so often, for
others may use the machine, too. --caches are how Lathe keeps keys and values: llama.cpp keeps them in 16 bits. transformers runs eagerly and compiled with a static cache, in float and
in bfloat16; what is not ready within its limit is said to be so, and where it was. Compiling takes minutes on a CPU:
--compile-for compiles for so many threads on fewer cores and times nothing, and with TORCHINDUCTOR_CACHE_DIR set to the
same folder a later call finds the result. With --until a compiled contender that is ready waits for a file before it is
timed: it can get ready beside other work, and be timed without. --gguf is llama.cpp's gguf-py, which rounds the weights to Q8_0 and Q4_0
and writes the files that llama-bench reads, built from its source with the machine's instruction set. Prints one JSON
line a contender.
"""

import argparse
import faulthandler
import json
import os
import pathlib
import subprocess
import sys
import time

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("--lathe", required=True)
parser.add_argument("--bench", required=True)
parser.add_argument("--out", type=pathlib.Path, required=True)
parser.add_argument("--cores", default="2,16")
parser.add_argument("--first-core", type=int, default=0)
parser.add_argument("--cuda", action="store_true")
parser.add_argument("--ways", default="eager:float32,compiled:float32,compiled:bfloat16",
                    help="of transformers; empty for none")
parser.add_argument("--compile-for", type=int, help="threads to compile for, without timing")
parser.add_argument("--until", type=pathlib.Path, help="file that a compiled contender waits for when it is ready")
parser.add_argument("--prompt", type=int, default=128)
parser.add_argument("--new", type=int, default=128)
parser.add_argument("--hidden", type=int, default=768)
parser.add_argument("--layers", type=int, default=12)
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--limit", type=int, default=90, help="seconds for one contender")
parser.add_argument("--compile-limit", type=int, default=180, help="the same of one that compiles first")
parser.add_argument("--no-lathe", action="store_true")
parser.add_argument("--caches", default="float32")
parser.add_argument("--blocks", type=int, default=1)
parser.add_argument("--weights", default="float,int8,int4,int4-short")
parser.add_argument("--llama-bench")
parser.add_argument("--gguf")
parser.add_argument("--worker", help="(the script calls itself: eager or compiled, the device and the dtype)")
arguments = parser.parse_args()
MODEL = arguments.out / "float"


def say(line):
    print(json.dumps(line), flush=True)


def make_model():
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(hidden_size=arguments.hidden, num_hidden_layers=arguments.layers,
                         num_attention_heads=arguments.hidden // 64, num_key_value_heads=arguments.hidden // 64,
                         intermediate_size=arguments.hidden * 8 // 3, vocab_size=32000, max_position_embeddings=512,
                         tie_word_embeddings=True, bos_token_id=1, eos_token_id=2, pad_token_id=None)
    model = LlamaForCausalLM(config)
    model.save_pretrained(MODEL)
    say({"model": str(MODEL), "parameters": sum(one.numel() for one in model.parameters())})


def worker(way, device, dtype):
    """One contender of transformers: the time of a token behind the prompt."""
    faulthandler.dump_traceback_later(arguments.compile_limit - 4)
    import torch
    from transformers import AutoModelForCausalLM, StaticCache

    torch.set_num_threads(arguments.compile_for or len(os.sched_getaffinity(0)))
    model = AutoModelForCausalLM.from_pretrained(MODEL, dtype=getattr(torch, dtype)).to(device).eval()
    prompt = torch.tensor([[i * 7919 % 32000 for i in range(arguments.prompt)]], device=device)
    length = arguments.prompt + arguments.new
    step = model
    if way == "compiled":
        step = torch.compile(model, fullgraph=True, mode="reduce-overhead" if device == "cuda" else "default")
    positions = torch.arange(length, device=device)
    kept = None

    def cache():
        nonlocal kept
        if way == "eager":
            return None
        if kept is None:
            kept = StaticCache(config=model.config, max_cache_len=length)
        kept.reset()
        return kept

    def run(count):
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        past, chosen = cache(), []
        at = positions[:arguments.prompt]
        result = model(prompt, past_key_values=past, cache_position=at, position_ids=at[None], use_cache=True,
                       logits_to_keep=1)
        past = result.past_key_values
        token = result.logits[:, -1].argmax(-1, keepdim=True)
        chosen.append(token)
        for i in range(1, count):
            at = positions[arguments.prompt + i - 1:arguments.prompt + i]
            if way == "compiled" and device == "cuda":
                torch.compiler.cudagraph_mark_step_begin()
            result = step(token, past_key_values=past, cache_position=at, position_ids=at[None], use_cache=True)
            token = result.logits[:, -1].argmax(-1, keepdim=True)
            chosen.append(token.clone())
        torch.cat(chosen, 1).tolist()
        return time.perf_counter() - start

    with torch.inference_mode():
        start = time.perf_counter()
        run(4)
        ready = time.perf_counter() - start
        if arguments.compile_for:
            say({"who": f"transformers {way} {dtype}", "device": device, "compiled_for": torch.get_num_threads(),
                 "seconds_until_ready": round(ready, 1)})
            return
        while arguments.until and way == "compiled" and not arguments.until.exists():
            time.sleep(0.5)
        prefill = min(run(1) for _ in range(arguments.rounds))
        whole = min(run(arguments.new) for _ in range(arguments.rounds))
    decode = (whole - prefill) / (arguments.new - 1)
    say({"who": f"transformers {way} {dtype}", "device": device, "threads": torch.get_num_threads(),
         "prompt_tokens_per_second": round(arguments.prompt / prefill), "tokens_per_second": round(1 / decode, 1),
         "milliseconds_per_token": round(1e3 * decode, 3), "seconds_until_ready": round(ready, 1)})


def call(command, cores=None, who=None, limit=arguments.limit):
    """Runs a contender on its cores and gives what it printed, or says that it failed."""
    if cores:
        first = arguments.first_core
        command = ["taskset", "-c", f"{first}-{first + cores - 1}", *command]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired as late:
        said = (late.stderr or b"").decode(errors="replace")
        say({"who": who, "threads": cores, "failed": f"not ready within {limit} s", "said": said[-600:]})
        return None
    if done.returncode:
        say({"who": who, "threads": cores, "failed": f"{done.returncode}: {(done.stderr or done.stdout)[-600:]}"})
        return None
    return done.stdout


def ask_transformers(way, device, dtype, cores=None):
    printed = call([sys.executable, *sys.argv, "--worker", f"{way}:{device}:{dtype}"], cores,
                   f"transformers {way} {dtype} {device}",
                   arguments.compile_limit if way == "compiled" else arguments.limit)
    if printed:
        print(printed.strip().splitlines()[-1], flush=True)


def ask_lathe(weights, cache, device, cores=None):
    command = [arguments.bench, str(arguments.out / weights), "--device", device, "--prompt", str(arguments.prompt),
               "--new", str(arguments.new), "--rounds", str(arguments.rounds), "--cache", cache]
    printed = call(command + (["--threads", str(cores)] if cores else []), cores,
                   f"lathe {weights} {device}, cache {cache}")
    if printed:
        say({"who": f"lathe {weights}", **json.loads(printed)})


def write_gguf(kind):
    """The model as llama.cpp reads it: its rows of queries and keys are turned for its way of rotating them."""
    sys.path.insert(0, arguments.gguf)
    import gguf
    import numpy as np

    config = json.loads((MODEL / "config.json").read_text())
    vocabulary, heads = config["vocab_size"], config["num_attention_heads"]
    writer = gguf.GGUFWriter(arguments.out / f"{kind}.gguf", "llama")
    rounded = gguf.GGMLQuantizationType[kind.upper()]
    writer.add_context_length(512)
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_dimension_count(config["hidden_size"] // heads)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(vocabulary)
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    tokens = [b"<unk>", b"<s>", b"</s>"] + [b"<0x%02X>" % i for i in range(256)]
    tokens += [b"t%d" % i for i in range(len(tokens), vocabulary)]
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types([2, 3, 3] + [6] * 256 + [1] * (vocabulary - 259))
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_file_type(gguf.LlamaFileType[f"MOSTLY_{kind.upper()}"])
    names = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
             "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
             "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}
    whole = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}
    stored = np.memmap(MODEL / "model.safetensors", np.uint8, "r")
    begin = 8 + int.from_bytes(bytes(stored[:8]), "little")
    for name, value in json.loads(bytes(stored[8:begin])).items():
        if name == "__metadata__":
            continue
        first, last = value["data_offsets"]
        array = stored[begin + first:begin + last].view(np.float32).reshape(value["shape"])
        if name.startswith("model.layers."):
            layer, part = name.removeprefix("model.layers.").removesuffix(".weight").split(".", 1)
            name = f"blk.{layer}.{names[part]}.weight"
            if names[part] in ("attn_q", "attn_k"):
                array = array.reshape(heads, 2, -1, array.shape[1]).swapaxes(1, 2).reshape(array.shape)
        elif name in whole:
            name = whole[name]
        else:
            continue  # a head that is the table of words
        if array.ndim == 1:
            writer.add_tensor(name, np.array(array))
        else:
            writer.add_tensor(name, gguf.quants.quantize(np.ascontiguousarray(array), rounded), raw_dtype=rounded)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def ask_llama_cpp(kind, cores):
    """Tokens behind the prompt; where it dies of that (of AMX, on some machines), behind nothing, which is less to do."""
    for depth in (arguments.prompt, 0):
        printed = call([arguments.llama_bench, "-m", str(arguments.out / f"{kind}.gguf"), "-p", "0", "-n",
                        str(arguments.new), "-d", str(depth), "-t", str(cores), "-r", str(arguments.rounds), "-o", "json"],
                       cores, f"llama.cpp {kind} behind {depth}")
        for one in json.loads(printed) if printed else ():
            best = 1e9 * arguments.new / min(one["samples_ns"])
            say({"who": f"llama.cpp {kind}", "device": "cpu", "threads": cores, "prompt": depth,
                 "tokens_per_second": round(best, 1), "mean": round(one["avg_ts"], 1), "model_bytes": one["model_size"]})
        if printed:
            return


if arguments.worker:
    worker(*arguments.worker.split(":"))
    sys.exit()
arguments.out.mkdir(parents=True, exist_ok=True)
if not MODEL.exists():
    make_model()
KINDS = {"int8": "int:8,channel", "int4": "int:4,group=32", "int4-short": "int:4,group=32,short"}
for name, weights in KINDS.items():
    if arguments.no_lathe or (arguments.out / name).exists():
        continue
    call([arguments.lathe, "quantize", "--model", str(MODEL), "--task", "causal-lm", "--weights", weights, "--embeddings",
          weights, "--weight-range", "minmax", "--no-masters", "--out", str(arguments.out / name)], who=f"lathe quantize {name}")
files = []
for kind in ("q8_0", "q4_0") if arguments.llama_bench else ():
    try:
        write_gguf(kind)
        files.append(kind)
    except Exception as wrong:  # the others still run
        say({"who": f"llama.cpp {kind}", "failed": repr(wrong)})
WAYS = [one.split(":") for one in arguments.ways.split(",") if one]
OURS = [] if arguments.no_lathe else [(weights, cache) for weights in arguments.weights.split(",")
                                      for cache in arguments.caches.split(",")]
CORES = [int(cores) for cores in arguments.cores.split(",") if cores]
if arguments.cuda:
    for weights, cache in OURS:
        ask_lathe(weights, cache, "cuda")
for cores in CORES:
    for _ in range(arguments.blocks):
        for weights, cache in OURS:
            ask_lathe(weights, cache, "cpu", cores)
        for kind in files:
            ask_llama_cpp(kind, cores)
if arguments.cuda:
    for way, dtype in WAYS:
        ask_transformers(way, "cuda", dtype)
for cores in CORES:
    for way, dtype in WAYS:
        ask_transformers(way, "cpu", dtype, cores)
