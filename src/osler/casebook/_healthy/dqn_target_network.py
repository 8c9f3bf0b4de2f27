"""Double DQN on an own mountain-walk task: replay memory, and a target network that is only ever copied into."""

from __future__ import annotations

import copy
import random
from collections import deque

import torch
import torch.nn.functional as F
from torch import nn

LENGTH = 8


class Corridor:
    """Walk right to the end (reward 1); the left end pays 0.1 and ends the episode as well."""

    def reset(self) -> int:
        self.cell, self.clock = 2, 0
        return self.cell

    def step(self, action: int) -> tuple[int, float, bool]:
        self.cell += 1 if action == 1 else -1
        self.clock += 1
        if self.cell == LENGTH - 1:
            return self.cell, 1.0, True
        if self.cell == 0:
            return self.cell, 0.1, True
        return self.cell, 0.0, self.clock >= 30


def q_network() -> nn.Module:
    return nn.Sequential(nn.Linear(LENGTH, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))


def encode(cells) -> torch.Tensor:
    return F.one_hot(torch.as_tensor(cells), LENGTH).float()


def main() -> None:
    random.seed(26)
    torch.manual_seed(26)
    torch.set_num_threads(1)
    online = q_network()
    target = copy.deepcopy(online)
    optimizer = torch.optim.Adam(online.parameters(), lr=2e-3)
    memory: deque = deque(maxlen=2000)
    env, updates, cell = Corridor(), 0, None
    cell = env.reset()
    for frame in range(900):
        epsilon = max(0.1, 1.0 - frame / 500)
        if random.random() < epsilon:
            action = random.randrange(2)
        else:
            with torch.no_grad():
                action = int(online(encode([cell])).argmax())
        following, reward, done = env.step(action)
        memory.append((cell, action, reward, following, float(done)))
        cell = env.reset() if done else following

        if len(memory) >= 100 and frame % 3 == 0:
            cells, actions, rewards, nexts, dones = zip(*random.sample(memory, 64))
            q = online(encode(cells)).gather(1, torch.tensor(actions).unsqueeze(1)).squeeze(1)
            with torch.no_grad():
                best = online(encode(nexts)).argmax(1, keepdim=True)
                bootstrap = target(encode(nexts)).gather(1, best).squeeze(1)
                goal = torch.tensor(rewards) + 0.9 * bootstrap * (1 - torch.tensor(dones))
            loss = F.smooth_l1_loss(q, goal)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_value_(online.parameters(), 1.0)
            optimizer.step()
            updates += 1
            if updates % 25 == 0:
                target.load_state_dict(online.state_dict())

    cell, total, done = env.reset(), 0.0, False
    while not done:
        with torch.no_grad():
            cell, reward, done = env.step(int(online(encode([cell])).argmax()))
        total += reward
    print(f"{updates} updates, last loss {loss.item():.5f}, greedy return {total:.2f}")
    assert total == 1.0, total


if __name__ == "__main__":
    main()
