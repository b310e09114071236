"""One private inference by CrypTen with a dealer, as lab/scripts/compare-peers runs it.

CrypTen has no BERT, so this builds one from its encrypted tensors: linear layers by its matrix
product, its softmax, tanh and inverse square root. Weights are shared by party 1, embedded
vectors by party 0; the logits are opened to party 0. What is timed is one forward pass after a
first small one, from the moment at which both parties are ready; sharing the weights is not in it.
Correlated randomness comes from CrypTen's trusted first party: each process makes what a dealer
would send, so its work is in the seconds and its messages are not in the bytes. Bytes are those
that CrypTen's communicator counts.
"""

import math
import tempfile
import time
from importlib.metadata import version

import numpy as np

import common

NOTE = (
    "A dealer is trusted not to collude with either party; its work is in the seconds and its "
    "messages are not in the bytes. CrypTen's communicator counts the bytes, without TCP's "
    "headers, and no TLS. Starts from embedded vectors, scaled to a variance of one, since "
    "CrypTen's inverse square root needs arguments near it; no word is looked up privately. GELU "
    "is the form with tanh, since CrypTen's erf is right for small arguments only; the exponential "
    "is a limit of 8 squarings, reciprocals and roots are Newton's; fixed point of 16 bits, and "
    "truncation fails now and then. Seconds are without sharing the weights."
)


def weights(options, layers, mine=True):
    """Names and random values of everything that is learnt; nothing but shapes if not `mine`."""
    random = np.random.default_rng(3)

    def normal(*shape, around=0.0):
        if not mine:
            return np.zeros(shape, dtype="float32")
        return (around + common.DEVIATION * random.standard_normal(shape)).astype("float32")

    width, found = options.width, {}

    def norm(name):
        found[f"{name}.scale"] = normal(width, around=1.0)
        found[f"{name}.bias"] = normal(width)

    def linear(name, inputs, outputs):
        found[f"{name}.weight"] = normal(inputs, outputs)
        found[f"{name}.bias"] = normal(outputs)

    norm("embedded")
    for layer in range(layers):
        for name in ("query", "key", "value", "output"):
            linear(f"{layer}.{name}", width, width)
        norm(f"{layer}.attended")
        linear(f"{layer}.up", width, 4 * width)
        linear(f"{layer}.down", 4 * width, width)
        norm(f"{layer}.done")
    linear("pooler", width, width)
    linear("classifier", width, common.LABELS)
    return found


def inputs(options):
    return common.embedded(np.random.default_rng(4), options)[0]


class Clear:
    """The functions of a BERT in float."""

    def embedded(self, x):
        return x

    def norm(self, x, scale, bias):
        import torch

        return torch.nn.functional.layer_norm(x, x.shape[-1:], scale, bias, common.EPSILON)

    def gelu(self, x):
        import torch

        return torch.nn.functional.gelu(x)


class Private:
    """The same of encrypted tensors."""

    def embedded(self, x):
        return x * (1 / (math.sqrt(3) * common.DEVIATION))

    def norm(self, x, scale, bias):
        x = x - x.mean(dim=-1, keepdim=True)
        # The epsilon of BERT is less than the smallest number here.
        return x * x.square().mean(dim=-1, keepdim=True).inv_sqrt() * scale + bias

    def gelu(self, x):
        # CrypTen's erf is off by more than 0.1 from 1 on, and grows; its tanh is not.
        inner = (x + x.square() * x * 0.044715) * math.sqrt(2 / math.pi)
        return x * (1 + inner.tanh()) * 0.5


def forward(kind, options, layers, learnt, x):
    """Logits of embedded vectors."""
    heads, size = options.heads, options.width // options.heads

    def linear(name, x):
        return x.matmul(learnt[f"{name}.weight"]) + learnt[f"{name}.bias"]

    def norm(name, x):
        return kind.norm(x, learnt[f"{name}.scale"], learnt[f"{name}.bias"])

    def by_head(x):
        return x.reshape(options.tokens, heads, size).transpose(0, 1)

    x = norm("embedded", kind.embedded(x))
    for layer in range(layers):
        query, key, value = (by_head(linear(f"{layer}.{n}", x)) for n in ("query", "key", "value"))
        scores = query.matmul(key.transpose(1, 2)) * (1 / math.sqrt(size))
        mixed = scores.softmax(-1).matmul(value)
        mixed = mixed.transpose(0, 1).reshape(options.tokens, options.width)
        x = norm(f"{layer}.attended", x + linear(f"{layer}.output", mixed))
        x = norm(f"{layer}.done", x + linear(f"{layer}.down", kind.gelu(linear(f"{layer}.up", x))))
    return linear("classifier", linear("pooler", x[0:1]).tanh())


def party(options):
    import torch

    torch.set_num_threads(1)
    import crypten
    import crypten.communicator as comm

    begin = time.monotonic()
    crypten.init()
    crypten.cfg.communicator.verbose = True

    def measure(layers):
        mine = weights(options, layers, options.rank == 1)
        learnt = {name: crypten.cryptensor(torch.from_numpy(value), src=1)
                  for name, value in mine.items()}
        text = inputs(options) if options.rank == 0 else np.zeros_like(inputs(options))
        x = crypten.cryptensor(torch.from_numpy(text), src=0)
        comm.get().barrier()
        comm.get().reset_communication_stats()
        begin = time.monotonic()
        logits = forward(Private(), options, layers, learnt, x).get_plain_text(dst=0)
        seconds = time.monotonic() - begin
        counted = comm.get().get_communication_stats()
        # Each party counts what it sends and as much that it receives.
        cost = {"seconds": seconds, "sent": counted["bytes"] / 2, "messages": counted["rounds"]}
        return cost, None if logits is None else logits.flatten().tolist()

    with crypten.no_grad():
        measure(0)
        result = {"setup": {"seconds": time.monotonic() - begin, "sent": 0}}
        if options.layers < options.all_layers:
            result["ends"], _ = measure(0)
        result["run"], result["logits"] = measure(options.layers)
    common.write_party(options, result)
    crypten.uninit()


def drive(options):
    import torch

    torch.set_num_threads(1)
    learnt = {name: torch.from_numpy(value)
              for name, value in weights(options, options.layers).items()}
    x = torch.from_numpy(inputs(options))

    def compute():
        return forward(Clear(), options, options.layers, learnt, x)

    with torch.no_grad():
        clear = compute().flatten().numpy()
        plaintext_s = common.on_one_core(compute)
    if options.layers < options.all_layers:
        plaintext_s *= options.all_layers / options.layers
    del learnt
    with tempfile.TemporaryDirectory() as room:
        env = {"RENDEZVOUS": f"file://{room}/meet", "WORLD_SIZE": "2", "GLOO_SOCKET_IFNAME": "lo"}
        env = [{**env, "RANK": str(rank)} for rank in (0, 1)]
        parties = common.run_parties(__file__, options, room, env)
    error = float(np.abs(np.array(parties[0]["logits"]) - clear).max())
    made_by = f"crypten {version('crypten')}, torch {torch.__version__}"
    common.write_table(options, "crypten", made_by, parties, plaintext_s, error, NOTE)


if __name__ == "__main__":
    asked = common.arguments(__doc__.splitlines()[0])
    drive(asked) if asked.rank is None else party(asked)
