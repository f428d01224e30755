# SPDX-License-Identifier: Apache-2.0
"""A linear layer trained for 1,000 iterations of SGD: PyTorch's eager loop."""

import numpy as np
import torch

from common import example


def layer(w):
    model = torch.nn.Linear(len(w) - 1, 1).cuda()
    with torch.no_grad():
        model.weight.copy_(torch.from_numpy(w[None, :-1]))
        model.bias.copy_(torch.from_numpy(w[-1:]))
    return model


def run(x, y, w, iterations, together, rate):
    model = layer(w)
    x, y = torch.from_numpy(x).cuda(), torch.from_numpy(y[:, None]).cuda()
    loss_fn = torch.nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    for _ in range(iterations):
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return np.append(model.weight.detach().cpu().numpy(), model.bias.detach().cpu().numpy())


def make(n=64, d=10, iterations=1000, together=100, rate=0.01):
    rng = np.random.default_rng(17)
    x, weights = rng.standard_normal((n, d), np.float32), rng.standard_normal(d, np.float32)
    y = x @ weights + 0.5 + 0.1 * rng.standard_normal(n, np.float32)
    return x, y, np.zeros(d + 1, np.float32), iterations, together, rate


def expected(x, y, w, iterations, together, rate):
    x = np.column_stack([x, np.ones(len(x))])
    for _ in range(iterations):
        w = w - rate * 2 * x.T @ (x @ w - y) / len(x)
    return w


def main():
    example(make, run, expected, rtol=1e-3)


if __name__ == "__main__":
    main()
