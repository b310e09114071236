// How things look. Texts are put in as text, never as markup.

export const byId = (id) => document.getElementById(id);

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export function bytes(count) {
  if (count >= 1e9) return `${(count / 1e9).toFixed(2)} GB`;
  if (count >= 1e6) return `${(count / 1e6).toFixed(1)} MB`;
  return `${Math.ceil(count / 1e3)} kB`;
}

export function seconds(value) {
  return value < 10 ? `${value.toFixed(2)} s` : `${value.toFixed(0)} s`;
}

/** Says what went wrong in one of the places for that, or takes it back. */
export function complain(id, why) {
  byId(id).hidden = !why;
  byId(id).textContent = why || "";
}

export function showLabels({ label, scores }) {
  const all = scores.length ? scores : [{ label, score: null }];
  const best = all.toSorted((a, b) => b.score - a.score);
  const rows = best.map(({ label, score }) => {
    const name = element("span", { class: "name" }, element("span", {}, label));
    if (score === null) return element("li", {}, name);
    name.append(element("span", {}, `${(100 * score).toFixed(1)}\u00a0%`));
    const full = element("span");
    full.style.width = `${100 * Math.min(Math.max(score, 0), 1)}%`;
    return element("li", {}, name, element("div", { class: "bar", "aria-hidden": "true" }, full));
  });
  byId("answer").replaceChildren(element("ol", { class: "labels" }, ...rows));
}

export function showViews(text, found) {
  byId("yours").textContent = text;
  byId("seen").textContent = `${found.shown.match(/.{1,8}/g).slice(0, 48).join(" ")} …`;
  for (const id of ["yours", "seen"]) byId(id).classList.remove("quiet");
  byId("seen-note").textContent =
    "It learns that a client asked, from which address, and how long the text is, rounded up to " +
    `${found.cost.tokens} tokens. Not the text, and not the answer. Ask the same thing again: ` +
    "every digit changes.";
  byId("range").hidden = found.in_range !== false;
  complain("removed", found.removed && `The text was too long: its last ${found.removed} tokens ` +
    "were left out.");
}

export function showStock(lengths, prepared) {
  const rows = lengths.map((tokens) => {
    const have = prepared[tokens] ?? 0;
    const cells = element("span", { class: "cells", "aria-hidden": "true" });
    for (let i = 0; i < Math.max(have, 4); i++) {
      cells.append(element("i", { class: i < have ? "full" : "" }));
    }
    return element("li", {}, element("span", {}, `up to ${tokens} tokens`), cells,
      element("span", {}, `${have} ready`));
  });
  byId("stock").replaceChildren(...rows);
}

/** Shows phases, each with its seconds and bytes. */
export function showCosts(phases) {
  const rows = phases.map(([name, time, moved]) => element("tr", {},
    element("th", { scope: "row" }, name), element("td", {}, seconds(time)),
    element("td", {}, bytes(moved))));
  byId("costs").replaceChildren(...rows);
}
