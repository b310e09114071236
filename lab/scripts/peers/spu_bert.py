"""One private inference by SPU under the protocol Cheetah, as lab/scripts/compare-peers runs it.

The model is made of Hugging Face's own Flax modules, with random weights. Weights are private to
party 1, embedded vectors to party 0; the logits come out in shares, which are put together
afterwards. What is timed is one run of the compiled program, from the moment at which both parties
are ready. Tracing and compiling, and a first small layer that makes keys and base transfers, are
not in it. Bytes are those that SPU counts on its link, what each party sent.
"""

import argparse
import json
import os
import pickle
import re
import sys
import tempfile
import time

import common

FRACTION_BITS = 18
NOTE = (
    "SPU's link counts the bytes that each party sends, without HTTP's and TCP's headers, and no "
    "TLS. Weights are private to the server and embedded vectors to the client (colocated "
    "optimisation); no word is looked up privately. GELU is a piecewise polynomial of PUMA's form "
    "(Dong et al., 2023), since Flax's would cost more than twice as much; softmax, tanh and "
    "LayerNorm are Flax's, approximated by SPU in fixed point of 18 bits. Seconds are without "
    "tracing, compiling, keys and base transfers. Messages that a party sent stand for round trips."
)


def settings():
    import spu

    config = spu.RuntimeConfig(spu.ProtocolKind.CHEETAH, spu.FieldType.FM64, FRACTION_BITS)
    config.experimental_enable_colocated_optimization = True
    # Prints what went over the link after each program.
    config.enable_pphlo_profile = True
    return config


def gelu_of_pieces():
    """GELU as PUMA (Dong et al., 2023) has it on SPU, fitted here: off by 0.02 at most.

    Zero, a cubic from -4, half of x and an even polynomial from -1.95, x from 3.
    """
    import jax
    import jax.numpy as jnp
    import numpy as np

    def fitted(low, high, powers, line):
        x = np.linspace(low, high, 2001)
        y = np.asarray(jax.nn.gelu(x, approximate=False)) - line * x
        return np.linalg.lstsq(np.stack([x**p for p in powers], 1), y, rcond=None)[0].tolist()

    outer = fitted(-4.0, -1.95, (0, 1, 2, 3), 0.0)
    inner = fitted(-3.0, 3.0, (0, 2, 4, 6), 0.5)

    def gelu(x):
        far, left, right = x < -4.0, x < -1.95, x > 3.0
        square = jnp.square(x)
        cube, fourth = x * square, jnp.square(square)
        cubic = outer[0] + outer[1] * x + outer[2] * square + outer[3] * cube
        even = inner[0] + inner[1] * square + inner[2] * fourth + inner[3] * jnp.square(cube)
        middle = jnp.where(~(left ^ right), even + 0.5 * x, 0.0)
        return middle + jnp.where(far ^ left, cubic, 0.0) + jnp.where(right, x, 0.0)

    return gelu


def bert(options, layers, activation):
    """The model from embedded vectors on, and random weights for it."""
    import flax.linen as nn
    import jax
    import numpy as np
    from transformers import BertConfig
    from transformers.models.bert import modeling_flax_bert as parts

    parts.ACT2FN["pieces"] = gelu_of_pieces()
    config = BertConfig(
        hidden_size=options.width, num_attention_heads=options.heads, num_hidden_layers=layers,
        intermediate_size=4 * options.width, hidden_act=activation, layer_norm_eps=common.EPSILON,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)

    class Bert(nn.Module):
        @nn.compact
        def __call__(self, hidden):
            hidden = nn.LayerNorm(epsilon=config.layer_norm_eps)(hidden)
            if layers:
                encoder = parts.FlaxBertEncoder(config)
                hidden = encoder(hidden, attention_mask=None, head_mask=None)[0]
            return nn.Dense(common.LABELS)(parts.FlaxBertPooler(config)(hidden))

    random = np.random.default_rng(3)
    inputs = common.embedded(random, options)
    model = Bert()
    shapes = jax.eval_shape(model.init, jax.random.PRNGKey(0), inputs)

    def weights(path, leaf):
        around = 1.0 if path[-1].key == "scale" else 0.0
        return (around + common.DEVIATION * random.standard_normal(leaf.shape)).astype("float32")

    return model, jax.tree_util.tree_map_with_path(weights, shapes), inputs


def prepare(room, name, function, weights, inputs):
    """Compiles a function of weights and inputs, and leaves each party its part of them."""
    import jax
    import spu
    from spu.utils import frontend

    flat = [*jax.tree_util.tree_leaves(weights), inputs]
    names = [f"{name}.{at}" for at in range(len(flat))]
    secret = spu.Visibility.VIS_SECRET
    program, output = frontend.compile(
        frontend.Kind.JAX, function, [weights, inputs], {}, names, [secret] * len(flat),
        lambda outputs: [f"{name}.out.{at}" for at in range(len(outputs))])
    io = spu.Io(2, settings())
    with open(f"{room}/{name}.0", "wb") as client, open(f"{room}/{name}.1", "wb") as server:
        for file in (client, server):
            pickle.dump((program.SerializeToString(), list(program.output_names)), file)
        for at, (value, variable) in enumerate(zip(flat, names)):
            owner = 0 if at == len(flat) - 1 else 1
            shares = io.make_shares(value, secret, owner)
            for file, share in ((client, shares[0]), (server, shares[1])):
                pickle.dump((variable, share), file)
    return output


def load(room, name, rank, runtime):
    """Puts a party's part into its runtime; the program and the names of what it gives."""
    import spu

    with open(f"{room}/{name}.{rank}", "rb") as file:
        program = spu.Executable()
        encoded, outputs = pickle.load(file)
        program.ParseFromString(encoded)
        while True:
            try:
                runtime.set_var(*pickle.load(file))
            except EOFError:
                return program, outputs


def counted(path):
    """Bytes and messages that this party sent, as SPU printed them for its last program."""
    with open(path) as log:
        found = re.findall(r"Link details: total send bytes (\d+), recv bytes (\d+), "
                           r"send actions (\d+)", log.read())
    if not found:
        sys.exit("SPU does not print the bytes of its link")
    return int(found[-1][0]), int(found[-1][2])


def party(options):
    import spu
    import spu.libspu.link as link

    description = link.Desc()
    description.recv_timeout_ms = 3_600_000
    description.http_timeout_ms = 600_000
    for rank, port in enumerate(json.loads(os.environ["PEER_PORTS"])):
        description.add_party(f"party {rank}", f"127.0.0.1:{port}")
    wire = link.create_brpc(description, options.rank)
    begin = time.monotonic()
    runtime = spu.Runtime(wire, settings())
    result = {}
    for name in ("setup", "ends", "run"):
        if not os.path.exists(f"{options.room}/{name}.{options.rank}"):
            continue
        program, outputs = load(options.room, name, options.rank, runtime)
        wire.barrier()
        if name != "setup":
            begin = time.monotonic()
        runtime.run(program)
        seconds = time.monotonic() - begin
        sys.stdout.flush()
        sent, messages = counted(f"{options.room}/log.{options.rank}")
        result[name] = {"seconds": seconds, "sent": sent, "messages": messages}
        with open(f"{options.room}/{name}.out.{options.rank}", "wb") as file:
            pickle.dump([runtime.get_var(output) for output in outputs], file)
    common.write_party(options, result)
    wire.stop_link()


def drive(options):
    import jax
    import numpy as np
    import spu

    with tempfile.TemporaryDirectory() as room:
        # Keys and base transfers are made when they are first needed: by a small layer, uncounted.
        small = argparse.Namespace(width=128, heads=2, tokens=8)
        model, weights, inputs = bert(small, 1, "pieces")
        prepare(room, "setup", model.apply, weights, inputs)
        if options.layers < options.all_layers:
            model, weights, inputs = bert(options, 0, "pieces")
            prepare(room, "ends", model.apply, weights, inputs)
        model, weights, inputs = bert(options, options.layers, "gelu")
        compute = jax.jit(model.apply)
        clear = np.asarray(compute(weights, inputs))
        plaintext_s = common.on_one_core(lambda: compute(weights, inputs).block_until_ready())
        if options.layers < options.all_layers:
            plaintext_s *= options.all_layers / options.layers
        # The same random weights, with the activation that SPU is given.
        model, weights, inputs = bert(options, options.layers, "pieces")
        prepare(room, "run", model.apply, weights, inputs)
        del weights
        ports = {"PEER_PORTS": json.dumps(common.free_ports(2))}
        parties = common.run_parties(__file__, options, room, [ports, ports])
        shares = [pickle.load(open(f"{room}/run.out.{rank}", "rb"))[0] for rank in (0, 1)]
        secret = spu.Io(2, settings()).reconstruct(shares)
    error = float(np.abs(secret - clear).max())
    version = f"spu {spu.__version__}, jax {jax.__version__}"
    common.write_table(options, "spu", version, parties, plaintext_s, error, NOTE)


if __name__ == "__main__":
    asked = common.arguments(__doc__.splitlines()[0])
    drive(asked) if asked.rank is None else party(asked)
