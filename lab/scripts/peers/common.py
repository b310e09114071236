"""What the programs of lab/scripts/compare-peers share: shapes, processes, results."""

import argparse
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time

# Layers, width and heads, as in crates/measure/src/bench/shapes.rs; the last is for trying it
# out.
SHAPES = {
    "bert-tiny": (3, 768, 12),
    "bert-small": (6, 768, 12),
    "bert-base": (12, 768, 12),
    "bert-medium": (12, 1024, 16),
    "bert-large": (24, 1024, 16),
    "minilm": (6, 384, 12),
    "trial": (2, 128, 2),
}
LABELS = 2
# Weights as they are before training.
DEVIATION = 0.02
EPSILON = 1e-12


def arguments(about):
    """The arguments of a program, and those that it hands to its parties."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--model", default="bert-base", choices=SHAPES)
    parser.add_argument("--layers", type=int, help="run only that many, and extrapolate the rest")
    parser.add_argument("--tokens", type=int, default=30)
    parser.add_argument("--command", default="", help="what the result says was typed")
    parser.add_argument("--out", default="/dev/stdout", help="where the result is written")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--room", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.all_layers, options.width, options.heads = SHAPES[options.model]
    options.layers = options.layers or options.all_layers
    if not 1 <= options.layers <= options.all_layers:
        sys.exit(f"{options.model} has {options.all_layers} layers, so 1 to {options.all_layers} "
                 f"of them can be measured, not {options.layers}")
    if options.tokens < 1:
        sys.exit("an input has at least one token")
    return options


def embedded(random, options):
    """The sum of a word's, a position's and a type's random embedding for each token."""
    shape = (3, 1, options.tokens, options.width)
    return (DEVIATION * random.standard_normal(shape)).sum(axis=0).astype("float32")


def cores():
    return sorted(os.sched_getaffinity(0))


def on_one_core(compute, times=3):
    """Seconds of the fastest of some calls on one core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        best = None
        for _ in range(times):
            begin = time.monotonic()
            compute()
            taken = time.monotonic() - begin
            best = taken if best is None else min(best, taken)
        return best
    finally:
        os.sched_setaffinity(0, before)


def free_ports(count):
    taken = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in taken]
    for one in taken:
        one.close()
    return ports


def run_parties(program, options, room, env):
    """Both parties as processes with a core each; what they wrote in the end."""
    processes = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    places = [cores()[0], cores()[-1]]
    try:
        for rank in (0, 1):
            command = ["taskset", "-c", str(places[rank]), sys.executable, program]
            command += ["--rank", str(rank), "--room", room, "--model", options.model]
            command += ["--layers", str(options.layers), "--tokens", str(options.tokens)]
            log = open(f"{room}/log.{rank}", "w")
            one_thread = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
            processes.append(subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT,
                                              env={**os.environ, **one_thread, **env[rank]}))
        running = True
        while running:
            time.sleep(0.1)
            running = any(process.poll() is None for process in processes)
            for rank in (0, 1):
                if processes[rank].poll():
                    with open(f"{room}/log.{rank}") as log:
                        sys.exit(f"party {rank} failed: {log.read()[-2000:]}")
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
            process.wait()
    found = []
    for rank in (0, 1):
        with open(f"{room}/result.{rank}") as result:
            found.append(json.load(result))
    return found


def write_party(options, result):
    """What a party found, with the most memory that it held."""
    result["peak_rss"] = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with open(f"{options.room}/result.{options.rank}", "w") as file:
        json.dump(result, file)


def machine():
    """As `primer bench` says it."""
    def field(path, name):
        for line in open(path):
            key, _, value = line.partition(":")
            if key.strip() == name:
                return value.strip()
        return "unknown"

    gib = float(field("/proc/meminfo", "MemTotal").split()[0]) / (1 << 20)
    return f"{field('/proc/cpuinfo', 'model name')}, {len(cores())} cores, {gib:.0f} GiB"


def whole(options, ends, measured):
    """A cost of all layers from that of some of them and that of the model without any."""
    return ends + (measured - ends) * options.all_layers / options.layers


def write_table(options, scheme, version, parties, plaintext_s, error, note):
    """One object in the form of `primer bench --json`, with notes that its reader passes over.

    A party's result has `ends` (a model without layers; not there if all were run) and `run`, each
    with the seconds, the bytes that it sent and its messages.
    """
    extrapolated = options.layers < options.all_layers

    def cost(party, what):
        measured = party["run"][what]
        return whole(options, party["ends"][what], measured) if extrapolated else measured

    client, server = parties
    row = {
        "scheme": scheme,
        "extrapolated": extrapolated,
        "offline_s": 0.0,
        "online_s": max(cost(party, "seconds") for party in parties),
        "plaintext_s": plaintext_s,
        "bytes": {"offline_up": 0, "offline_down": 0, "online_up": round(cost(client, "sent")),
                  "online_down": round(cost(server, "sent"))},
        "setup_bytes": sum(party["setup"]["sent"] for party in parties),
        "setup_s": max(party["setup"]["seconds"] for party in parties),
        "rounds_online": round(max(cost(party, "messages") for party in parties)),
        "peak_rss_client": client["peak_rss"],
        "peak_rss_server": server["peak_rss"],
        "and_gates": 0,
        "max_abs_logit_error": error,
        "steps": [],
    }
    table = {
        "model": options.model,
        "layers": options.all_layers,
        "layers_measured": options.layers,
        "tokens": options.tokens,
        "link": "loopback",
        "threads_per_party": 1,
        "pinned": len(cores()) > 1,
        "runs": 1,
        "results": [row],
        "note": note,
        "machine": machine(),
        "commit": version,
        "command": options.command,
    }
    with open(options.out, "w") as file:
        file.write(json.dumps(table) + "\n")
