// The page: connects, prepares when told, asks, and says what it costs.

import { connect, trouble } from "./primer.js";
import { byId, bytes, complain, element, seconds, showCosts, showLabels, showStock, showViews }
  from "./show.js";

/** Answers that are prepared in one go. */
const AHEAD = 4;
/** Tokens of a sentence or two. */
const USUAL = 32;

const server = new URLSearchParams(location.search).get("server") ?? "/";
let client = null;

// Phases, in the order of a first visit: name, seconds, bytes.
const costs = new Map();
let phase = null;
let moved = 0;

function spend(name, time, count) {
  const [before, sum] = costs.get(name) ?? [0, 0];
  costs.set(name, [before + time, sum + count]);
  showCosts([...costs].map(([each, [time, count]]) => [each, time, count]));
}

/** Ends the phase that runs, and begins another one if there is one. */
function turn(name, facts = {}) {
  if (phase?.name === name && !facts.again) return;
  const now = performance.now();
  if (phase) spend(phase.name, (now - phase.began) / 1e3, moved - phase.from);
  phase = name && { name, began: now, from: moved, ...facts };
  byId("progress").hidden = !name;
  if (name) show(name, null);
}

function show(words, part) {
  byId("doing").textContent = words;
  if (part === null) byId("bar").removeAttribute("value");
  else byId("bar").value = Math.min(part, 1);
}

const HINT = "The model’s hint, once";
const PREPARING = "Preparing";
const ASKING = "Asking";

function hear(event) {
  switch (event.phase) {
    case "moved":
      moved = event.down + event.up;
      if (phase?.expected) showPreparing();
      break;
    case "hint":
      turn(HINT);
      show(`Fetching the model’s hint, once: ${bytes(event.done)} of ${bytes(event.bytes)}`,
        event.done / event.bytes);
      break;
    case "preparing":
      turn(PREPARING, { again: true, ...event });
      showPreparing();
      break;
    case "prepared":
      turn(byId("result").getAttribute("aria-busy") === "true" ? ASKING : null);
      break;
    case "retry":
      show(`The connection broke, trying again: ${event.error}`, null);
      break;
    case "waiting":
      show(`${event.error}; asking again in ${seconds(event.seconds)}`, null);
      break;
  }
}

function showPreparing() {
  const { bundles, expected, from, began } = phase;
  const count = moved - from;
  const what = bundles === 1 ? "one answer" : `${bundles} answers`;
  show(`Preparing ${what}: ${bytes(count)} of about ${bytes(expected)}, ` +
    seconds((performance.now() - began) / 1e3), count / expected);
}

async function stock() {
  showStock(client.card.lengths, await client.prepared());
}

/** Does something with the client while nothing else is done with it. */
async function alone(work) {
  const buttons = [byId("ask"), byId("prepare")];
  for (const button of buttons) button.disabled = true;
  complain("trouble", "");
  try {
    await work();
  } catch (error) {
    complain("trouble", `That did not work: ${error.message}.`);
  } finally {
    turn(null);
    for (const button of buttons) button.disabled = !client;
  }
  await stock().catch(() => {});
}

async function ask(event) {
  event.preventDefault();
  if (byId("ask").disabled) return;
  const text = byId("text").value;
  const pair = byId("pair").value || undefined;
  await alone(async () => {
    byId("result").setAttribute("aria-busy", "true");
    byId("answer").textContent = "Asking…";
    try {
      turn(ASKING);
      const found = await client.classify(text, { pair });
      showLabels(found);
      showViews(pair ? `${text}\n\n${pair}` : text, found);
    } catch (error) {
      byId("answer").textContent = "No answer.";
      throw error;
    } finally {
      byId("result").setAttribute("aria-busy", "false");
    }
  });
}

/** Adds what the browser fetched until here. */
function countPage() {
  const files = [...performance.getEntriesByType("navigation"),
    ...performance.getEntriesByType("resource")];
  const count = files.reduce((sum, file) => sum + file.encodedBodySize, client.fetched);
  spend("Page and program", performance.now() / 1e3, count);
}

async function begin() {
  const why = trouble();
  complain("server-trouble", why);
  if (why) return;
  byId("model").textContent = "Connecting…";
  try {
    const token = byId("token").value || undefined;
    client = await connect(server, { token, onprogress: hear });
  } catch (error) {
    byId("model").textContent = "Not connected.";
    complain("server-trouble", `There is no connection: ${error.message}.`);
    byId("token-form").hidden = !error.message.includes("token");
    return;
  }
  const { model, does, lengths, hint_bytes: hint, pairs, classifies } = client.card;
  byId("token-form").hidden = true;
  byId("model").textContent = `Model ${model}, up to ${lengths.at(-1)} tokens. Before the first ` +
    `answer, ${bytes(hint)} are fetched that belong to the model.`;
  byId("pair-field").hidden = !pairs;
  if (!classifies) {
    complain("server-trouble", `This page shows labels, and the model gives ${does}.`);
    client.close();
    client = null;
    return;
  }
  byId("kept").textContent = client.keeps === "files"
    ? "They stay in this browser, for this page alone, and so does the model’s hint."
    : "They are gone when this tab is closed: this browser keeps " + client.keeps + ".";
  byId("length").replaceChildren(...lengths.map((tokens) =>
    element("option", { value: tokens }, `${tokens} tokens`)));
  byId("length").value = lengths.find((tokens) => tokens >= USUAL) ?? lengths.at(-1);
  countPage();
  byId("ask").disabled = byId("prepare").disabled = false;
  await stock();
}

byId("form").addEventListener("submit", ask);
byId("form").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) byId("form").requestSubmit();
});
byId("prepare-form").addEventListener("submit", (event) => {
  event.preventDefault();
  alone(() => client.prepare(AHEAD, { tokens: Number(byId("length").value) }));
});
byId("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  begin();
});
begin();
