"""REINFORCE with a value baseline on a small grid world; moves into a wall are masked with -inf.

The advantage is detached on purpose, and returns are normalised in each batch of episodes.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

SIZE, HORIZON = 5, 20
MOVES = torch.tensor([[-1, 0], [1, 0], [0, -1], [0, 1]])


class GridWorld:
    """Many episodes side by side: reach the corner (4, 4); every move costs 0.05, the goal pays 1."""

    def __init__(self, episodes: int) -> None:
        self.position = torch.randint(SIZE - 1, (episodes, 2))
        self.done = torch.zeros(episodes, dtype=torch.bool)

    def observe(self) -> torch.Tensor:
        return F.one_hot(self.position, SIZE).flatten(1).float()

    def legal(self) -> torch.Tensor:
        target = self.position.unsqueeze(1) + MOVES
        return ((target >= 0) & (target < SIZE)).all(-1)

    def step(self, action: torch.Tensor) -> torch.Tensor:
        self.position = torch.where(self.done.unsqueeze(1), self.position, self.position + MOVES[action])
        arrived = (self.position == SIZE - 1).all(1)
        reward = torch.where(arrived, 1.0, -0.05)
        reward = torch.where(self.done, torch.zeros_like(reward), reward)
        self.done = self.done | arrived
        return reward


class ActorCritic(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2 * SIZE, 48), nn.Tanh())
        self.policy = nn.Linear(48, 4)
        self.value = nn.Linear(48, 1)

    def forward(self, obs, legal):
        h = self.body(obs)
        logits = self.policy(h).masked_fill(~legal, float("-inf"))
        return torch.distributions.Categorical(logits=logits), self.value(h).squeeze(-1)


def main() -> None:
    torch.manual_seed(25)
    torch.set_num_threads(1)
    agent = ActorCritic()
    optimizer = torch.optim.Adam(agent.parameters(), lr=1e-2)
    history = []
    for update in range(80):
        world = GridWorld(32)
        log_probs, values, rewards, alive, entropies = [], [], [], [], []
        for _ in range(HORIZON):
            policy, value = agent(world.observe(), world.legal())
            action = policy.sample()
            alive.append(~world.done)
            log_probs.append(policy.log_prob(action))
            values.append(value)
            probs = policy.probs
            entropies.append(-(probs * probs.clamp_min(1e-9).log()).sum(-1))
            rewards.append(world.step(action))
        returns, running = [], torch.zeros(32)
        for reward in reversed(rewards):
            running = reward + 0.97 * running
            returns.insert(0, running)
        returns, mask = torch.stack(returns), torch.stack(alive).float()
        values, log_probs, entropies = torch.stack(values), torch.stack(log_probs), torch.stack(entropies)
        advantage = (returns - values).detach()
        mean = (advantage * mask).sum() / mask.sum()
        spread = (((advantage - mean) ** 2 * mask).sum() / mask.sum()).sqrt()
        advantage = (advantage - mean) / (spread + 1e-6)
        loss = -(advantage * log_probs * mask).sum() / mask.sum()
        loss = loss + 0.5 * ((returns - values) ** 2 * mask).sum() / mask.sum()
        loss = loss - 0.01 * (entropies * mask).sum() / mask.sum()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(agent.parameters(), 1.0)
        optimizer.step()
        history.append(torch.stack(rewards).sum(0).mean().item())
        if update % 20 == 0:
            print(f"update {update}: return {history[-1]:.3f}")
    start, end = sum(history[:5]) / 5, sum(history[-10:]) / 10
    print(f"mean return {start:.3f} -> {end:.3f}")
    assert end > 0.55 and end > start + 0.3, (start, end)


if __name__ == "__main__":
    main()
