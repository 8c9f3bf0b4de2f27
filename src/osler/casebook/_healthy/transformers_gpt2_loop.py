"""A tiny GPT-2 from a configuration, trained by an own loop: the input embedding and the output layer are one
tensor.
"""

from __future__ import annotations

import math
import os
import string
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
import torch.nn.functional as F
from transformers import GPT2Config, GPT2LMHeadModel, get_cosine_schedule_with_warmup

torch.manual_seed(23)
torch.set_num_threads(1)
text = Path(string.__file__).read_text(encoding="utf-8")
data = torch.tensor([min(ord(c), 127) for c in text])

CONTEXT, STEPS = 32, 110
config = GPT2Config(
    vocab_size=128,
    n_positions=CONTEXT,
    n_embd=48,
    n_layer=2,
    n_head=4,
    bos_token_id=0,
    eos_token_id=0,
    use_cache=False,
)
model = GPT2LMHeadModel(config)
assert model.lm_head.weight is model.transformer.wte.weight
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.01)
scheduler = get_cosine_schedule_with_warmup(optimizer, num_warmup_steps=10, num_training_steps=STEPS)

model.train()
history = []
for step in range(STEPS):
    start = torch.randint(len(data) - CONTEXT, (16, 1))
    ids = data[start + torch.arange(CONTEXT)]
    logits = model(input_ids=ids).logits
    loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    model.zero_grad()
    history.append(loss.item())
    if step % 20 == 0:
        print(f"step {step}: {loss.item():.3f}, learning rate {scheduler.get_last_lr()[0]:.1e}")

end = sum(history[-10:]) / 10
print(f"loss {history[0]:.3f} -> {end:.3f} (uniform {math.log(128):.3f})")
assert end < 0.6 * history[0], (history[0], end)
