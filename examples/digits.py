"""Train a classifier of handwritten digits from raw Olympus: no layers, no optimiser library.

    python examples/digits.py              one seed, under a minute on two cores
    python examples/digits.py --seeds 5    five seeds, each with its own split

The images are the 1,797 real 8x8 scans that scikit-learn ships. A run splits them 80/20 with the
same share of each digit on both sides, trains a small perceptron with Adam, prints the accuracy on
the images it never saw, and draws the loss curve with twelve predictions into a PNG.
"""

import argparse
import time

import matplotlib

matplotlib.use("Agg")  # a file is all we draw, so no display is needed

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm import tqdm

import olympus
import olympus.numpy as onp
from olympus import lax, nn, random

SIZES = (64, 256, 128, 10)
BATCH, EPOCHS = 64, 60
RATE, DECAY, NOISE = 2e-3, 1e-4, 0.15


# --- Data -----------------------------------------------------------------------------------------


def load(seed):
    """The two sides of one stratified split: ((images, labels), (images, labels)) as NumPy."""
    digits = load_digits()
    images = (digits.data / 16.0).astype(np.float32)  # grey levels 0..16 to 0..1
    labels = digits.target.astype(np.int32)
    rows = np.arange(len(labels))
    train, test = train_test_split(rows, test_size=0.2, stratify=labels, random_state=seed)
    assert not set(train) & set(test), "a test image is in the training set"
    return (images[train], labels[train]), (images[test], labels[test])


# --- Model: parameters are a plain list of dicts --------------------------------------------------


def init(key):
    """He-initialised weights: [{"w": float32[m,n], "b": float32[n]}, ...], a layer each."""
    layers = []
    for m, n in zip(SIZES[:-1], SIZES[1:], strict=True):
        key, sub = random.split(key)
        layers.append({"w": random.normal(sub, (m, n)) * onp.sqrt(2.0 / m), "b": onp.zeros(n)})
    return layers


def logits(params, x):
    """x: float32[..., 64] -> float32[..., 10]"""
    *hidden, last = params
    for layer in hidden:
        x = nn.relu(x @ layer["w"] + layer["b"])
    return x @ last["w"] + last["b"]


def loss(params, x, y):
    """Mean cross-entropy of the labels y: int32[...] given the images x: float32[..., 64]."""
    log_p = nn.log_softmax(logits(params, x))
    return -onp.mean(onp.sum(nn.one_hot(y, SIZES[-1]) * log_p, axis=-1))


loss_and_grad = olympus.jit(olympus.value_and_grad(loss))


@olympus.jit
def gradient_norms(params, x, y):
    """How hard each example pulls: the norm of its own gradient, float32[n]."""
    grads = olympus.vmap(olympus.grad(loss), in_axes=(None, 0, 0))(params, x, y)
    leaves = [g.reshape(len(x), -1) for g in olympus.tree.leaves(grads)]
    return onp.sqrt(sum(onp.sum(onp.square(leaf), axis=1) for leaf in leaves))


# --- Training -------------------------------------------------------------------------------------


def adam(state, grads, rate):
    """One step of Adam (Kingma and Ba, 2015) with decoupled decay; state: (params, m, v, t)."""
    params, m, v, t = state
    t = t + 1
    m = olympus.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
    v = olympus.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, grads)
    scale = rate * onp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
    params = olympus.tree.map(
        lambda p, m, v: p - scale * m / (onp.sqrt(v) + 1e-8) - rate * DECAY * p, params, m, v
    )
    return params, m, v, t


@olympus.jit
def epoch(state, x, y, key, rate):
    """One pass over the training set in shuffled minibatches: (state, mean loss)."""
    steps = len(x) // BATCH
    shuffle, noise = random.split(key)
    order = random.permutation(shuffle, len(x))[: steps * BATCH].reshape(steps, BATCH)

    def step(state, scanned):
        rows, sub = scanned
        images = x[rows] + NOISE * random.normal(sub, (BATCH, x.shape[1]))
        value, grads = loss_and_grad(state[0], images, y[rows])
        return adam(state, grads, rate), value

    state, losses = lax.scan(step, state, (order, random.split(noise, steps)))
    return state, onp.mean(losses)


def train(seed, x, y):
    """The trained parameters and the mean loss of each epoch."""
    key = random.key(seed)
    params = init(random.fold_in(key, 0))
    zeros = olympus.tree.map(onp.zeros_like, params)
    state, losses = (params, zeros, zeros, onp.float32(0)), []
    x, y = onp.asarray(x), onp.asarray(y)
    with tqdm(range(EPOCHS), desc=f"seed {seed}", unit="epoch") as bar:
        for i in bar:
            rate = RATE * 0.5 * (1 + np.cos(np.pi * i / EPOCHS))
            state, value = epoch(state, x, y, random.fold_in(key, i + 1), rate)
            losses.append(float(value))
            bar.set_postfix(loss=f"{losses[-1]:.4f}")
    return state[0], losses


# --- Evaluation: the final model, compiled ahead of time ------------------------------------------


def predict(params, x):
    """The most likely digit of each image, int32[n]."""
    return onp.argmax(logits(params, x), axis=-1)


def evaluate(params, x, y):
    """(digits predicted for x, share of them that equal y), from a `Compiled`."""
    lowered = olympus.jit(predict).lower(params, olympus.ShapeDtypeStruct(x.shape, x.dtype))
    compiled = lowered.compile()
    guess = np.asarray(compiled(params, x))
    return guess, float(np.mean(guess == y))


def draw(path, curves, x, y, guess):
    """Loss curves on the left, twelve test images with their predictions on the right."""
    figure = plt.figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subfigures(1, 2)
    axes = left.subplots()
    for seed, losses in curves.items():
        axes.semilogy(losses, label=f"seed {seed}")
    axes.set(xlabel="epoch", ylabel="training loss")
    axes.legend()
    wrong_first = np.argsort(guess == y, kind="stable")[:12]
    for cell, i in zip(right.subplots(3, 4).flat, wrong_first, strict=True):
        cell.imshow(x[i].reshape(8, 8), cmap="gray_r")
        cell.set_title(f"{guess[i]} (is {y[i]})", color="black" if guess[i] == y[i] else "red")
        cell.axis("off")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def run(seed):
    """One seed from split to test accuracy: (accuracy, losses, x, y, guess) of the test side."""
    start = time.perf_counter()
    (x, y), (x_test, y_test) = load(seed)
    params, losses = train(seed, x, y)
    norms = np.asarray(gradient_norms(params, x[:256], y[:256]))
    guess, accuracy = evaluate(params, x_test, y_test)
    print(
        f"seed {seed}: test accuracy {accuracy:.2%} on {len(y_test)} images, "
        f"gradient norms median {np.median(norms):.1e} max {norms.max():.1e}, "
        f"{time.perf_counter() - start:.1f} s"
    )
    return accuracy, losses, x_test, y_test, guess


def main():
    """Parse the command line, train once a seed, report and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds to train (default 1)")
    parser.add_argument("--png", default="digits.png", help="where to draw (default digits.png)")
    options = parser.parse_args()
    if options.seeds < 1:
        parser.error("--seeds must be at least 1")
    accuracies, curves = [], {}
    for seed in range(options.seeds):
        accuracy, curves[seed], x, y, guess = run(seed)
        accuracies.append(accuracy)
    draw(options.png, curves, x, y, guess)
    print(f"test accuracy: mean {np.mean(accuracies):.2%}, lowest {min(accuracies):.2%}")
    print(f"wrote {options.png}")


if __name__ == "__main__":
    main()
