"""PyTorch on the batches of bench_masked_lm: how far apart are the losses?

    python3 bench/masked_lm_rival.py MODEL_DIR BATCHES.bin LOSSES.txt

MODEL_DIR is the fresh model both start from; LOSSES.txt is what bench_masked_lm printed.
"""

import sys

import numpy as np
import torch
from transformers import AutoModelForMaskedLM


def main():
    directory, batches, losses = sys.argv[1:4]
    ours = [float(line) for line in open(losses)]
    words = torch.from_numpy(np.fromfile(batches, dtype=np.int32).astype(np.int64))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = AutoModelForMaskedLM.from_pretrained(
        directory, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0).to(device).train()
    torch.backends.cuda.matmul.allow_tf32 = False
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)
    at, worst, gaps = 1, 0.0, []
    for step in range(int(words[0])):
        sequences = int(words[at])
        lengths = words[at + 1 : at + 1 + sequences]
        at += 1 + sequences
        total = int(lengths.sum())
        flat = words[at : at + total]
        at += total
        chosen = int(words[at])
        places = words[at + 1 : at + 1 + chosen]
        labels = words[at + 1 + chosen : at + 1 + 2 * chosen]
        at += 1 + 2 * chosen
        target = torch.full((total,), -100)
        target[places] = labels
        longest = int(lengths.max())
        ids = torch.zeros(sequences, longest, dtype=torch.long)
        mask = torch.zeros(sequences, longest, dtype=torch.long)
        wanted = torch.full((sequences, longest), -100)
        start = 0
        for row, length in enumerate(lengths.tolist()):
            ids[row, :length] = flat[start : start + length]
            wanted[row, :length] = target[start : start + length]
            mask[row, :length] = 1
            start += length
        loss = model(input_ids=ids.to(device), attention_mask=mask.to(device),
                     labels=wanted.to(device)).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        gap = abs(loss.item() - ours[step])
        gaps.append(gap)
        worst = max(worst, gap)
        if step % 50 == 0 or step + 1 == int(words[0]):
            print(f"step {step + 1}: PyTorch {loss.item():.4f}, Lathe {ours[step]:.4f}", flush=True)
    print(f"largest difference {worst:.4f}, mean {sum(gaps) / len(gaps):.5f} over {len(gaps)} steps")


if __name__ == "__main__":
    main()
