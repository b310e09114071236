"use strict";

// The page asks as any other program does: POST / with Hugging Face's JSON, and "meta" for what it
// cost and what the server saw. Texts are put in as text, never as markup.

const byId = (id) => document.getElementById(id);
let status = null;

function element(name, attributes = {}, ...children) {
  const svg = ["svg", "rect", "title"].includes(name);
  const made = svg
    ? document.createElementNS("http://www.w3.org/2000/svg", name)
    : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function headers() {
  const token = byId("token").value;
  return token ? { Authorization: `Bearer ${token}` } : {};
}

function bytes(count) {
  if (count >= 1e9) return `${(count / 1e9).toFixed(2)} GB`;
  if (count >= 1e6) return `${(count / 1e6).toFixed(1)} MB`;
  return `${Math.ceil(count / 1e3)} kB`;
}

function seconds(value) {
  return value < 10 ? `${value.toFixed(2)} s` : `${value.toFixed(0)} s`;
}

function percent(score) {
  return score === null ? "" : `${(100 * score).toFixed(1)}\u00a0%`;
}

function trouble(text) {
  const place = byId("trouble");
  place.hidden = !text;
  place.textContent = text || "";
}

// What there is to ask, and what is in stock.

function fill(told) {
  trouble("");
  const spans = told.task === "question-answering";
  byId("question-field").hidden = !spans;
  byId("pair-field").hidden = told.task !== "text-classification" || !told.pairs;
  byId("text-label").textContent = spans ? "Text with the answer in it" : "Text";
  byId("token-field").hidden = !told.token;
  const longest = told.lengths[told.lengths.length - 1];
  byId("model").textContent =
    `Model ${told.model}, ${told.task.replace("-", " ")}, up to ${longest} tokens.`;
  showStock(told);
}

function showStock(told) {
  const rows = told.stock.map((level) => {
    const cells = element("span", { class: "cells", "aria-hidden": "true" });
    for (let i = 0; i < Math.max(level.want, level.have); i++) {
      const coming = i < level.have + level.preparing ? "coming" : "";
      cells.append(element("i", { class: i < level.have ? "full" : coming }));
    }
    let state = level.want ? `${level.have} of ${level.want} ready` : `${level.have} ready`;
    if (level.preparing) {
      state = `${level.have} ready, ${level.preparing} in the making, ${level.percent ?? 0}\u00a0%`;
    }
    return element("li", {}, element("span", {}, `up to ${level.tokens} tokens`), cells,
      element("span", {}, state));
  });
  byId("stock").replaceChildren(...rows);
  complain("server-trouble", told.trouble, "The server cannot be reached at the moment");
  complain("stock-trouble", told.trouble ? null : told.stock_trouble, "Nothing is prepared");
}

function complain(id, why, what) {
  byId(id).hidden = !why;
  byId(id).textContent = why ? `${what}: ${why}.` : "";
}

async function refresh() {
  if (document.hidden) return;
  try {
    const reply = await fetch("/status", { headers: headers() });
    if (reply.status === 401) {
      byId("token-field").hidden = false;
      byId("model").textContent = "This gateway asks for a token.";
      return;
    }
    const told = await reply.json();
    if (status === null) fill(told);
    else showStock(told);
    status = told;
  } catch {
    byId("model").textContent = "The gateway does not answer.";
    status = null;
  }
}

// What came of a question.

function showLabels(labels) {
  const rows = labels.map(({ label, score }) => {
    const full = element("span");
    full.style.width = `${100 * (score ?? 0)}%`;
    const name = element("span", { class: "name" }, element("span", {}, label),
      element("span", {}, percent(score)));
    const bar = element("div", { class: "bar", "aria-hidden": "true" }, full);
    return score === null ? element("li", {}, name) : element("li", {}, name, bar);
  });
  byId("answer").replaceChildren(element("ol", { class: "labels" }, ...rows));
}

function showSpan(found, context) {
  const letters = Array.from(context);
  const part = (from, to) => letters.slice(from, to).join("");
  byId("answer").replaceChildren(
    element("p", { class: "found" }, found.answer || "no answer in the text"),
    element("p", { class: "note" }, percent(found.score)),
    element("p", { class: "text" }, part(0, found.start),
      element("mark", {}, part(found.start, found.end)), part(found.end)),
  );
}

function showTags(entities, text) {
  const letters = Array.from(text);
  const parts = [];
  let at = 0;
  for (const { entity, start, end } of entities) {
    parts.push(letters.slice(at, start).join(""));
    const word = letters.slice(start, end).join("");
    parts.push(element("mark", {}, word, element("sub", {}, ` ${entity}`)));
    at = end;
  }
  parts.push(letters.slice(at).join(""));
  const note = entities.length ? "" : "Nothing was found in the text.";
  byId("answer").replaceChildren(element("p", { class: "text" }, ...parts),
    element("p", { class: "note" }, note));
}

function showVector(vector) {
  const first = vector.slice(0, 8).map((x) => x.toFixed(3)).join(", ");
  byId("answer").replaceChildren(
    element("p", { class: "found" }, `A vector of ${vector.length} numbers`),
    element("p", { class: "note" }, `${first}, …`));
}

function bar(offline, online, title) {
  const all = Math.max(offline + online, 1e-9);
  const width = Math.max((100 * online) / all, 0.6);
  return element("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", role: "img" },
    element("title", {}, title),
    element("rect", { class: "offline", x: 0, y: 0, width: 100 - width, height: 10 }),
    element("rect", { class: "online", x: 100 - width, y: 0, width, height: 10 }));
}

function showCost(meta, text) {
  // What was prepared ahead was paid for then: the stock knows the price of one.
  const level = status?.stock.find((one) => one.tokens === meta.tokens);
  const ahead = meta.prepared_ahead;
  const prepared = ahead ? level?.seconds_each ?? null : meta.offline_s;
  const sent = ahead ? level?.bytes_each ?? null : meta.bytes.offline_up + meta.bytes.offline_down;
  const row = (name, offline, online, unit) => {
    const parts = offline === null ? unit(online) : `${unit(offline)} + ${unit(online)}`;
    const title = `${name}: preparing ${offline === null ? "unknown" : unit(offline)}, ` +
      `while you wait ${unit(online)}`;
    return element("div", { class: "cost" }, element("span", {}, name),
      bar(offline ?? 0, online, title), element("span", { class: "value" }, parts));
  };
  const legend = element("div", { class: "legend" },
    element("span", { class: "offline" }, element("i"),
      ahead ? "prepared ahead of time" : "prepared now, since nothing was in stock"),
    element("span", { class: "online" }, element("i"), "after you asked"));
  byId("cost").replaceChildren(
    row("seconds", prepared, meta.online_s, seconds),
    row("bytes", sent, meta.bytes.online_up + meta.bytes.online_down, bytes),
    legend,
    element("p", { class: "note" }, "That is the price of privacy. In the clear, this text would " +
      `have been ${new TextEncoder().encode(text).length} bytes.`));
}

function showViews(text, meta) {
  byId("yours").textContent = text;
  byId("yours").classList.remove("quiet");
  byId("seen").textContent = meta.server_saw.slice(0, 33).join(" ") + " …";
  byId("seen").classList.remove("quiet");
  byId("seen-note").textContent =
    `It learns that a client asked, and how long the text is, rounded up to ${meta.tokens} ` +
    "tokens. Nothing else. Ask the same thing again: every digit changes.";
  byId("range").hidden = meta.in_range !== false;
}

async function ask(event) {
  event.preventDefault();
  const text = byId("text").value;
  const spans = status?.task === "question-answering";
  const second = byId("pair").value;
  let inputs = text;
  if (spans) inputs = { question: byId("question").value, context: text };
  else if (second) inputs = { text, text_pair: second };
  trouble("");
  byId("ask").disabled = true;
  byId("result").setAttribute("aria-busy", "true");
  byId("answer").replaceChildren(element("p", { class: "quiet" }, "Asking…"));
  try {
    const reply = await fetch("/", {
      method: "POST",
      headers: { "Content-Type": "application/json", ...headers() },
      body: JSON.stringify({ inputs, options: { meta: true } }),
    });
    const told = await reply.json();
    if (!reply.ok) throw new Error(told.error);
    const meta = told.meta[0];
    if (spans) showSpan(told.output, text);
    else if (status?.task === "text-classification") showLabels(told.output[0]);
    else if (status?.task === "token-classification") showTags(told.output, text);
    else showVector(told.output);
    const whole = spans ? `${inputs.question}\n\n${text}` : second ? `${text}\n\n${second}` : text;
    showViews(whole, meta);
    showCost(meta, whole);
  } catch (error) {
    byId("answer").replaceChildren(element("p", { class: "quiet" }, "No answer."));
    trouble(`That did not work: ${error.message}.`);
  } finally {
    byId("ask").disabled = false;
    byId("result").setAttribute("aria-busy", "false");
    refresh();
  }
}

byId("form").addEventListener("submit", ask);
byId("form").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) byId("form").requestSubmit();
});
byId("token").addEventListener("change", refresh);
document.addEventListener("visibilitychange", refresh);
refresh();
setInterval(refresh, 1500);
