"""transformers' Trainer on a tiny BERT made from a configuration: does a line come from `argparse` or from
`tarfile`?
"""

from __future__ import annotations

import argparse
import inspect
import os
import random
import tarfile
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainingArguments,
    set_seed,
)
from transformers.utils import logging

logging.disable_progress_bar()

LENGTH = 32


class Lines(torch.utils.data.Dataset):
    def __init__(self, lines: list[tuple[str, int]]) -> None:
        self.lines = lines

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, i: int) -> dict[str, torch.Tensor]:
        text, label = self.lines[i]
        ids = [min(ord(c), 127) for c in text[:LENGTH]]
        pad = LENGTH - len(ids)
        return {
            "input_ids": torch.tensor(ids + [0] * pad),
            "attention_mask": torch.tensor([1] * len(ids) + [0] * pad),
            "labels": torch.tensor(label),
        }


def main() -> None:
    set_seed(22)
    torch.set_num_threads(1)
    lines = []
    for label, module in enumerate((argparse, tarfile)):
        lines += [
            (s, label) for s in sorted({s.strip() for s in inspect.getsource(module).splitlines()}) if len(s) > 12
        ]
    random.shuffle(lines)
    config = BertConfig(
        vocab_size=128,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=LENGTH,
        num_labels=2,
    )
    model = BertForSequenceClassification(config)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            max_steps=150,
            per_device_train_batch_size=16,
            per_device_eval_batch_size=100,
            gradient_accumulation_steps=2,
            learning_rate=5e-3,
            warmup_steps=15,
            lr_scheduler_type="cosine",
            logging_steps=50,
            save_steps=100,
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
            dataloader_pin_memory=False,
        )
        trainer = Trainer(
            model=model,
            args=arguments,
            train_dataset=Lines(lines[200:]),
            eval_dataset=Lines(lines[:200]),
            compute_metrics=lambda p: {"accuracy": float((np.argmax(p.predictions, -1) == p.label_ids).mean())},
        )
        trainer.train()
        accuracy = trainer.evaluate()["eval_accuracy"]
    print(f"accuracy {accuracy:.3f}")
    assert accuracy >= 0.65, accuracy


if __name__ == "__main__":
    main()
