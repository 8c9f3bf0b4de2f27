"""Reconstruction by a small variational autoencoder that is trained with masking (torch).

The model is a latent-variable model p(z) p(x | z) with independent columns given z: a normal with its own mean and variance
for each number, a categorical for each category. The encoder sees the observed cells and which they are. A missing cell is
its conditional mean given the observed ones, E[x_mis | x_obs], estimated by self-normalised importance sampling with the
encoder as the proposal (MIWAE: Mattei & Frellsen 2019, arXiv:1812.02633, equation 12).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from osler.data.missing.columns import Floats
from osler.data.missing.design import Design
from osler.data.need import need

_HIDDEN = 128
_BATCH = 64
# twenty passes over the rows, within these
_PASSES = 20
_STEPS = (600, 1_600)
_SAMPLES = 50
# log variance of a number in squared spreads: below -5 (8 % of a spread) the likelihood rewards copying single rows
_LOG_VARIANCE = (-5.0, 2.0)
_CHUNK = 1_024


class Autoencoder:
    """The variational autoencoder over the design matrix."""

    name = "vae"

    def __init__(self, design: Design, seed: int) -> None:
        self._design = design
        self._seed = seed

    def fit(self, codes: Floats, targets: Sequence[int]) -> Autoencoder:
        """Train on encoded rows (n, d). The global random state of torch is left as it was.

        Raises:
            DataError: torch is not installed.
        """
        torch = need("torch", "torch", "reconstruction by an autoencoder")
        values, seen = self._tensors(torch, codes)
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            torch.manual_seed(self._seed)
            self._build(torch, values.shape[1])
            self._train(torch, values, seen)
            self._noise = torch.randn(_SAMPLES, 1, self._latent)
        return self

    def _tensors(self, torch: Any, codes: Floats) -> tuple[Any, Any]:
        """The matrix with zeros where a cell is missing, and which cells are there; both (n, width) float32."""
        matrix = self._design.matrix(codes)
        seen = ~np.isnan(matrix)
        for j, block in self._design.blocks.items():
            seen[:, block] = ~np.isnan(codes[:, j])[:, None]
        matrix = np.where(seen, matrix, 0.0).clip(-10, 10)
        return torch.from_numpy(matrix.astype(np.float32)), torch.from_numpy(seen.astype(np.float32))

    def _build(self, torch: Any, width: int) -> None:
        nn = torch.nn
        self._latent = int(min(16, max(2, width // 2)))
        numbers = len(self._design.numeric)
        self._encoder = nn.Sequential(
            nn.Linear(2 * width, _HIDDEN),
            nn.SiLU(),
            nn.Linear(_HIDDEN, _HIDDEN),
            nn.SiLU(),
            nn.Linear(_HIDDEN, 2 * self._latent),
        )
        self._decoder = nn.Sequential(
            nn.Linear(self._latent, _HIDDEN),
            nn.SiLU(),
            nn.Linear(_HIDDEN, _HIDDEN),
            nn.SiLU(),
            nn.Linear(_HIDDEN, width + numbers),
        )

    def _train(self, torch: Any, values: Any, seen: Any) -> None:
        parameters = [*self._encoder.parameters(), *self._decoder.parameters()]
        rows = len(values)
        steps = int(np.clip(_PASSES * rows // _BATCH, *_STEPS))
        optimizer = torch.optim.AdamW(parameters, lr=3e-3, weight_decay=1e-3)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=steps)
        for step in range(steps):
            chosen = torch.randint(rows, (min(_BATCH, rows),))
            x, m = values[chosen], seen[chosen]
            shown = m * self._mask(torch, m)
            mean, log_scale = self._encode(torch, x * shown, shown)
            z = mean + log_scale.exp() * torch.randn_like(mean)
            fit = self._log_likelihood(torch, z, x, m)
            divergence = 0.5 * (mean.square() + (2 * log_scale).exp() - 1 - 2 * log_scale).sum(-1)
            # the divergence counts in full only later: from the start it would switch latent dimensions off
            loss = (divergence * min(1.0, 2 * (step + 1) / steps) - fit).mean()
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, 5.0)
            optimizer.step()
            schedule.step()

    def _mask(self, torch: Any, m: Any) -> Any:
        """Cells to show: each row hides its own share, up to six in ten; the cells of one category go together."""
        hidden = torch.rand(len(m), 1) * 0.6
        show = torch.rand_like(m) > hidden
        for block in self._design.blocks.values():
            show[:, block] = show[:, block.start : block.start + 1]
        return show.float()

    def _encode(self, torch: Any, x: Any, m: Any) -> tuple[Any, Any]:
        mean, log_scale = self._encoder(torch.cat([x, m], -1)).chunk(2, -1)
        return mean, log_scale.clamp(-6, 2)

    def _log_likelihood(self, torch: Any, z: Any, x: Any, m: Any) -> Any:
        """log p(x_obs | z), one number per row (and per sample where z has a leading axis)."""
        out = self._decoder(z)
        numbers, width = len(self._design.numeric), self._design.width
        log_variance = out[..., width:].clamp(*_LOG_VARIANCE)
        error = (x[:, :numbers] - out[..., :numbers]).square()
        total = -0.5 * ((error / log_variance.exp() + log_variance) * m[:, :numbers]).sum(-1)
        for block in self._design.blocks.values():
            logs = out[..., block].log_softmax(-1)
            total = total + (logs * x[:, block] * m[:, block]).sum(-1)
        return total

    def predict(self, codes: Floats, targets: Sequence[int], filled: Floats) -> dict[int, Floats]:
        """As `Iterative.predict`. The same noise serves every row, so a row's result does not depend on its neighbours."""
        torch = need("torch", "torch", "reconstruction by an autoencoder")
        values, seen = self._tensors(torch, codes)
        parts = []
        with torch.no_grad():
            for start in range(0, len(values), _CHUNK):
                parts.append(
                    self._conditional_mean(torch, values[start : start + _CHUNK], seen[start : start + _CHUNK])
                )
        done = np.concatenate(parts) if parts else np.empty((0, self._design.width))
        return {
            j: done[:, self._design.blocks[j]] if j in self._design.blocks else done[:, self._design.place[j]]
            for j in targets
        }

    def _conditional_mean(self, torch: Any, x: Any, m: Any) -> Floats:
        mean, log_scale = self._encode(torch, x, m)
        z = mean + log_scale.exp() * self._noise
        log_q = -(0.5 * self._noise.square() + log_scale).sum(-1)
        log_p = -0.5 * z.square().sum(-1)
        weight = (self._log_likelihood(torch, z, x, m) + log_p - log_q).softmax(0)[..., None]
        out = self._decoder(z)[..., : self._design.width]
        for block in self._design.blocks.values():
            out[..., block] = out[..., block].softmax(-1)
        return np.asarray((weight * out).sum(0).numpy(), dtype=np.float64)

    def surprise(self, codes: Floats) -> tuple[Floats, Floats]:
        """How unlikely rows are.

        Args:
            codes: (n, d) encoded rows of number columns, all observed.

        Returns:
            (n,) minus the importance-weighted bound on the log-likelihood (Burda, Grosse & Salakhutdinov 2016, equation 8), and
            (n, d) the part of each column.
        """
        torch = need("torch", "torch", "outliers by an autoencoder")
        values, seen = self._tensors(torch, codes)
        totals, parts = [], []
        with torch.no_grad():
            for start in range(0, len(values), _CHUNK):
                x, m = values[start : start + _CHUNK], seen[start : start + _CHUNK]
                mean, log_scale = self._encode(torch, x, m)
                z = mean + log_scale.exp() * self._noise
                log_q = -(0.5 * self._noise.square() + log_scale).sum(-1)
                log_w = self._log_likelihood(torch, z, x, m) - 0.5 * z.square().sum(-1) - log_q
                out = self._decoder(z)
                numbers, width = len(self._design.numeric), self._design.width
                log_variance = out[..., width:].clamp(*_LOG_VARIANCE)
                column = 0.5 * ((x[:, :numbers] - out[..., :numbers]).square() / log_variance.exp() + log_variance)
                totals.append(-(log_w.logsumexp(0) - float(np.log(_SAMPLES))))
                parts.append((log_w.softmax(0)[..., None] * column).sum(0))
        if not totals:
            return np.empty(0), np.empty((0, codes.shape[1]))
        return (
            np.asarray(torch.cat(totals).numpy(), dtype=np.float64),
            np.asarray(torch.cat(parts).numpy(), dtype=np.float64),
        )
