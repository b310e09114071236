#!/usr/bin/env python3
"""Draws the pictures of docs/guide.md and counts its table of trips.

    python3 docs/guide/draw.py            writes docs/guide/*.svg and the table in docs/guide.md
    python3 docs/guide/draw.py --check    writes nothing, fails if one of them is not up to date

The bytes are counted here from the lengths of messages, which are short formulas, and compared
with crates/engine/tests/budget.txt: the sums must agree to the byte. Links of the guide, and the
files of the code that it names, must be there. Standard library only.
"""

import re
import sys
from pathlib import Path
from xml.sax.saxutils import escape

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
GUIDE = HERE.parent / "guide.md"
BUDGET = ROOT / "crates/engine/tests/budget.txt"
BEGIN, END = "<!-- trips: begin -->\n", "<!-- trips: end -->"

# ---------------------------------------------------------------------------------------------
# Bytes: BERT-base, 30 tokens, as budget.txt has it.

HEADER = 8  # of every message
K = 41  # bits of a residue modulo p
TOKENS, WIDTH, HEADS, INNER, LAYERS, WORDS, TYPES = 30, 768, 12, 3072, 12, 30522, 2
HIDDEN = TOKENS * WIDTH
SCORES = TOKENS * TOKENS * HEADS
ROWS = TOKENS * HEADS  # rows of attention
LABEL = 128  # bits of a label of a garbled circuit
ROOT_BITS, SUM_BITS, TANH_BITS = 22, 38, 16  # rings of squares, of sums of powers, of the pooler
POWER_INDEX = 9
WIDE = 160  # columns of an activation that reach beyond ±8 in the budget's plan


def message(count, bits=K):
    """Bytes of a message of packed numbers."""
    return HEADER + (count * bits + 7) // 8


def activation(first):
    """Down and up of one activation; cells are finer in the first quarter of the layers."""
    classes = [(WIDE, 10), (INNER - WIDE, 10 if first else 9)]
    down = sum(message(TOKENS * c, b) + message(TOKENS * c) for c, b in classes)
    return down, sum(message(2 * TOKENS * c) for c, _ in classes)


NORM = (
    message(HIDDEN, 1) + message(HIDDEN) + message(TOKENS, ROOT_BITS),
    message(2 * TOKENS * ROOT_BITS, LABEL),
)
SCALE = (message(TOKENS) + message(HIDDEN, 1), message(HIDDEN, 1) + message(HIDDEN))


def layer(first=False):
    """The ten trips: name, what goes down, what goes up, bytes of both."""
    norm_down = "`n·d` bits; input opened: `n·d`; `22·n` bits"
    norm_up = "labels: `2·22·n`"
    scale_down, scale_up = "roots opened: `n`; `n·d` bits", "`n·d` bits; `n·d`"
    return [
        (
            "Q, K and V requantised; scores",
            "`3·n·d` bits; Q, K opened: `2·n·d`",
            "`3·n·d`; scores: `S`",
            3 * message(HIDDEN, 1) + 2 * message(HIDDEN),
            3 * message(HIDDEN) + message(SCORES),
        ),
        (
            "powers of two, looked up",
            "shifts: `10·S` bits; `2·S`",
            "`2·S`",
            message(SCORES, POWER_INDEX + 1) + message(2 * SCORES),
            message(2 * SCORES),
        ),
        (
            "reciprocal of each row's sum, garbled",
            "`38·n·H` bits",
            "labels: `38·n·H`",
            message(ROWS, SUM_BITS),
            message(ROWS * SUM_BITS, LABEL),
        ),
        (
            "powers × reciprocal, requantised late",
            "powers opened: `S`; reciprocals: `n·H`; `S` bits",
            "`S` bits; `S`",
            message(SCORES) + message(ROWS) + message(SCORES, 1),
            message(SCORES, 1) + message(SCORES),
        ),
        (
            "probabilities × V, requantised late",
            "probabilities opened: `S`; V: `n·d`; `n·d` bits",
            "`n·d` bits; `n·d`",
            message(SCORES) + message(HIDDEN) + message(HIDDEN, 1),
            message(HIDDEN, 1) + message(HIDDEN),
        ),
        ("LayerNorm: lift, squares, root", norm_down, norm_up, *NORM),
        ("LayerNorm: scale, requantised late", scale_down, scale_up, *SCALE),
        (
            "activation, looked up",
            "shifts: 9 or 10 bits each; `n·f`",
            "`2·n·f`",
            *activation(first),
        ),
        ("LayerNorm: lift, squares, root", norm_down, norm_up, *NORM),
        ("LayerNorm: scale, requantised late", scale_down, scale_up, *SCALE),
    ]


def outside():
    """Input, embedding, pooler, logits, range flags: bytes down and up."""
    # The text: a bit a word and one for a sign, types and position, padding twice.
    said = [message(TOKENS * ((WORDS + 8) // 8), 8), message(TOKENS * (TYPES + 1))]
    said += [message(TOKENS), message(TOKENS, 1)]
    pooler = message(WIDTH, TANH_BITS), message(WIDTH * TANH_BITS, LABEL)
    logits = message(2, 1) + message(2), message(2)  # requantised, then the server's shares
    flags = message(2 * 40, LABEL), message(16 + 5, 8)
    down = NORM[0] + SCALE[0] + pooler[0] + logits[0] + flags[0]
    up = sum(said) + NORM[1] + SCALE[1] + pooler[1] + logits[1] + flags[1]
    return down, up


def budget():
    """What the budget has for BERT-base by `lean`: its numbers by name."""
    start = "12 x  768,  30 tokens, lean: "
    line = next(l for l in BUDGET.read_text().splitlines() if l.startswith(start))
    digits = "".join(c if c.isdigit() else " " for c in line.removeprefix(start))
    names = "prepared_up prepared_down up down trips gates client server".split()
    return dict(zip(names, map(int, digits.split()), strict=True))


def count():
    """The budget, after the trips have been found to add up to it."""
    found = budget()
    down, up = outside()
    for number in range(LAYERS):
        trips = layer(first=number < LAYERS // 4)
        down += sum(trip[3] for trip in trips)
        up += sum(trip[4] for trip in trips)
    # Two of the embedding's LayerNorm, the pooler, the logits; text and answer are one more.
    trips = LAYERS * len(layer()) + 5
    assert (down, up, trips) == (found["down"], found["up"], found["trips"]), (down, up, trips)
    return found


def table():
    """The table of trips as the guide has it."""
    rows = [
        "| trip | what | server → client | bytes | client → server | bytes |",
        "|---|---|---|--:|---|--:|",
    ]
    trips = layer()
    for number, (name, down, up, *size) in enumerate(trips[:8], 1):
        again = number + 3 if number in (6, 7) else None
        which = f"{number}, {again}" if again else str(number)
        # The second LayerNorm stands with the first.
        each = " each" if again else ""
        rows.append(f"| {which} | {name} | {down} | {size[0]:,}{each} | {up} | {size[1]:,}{each} |")
    down, up = (sum(trip[i] for trip in trips) for i in (3, 4))
    rows.append(f"| all ten | a layer | | {down:,} | | {up:,} |")
    found = count()
    down, up = outside()
    rows.append(f"| 5 more | text, embedding, head, answer | | {down:,} | | {up:,} |")
    down, up = found["down"], found["up"]
    rows.append(f"| **{found['trips']}** | **all** | | **{down:,}** | | **{up:,}** |")
    return "\n".join(rows) + "\n"


# ---------------------------------------------------------------------------------------------
# Drawing. Colours are classes, each with a light and a dark value.

COLOURS = {  # name: light, dark
    "paper": ("#ffffff", "#10151c"),
    "ink": ("#1c2530", "#e4e9ef"),
    "soft": ("#566372", "#a3b0be"),
    "faint": ("#d5dbe2", "#38424e"),
    "client": ("#a8510c", "#f2a65a"),
    "clientfill": ("#fdf0e2", "#33230f"),
    "server": ("#1f5fa8", "#7db5f5"),
    "serverfill": ("#e8f1fb", "#122a44"),
    "mark": ("#a3195b", "#f58ab8"),
    "markfill": ("#fbe3ee", "#471a30"),
    "panel": ("#f5f7f9", "#1a212a"),
}


def style():
    """The style sheet of a picture."""

    def rules(which):
        classes = "".join(
            f".{name}{{fill:{both[which]}}}.{name}-line{{stroke:{both[which]}}}"
            for name, both in COLOURS.items()
        )
        return f"text{{fill:{COLOURS['ink'][which]}}}" + classes

    return (
        "text{font-family:sans-serif;font-size:12.5px}"
        ".head{font-size:15px;font-weight:bold}.bold{font-weight:bold}.small{font-size:11px}"
        ".big{font-size:17px}.mono{font-family:monospace;font-size:13px}"
        ".middle{text-anchor:middle}.end{text-anchor:end}"
        ".stroke{fill:none;stroke-width:1.4}.dash{stroke-dasharray:4 4}"
        + rules(0)
        + "@media(prefers-color-scheme:dark){"
        + rules(1)
        + "}"
    )


class Picture:
    """An SVG picture under way, from the back to the front."""

    def __init__(self, name, width, height, title):
        self.name, self.parts = name, []
        self.parts.append(
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}">\n<title>{escape(title)}</title>\n'
            f"<style>{style()}</style>\n"
            f'<rect class="paper" width="{width}" height="{height}" rx="6"/>'
        )

    def text(self, x, y, words, look=""):
        """A line of text; `look` are classes."""
        self.parts.append(f'<text x="{x:g}" y="{y:g}" class="{look}">{escape(words)}</text>')

    def lines(self, x, y, words, look="", step=17):
        """Lines of text below each other."""
        for number, line in enumerate(words):
            self.text(x, y + number * step, line, look)

    def box(self, x, y, width, height, fill="panel", line="faint", round=6):
        """A rectangle."""
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{round}" '
            f'class="{fill} {line}-line" stroke-width="1.2"/>'
        )

    def bar(self, x, y, width, height, colour):
        """A rectangle without a line."""
        place = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
        self.parts.append(f'<rect {place} class="{colour}"/>')

    def line(self, x1, y1, x2, y2, colour="faint", dash=False):
        """A straight line."""
        look = f"stroke {colour}-line" + (" dash" if dash else "")
        self.parts.append(f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" class="{look}"/>')

    def point(self, x, y, right, down, colour="soft"):
        """The tip of an arrow in any direction, given as a vector of length one."""
        ends = [(x - 8 * right + side * down, y - 8 * down - side * right) for side in (-4.5, 4.5)]
        corners = "L".join(f"{px:.1f} {py:.1f}" for px, py in [(x, y), *ends])
        self.parts.append(f'<path d="M{corners}Z" class="{colour}"/>')

    def arrow(self, x1, x2, y, colour="soft", both=False):
        """A level arrow."""
        side = 1 if x2 > x1 else -1
        self.line(x1 + (6 * side if both else 0), y, x2 - 6 * side, y, colour)
        self.point(x2, y, side, 0, colour)
        if both:
            self.point(x1, y, -side, 0, colour)

    def svg(self):
        """The file."""
        return "\n".join(self.parts) + "\n</svg>\n"


def mega(amount):
    """Bytes in megabytes, without decimals."""
    return f"{amount / 1e6:.0f} MB"


def kilo(amount):
    """Bytes in kilobytes."""
    return f"{amount / 1e3:.0f} kB" if amount >= 10_000 else f"{amount / 1e3:.1f} kB"


def parties():
    """What the two parties hold and what travels."""
    found = count()
    p = Picture("parties", 760, 322, "The two parties, what each holds and what travels")
    client = ["the label and scores,", "nothing else about", "the weights"]
    server = ["a padded length, and", "that a client asked"]
    for x, who, has, secret, learns in [
        (12, "client", "a text", "the model's hint", client),
        (552, "server", "the weights", "the hint's secret", server),
    ]:
        p.box(x, 14, 196, 292, f"{who}fill", who)
        p.text(x + 14, 40, who.capitalize(), f"head {who}")
        p.text(x + 14, 70, "has", "bold")
        p.lines(x + 14, 90, [has, secret, "its half of each bundle"])
        p.line(x + 14, 162, x + 182, 162, who)
        p.text(x + 14, 188, "learns", "bold")
        p.lines(x + 14, 208, learns)
    prepared = f"{mega(found['prepared_up'])} up, {mega(found['prepared_down'])} down"
    online = f"{found['trips']} round trips: {mega(found['up'])} up, {mega(found['down'])} down"
    for y, when, what, much in [
        (56, "Once for each model", "a hint: made of the weights, looks random", mega(HINT)),
        (134, "Ahead of time, for each answer", "a bundle: masks and what fits them", prepared),
        (212, "When there is a text", "values minus masks: random numbers", online),
    ]:
        p.text(380, y - 10, when, "bold middle")
        p.text(380, y + 18, what, "middle")
        p.text(380, y + 35, much, "soft middle")
    p.arrow(546, 214, 56, "server")
    p.arrow(214, 546, 134, both=True)
    p.arrow(214, 546, 212, both=True)
    p.text(380, 290, "BERT-base, 30 tokens, a bundle prepared alone", "small soft middle")
    return p


HINT = 102_914 * 1248  # docs/rlwe.md, section 4; docs/protocol/silent.md


def shares():
    """Shares, by example."""
    p = Picture("shares", 760, 340, "Shares: a value in two random parts")
    p.text(20, 30, "A value is the sum of two parts modulo a number; here modulo 100.", "bold")
    for x, name, look in [(330, "server", "server"), (470, "client", "client"), (610, "value", "")]:
        p.text(x, 62, name, f"bold middle {look}")
    rows = [
        ("42 is split: the client draws 55", 87, 55, 42, ["42 - 55 = -13"]),
        ("42 again: the client draws 30", 12, 30, 42, ["42 - 30 = 12"]),
        ("31 is split: the client draws 71", 60, 71, 31, ["31 - 71 = -40"]),
        ("rows 1 and 3 added, part by part", 47, 26, 73, ["42 + 31"]),
        ("row 1 times 3, part by part", 61, 65, 26, ["3 · 42 = 126"]),
    ]
    for number, (name, server, client, value, note) in enumerate(rows):
        assert (server + client) % 100 == value
        y = 74 + 44 * number
        p.text(20, y + 21, name)
        for x, part, fill, line in [
            (330, server, "serverfill", "server"),
            (470, client, "clientfill", "client"),
            (610, value, "panel", "faint"),
        ]:
            p.box(x - 38, y, 76, 32, fill, line)
            p.text(x, y + 22, str(part), "big middle")
        p.text(400, y + 22, "+", "big middle soft")
        p.text(540, y + 22, "=", "big middle soft")
        p.lines(656, y + 20, note, "small soft")
    alone = "Each part alone can be any of the 100 numbers, all equally likely, whatever the value."
    p.text(20, 318, alone, "soft")
    return p


def bundle():
    """The life of a bundle."""
    p = Picture("bundle", 760, 372, "The life of a bundle")
    for x, name in [(203, "prepared"), (374, "kept"), (534, "spent"), (687, "used")]:
        p.text(x, 30, name, "head middle")
    for x in (302, 446, 622):
        p.line(x, 16, x, 328, dash=True)
    used = (632, 116, ["online phase,", "read once"])
    for y, who, boxes in [
        (
            58,
            "client",
            [
                (110, 88, ["masks", "from a seed"]),
                (206, 88, ["② commits", "its half"]),
                (310, 128, ["encrypted on disk,", "at most 29 days"]),
                (452, 80, ["③ marked", "as spent"]),
                used,
            ],
        ),
        (
            170,
            "server",
            [
                (110, 88, ["material", "that fits"]),
                (206, 88, ["① commits", "its half"]),
                (310, 128, ["encrypted on disk,", "at most 30 days"]),
                (536, 80, ["④ marked", "as spent"]),
                used,
            ],
        ),
    ]:
        p.text(16, y + 34, who.capitalize(), f"head {who}")
        p.line(104, y + 29, 752, y + 29, who)
        for x, width, words in boxes:
            p.box(x, y, width, 58, f"{who}fill", who)
            p.lines(x + width / 2, y + 25, words, "middle small", 16)
    for x in (154, 690):
        p.line(x, 123, x, 163, "soft")
        p.point(x, 118, 0, -1)
        p.point(x, 168, 0, 1)
    p.line(250, 166, 250, 123, "soft")
    p.point(250, 118, 0, -1)
    p.line(512, 120, 552, 162, "soft")
    p.point(557, 167, 0.69, 0.72)
    p.lines(16, 264, ["A crash", "here …"], "bold mark")
    for x, lines in [
        (110, "keeps nothing: drafts|are deleted, and a half|without its partner|expires unused."),
        (310, "loses nothing:|both halves are|there afterwards."),
        (452, "costs the bundle.|It is never tried|again: the client|takes another."),
        (632, "costs the answer.|The text is safe:|what was sent|looks random."),
    ]:
        p.lines(x, 264, lines.split("|"), "small", 16)
    marked = "Nothing that a bundle masks is sent before both halves are marked, on disk."
    p.text(110, 352, marked, "soft")
    return p


def hint():
    """A linear layer by a hint."""
    p = Picture("hint", 760, 462, "A linear layer: a hint, a message, no answer")
    p.text(218, 28, "Client", "head client middle")
    p.text(600, 28, "Server: weights W", "head server middle")
    for y, height, when in [(42, 98, "once"), (150, 156, "offline"), (316, 92, "online")]:
        p.box(12, y, 736, height)
        p.text(24, y + 24, when, "bold")
    p.text(480, 66, "draws secret u, noise e")
    p.text(480, 90, "H = W·A + u·a + e", "mono server")
    p.text(480, 114, "H looks random without u", "small soft")
    p.arrow(464, 344, 86, "server")
    p.text(404, 78, "hint H", "middle server")
    p.lines(404, 106, ["the same for", "every client"], "small soft middle", 15)
    p.text(100, 66, "keeps H")
    p.text(100, 90, "A and a are public, random", "small soft")
    p.text(100, 174, "draws secret s, noise e'")
    for y, name, what in [
        (198, "mask", "r = A·s"),
        (222, "message", "b = a·s + e'"),
        (246, "share", "y = H·s"),
    ]:
        p.text(100, y, name)
        p.text(166, y, what, "mono client")
    p.arrow(344, 464, 218, "client")
    p.text(404, 210, "message b", "middle client")
    p.lines(404, 238, ["looks random", "without s"], "small soft middle", 15)
    p.text(480, 222, "share")
    p.text(524, 222, "z = -u·b", "mono server")
    correlation = "y + z = W·A·s + u·a·s - u·a·s + small = W·r + small"
    p.text(380, 286, correlation, "mono middle mark")
    p.text(100, 340, "holds r")
    p.text(100, 364, "share")
    p.text(166, 364, "y", "mono client")
    p.text(404, 354, "no message", "bold middle mark")
    p.text(480, 340, "holds x - r")
    p.text(480, 364, "share")
    p.text(524, 364, "W·(x - r) + z", "mono server")
    p.text(380, 394, "y + W·(x - r) + z = W·x + small", "mono middle mark")
    simplified = [
        "Simplified: the real hint packs eight outputs into one ring element, r, y and z are",
        "rounded, and the client's share gets fresh noise (docs/rlwe.md).",
    ]
    p.lines(24, 432, simplified, "small soft", 16)
    return p


def lookup():
    """A look-up among sixteen entries, computed."""
    entries, a, b, u = 16, 2, 9, 12
    values = [0, 0, 0, 0, 0, 0, -1, -1, 0, 3, 8, 13, 18, 22, 27, 32]
    place, index, delta = (u + b) % entries, (a + b) % entries, (a - u) % entries
    server = [int(bit) for bit in "1011001011010010"]
    client = [bit ^ (j == place) for j, bit in enumerate(server)]

    def turned(bits):
        return [bits[(j - delta) % entries] for j in range(entries)]

    def selected(bits):
        return sum(value for value, bit in zip(values, turned(bits), strict=True) if bit)

    sums = selected(server), selected(client)
    assert abs(sums[0] - sums[1]) == abs(values[index])
    p = Picture("lookup", 760, 470, "A look-up by bits that differ in one place")
    left, cell = 178, 35

    def row(y, who, bits, hot):
        p.text(20, y + 19, f"{who}'s bits", f"{who} bold")
        for j, bit in enumerate(bits):
            fill = "markfill" if j == hot else f"{who}fill" if bit else "paper"
            p.box(left + j * cell, y, cell - 3, 27, fill, "mark" if j == hot else "faint", 3)
            p.text(left + j * cell + 16, y + 19, str(int(bit)), "mono middle")

    def rows(y, bits, hot):
        for j in range(entries):
            p.text(left + j * cell + 16, y, str(j), "small soft middle")
        row(y + 6, "server", bits[0], hot)
        row(y + 38, "client", bits[1], hot)

    p.text(20, 28, "Offline: the parties get random bits that differ in one place, u + b.", "bold")
    place_is = f"neither knows the place, {u} + {b} = {place} modulo {entries}."
    p.text(20, 47, f"The server knows u = {u}, the client b = {b}; {place_is}", "soft")
    rows(70, (server, client), place)
    online = f"Online: the index is a + b = {a} + {b} = {index}. The server sends a - u = {delta};"
    p.text(20, 170, f"{online} both turn their bits.", "bold")
    random = f"To the client, which lacks u, {delta} is a random number."
    p.text(20, 189, f"Now the bits differ at {index}, the index. {random}", "soft")
    rows(212, (turned(server), turned(client)), index)
    p.lines(20, 316, ["table f, public"], "bold")
    for j, value in enumerate(values):
        height = max(2, abs(value) * 1.1)
        top = 324 - (height if value >= 0 else 0)
        colour = "mark" if j == index else "soft"
        p.bar(left + j * cell, top, cell - 3, height, colour)
        p.text(left + j * cell + 16, 344, str(value), "small middle" + " mark bold" * (j == index))
    p.text(20, 380, "Each adds up the entries that its own bits select:", "bold")
    p.text(20, 404, f"server {sums[0]}", "mono server")
    p.text(130, 404, f"client {sums[1]}", "mono client")
    p.text(240, 404, f"difference {sums[0] - sums[1]}: f({index}), but for its sign", "mono mark")
    sign = [
        "Every other entry is in both sums or in neither. The sign is a product of two signs that",
        "are fixed offline, one known to each party: two oblivious transfers take it off, unseen.",
    ]
    p.lines(20, 432, sign, "soft")
    return p


def trips():
    """One layer, message by message."""
    found = layer()
    step, top, near, far = 58, 76, 280, 560
    bottom = top + 10 * step
    p = Picture("layer", 760, bottom + 20, "One layer in ten trips")
    p.text(16, 30, "One layer, ten trips", "head")
    p.text(16, 49, "BERT-base, 30 tokens", "small soft")
    p.text(near, 30, "Client", "head client middle")
    p.text(far, 30, "Server", "head server middle")
    p.text(632, 30, "before the trip,", "small soft")
    p.text(632, 45, "without a message", "small soft")
    norm = [
        (
            ["LayerNorm: squares", "and root"],
            "lift bits; input, masked",
            "labels of the sums' bits",
        ),
        (["LayerNorm: scale"], "roots, masked", "shares of the scaled rows"),
    ]
    said = [
        (
            ["Q, K, V requantised;", "scores Q·Kᵀ"],
            "a bit an element; Q and K, masked",
            "shares of Q, K, V, scores",
        ),
        (
            ["powers of two of the", "scores, looked up"],
            "shifts; sums, masked",
            "results for either sign",
        ),
        (
            ["1 / sum of a row,", "client garbles"],
            "a bit for each bit of a sum",
            "labels of these bits",
        ),
        (
            ["powers × reciprocal:", "probabilities"],
            "both factors, masked",
            "shares of probabilities",
        ),
        (["probabilities × V"], "both factors, masked", "shares of mixed values"),
        *norm,
        (["activation,", "looked up"], "shifts; sums, masked", "results for either sign"),
        *norm,
    ]
    local = {
        0: ["weights of", "Q, K and V"],
        2: ["sums of rows,", "by both"],
        5: ["output weights", "and residual"],
        7: ["first matrix", "of the FFN"],
        8: ["second matrix", "and residual"],
    }
    for number in range(0, 10, 2):
        p.bar(8, top + number * step - 12, 744, step, "panel")
    p.line(near, 40, near, bottom - 10, "client")
    p.line(far, 40, far, bottom - 10, "server")
    for number, ((names, down, up), trip) in enumerate(zip(said, found, strict=True)):
        y = top + number * step
        p.text(16, y + 15, str(number + 1), "head")
        p.lines(44, y + 12, names, "small", 16)
        p.arrow(far - 2, near + 2, y + 9, "server")
        p.text((near + far) / 2, y + 3, down, "small middle")
        p.arrow(near + 2, far - 2, y + 34, "client")
        p.text((near + far) / 2, y + 28, up, "small middle")
        p.text(near - 8, y + 13, kilo(trip[3]), "small end server")
        p.text(far + 8, y + 38, kilo(trip[4]), "small client")
        p.lines(632, y + 12, local.get(number, []), "small soft", 16)
    down, up = (sum(trip[i] for trip in found) / 1e6 for i in (3, 4))
    p.text(near, bottom + 8, f"{down:.2f} MB down", "small bold middle server")
    p.text(far, bottom + 8, f"{up:.2f} MB up", "small bold middle client")
    return p


def missing(page):
    """The files that the guide links to, or names as code, and that are not there."""
    links = [link for link in re.findall(r"\]\(([^)#]+)", page) if ":" not in link]
    lost = [link for link in links if not (GUIDE.parent / link).exists()]
    names = {name.rstrip("/") for name in re.findall(r"`([\w./-]+(?:\.rs|\.txt|\.py|/))`", page)}
    # A name without its whole directory is that of a file in some crate.
    places = {name: [ROOT / name, *ROOT.glob(f"crates/**/{name}")] for name in names}
    return lost + [name for name in names if not any(path.exists() for path in places[name])]


def main():
    """Writes or checks everything."""
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit(__doc__)
    pictures = [draw() for draw in (parties, shares, bundle, hint, lookup, trips)]
    made = {HERE / f"{picture.name}.svg": picture.svg() for picture in pictures}
    page = GUIDE.read_text()
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    made[GUIDE] = before + BEGIN + table() + END + after
    if lost := missing(page):
        sys.exit(f"docs/guide.md names what is not there: {', '.join(lost)}")
    for path, text in made.items():
        if check and path.read_text() != text:
            sys.exit(f"{path.relative_to(ROOT)} is stale: run docs/guide/draw.py")
        if not check:
            path.write_text(text)


if __name__ == "__main__":
    main()
