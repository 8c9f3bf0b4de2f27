"""A LightningModule with a validation loop, clipping and a scheduler, run by Lightning's Trainer."""

from __future__ import annotations

import logging
import tempfile
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
# the whole data set lies in memory: workers would only cost
warnings.filterwarnings("ignore", ".*does not have many workers.*")
# a note from inside Lightning about its own use of a torch utility
warnings.filterwarnings("ignore", ".*LeafSpec.*")


class DigitClassifier(L.LightningModule):
    def __init__(self, lr: float = 3e-3) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(
            nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 10)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.log("val_loss", F.cross_entropy(logits, y))
        self.log("val_accuracy", (logits.argmax(1) == y).float().mean())

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=5)
        return {"optimizer": optimizer, "lr_scheduler": scheduler}


def main() -> None:
    L.seed_everything(21, verbose=False)
    torch.set_num_threads(1)
    digits = load_digits()
    x = torch.tensor(digits.data, dtype=torch.float32) / 16
    y = torch.tensor(digits.target)
    order = torch.randperm(len(y))
    train, valid = order[:1440], order[1440:]
    model = DigitClassifier()
    with tempfile.TemporaryDirectory() as folder:
        trainer = L.Trainer(
            max_epochs=5,
            accelerator="cpu",
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            enable_checkpointing=False,
            gradient_clip_val=1.0,
            default_root_dir=folder,
        )
        trainer.fit(
            model,
            DataLoader(TensorDataset(x[train], y[train]), batch_size=60, shuffle=True),
            DataLoader(TensorDataset(x[valid], y[valid]), batch_size=120),
        )
    accuracy = float(trainer.callback_metrics["val_accuracy"])
    print(f"{trainer.global_step} steps, validation accuracy {accuracy:.3f}")
    assert accuracy >= 0.94, accuracy


if __name__ == "__main__":
    main()
