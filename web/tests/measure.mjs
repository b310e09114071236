// What a visit costs, beside the native client at the same server in the same minutes: seconds and
// megabytes by phase. Started by scripts/test-web, which shows what it prints; MODEL is another
// model than the embedded one.

import assert from "node:assert/strict";
import { bare, browse, native, open, serve } from "./rig.mjs";

const TEXT = "a warm and funny film";
const ASKED = 5;

const { MODEL: model } = process.env;
const server = await serve("measured", { more: model ? ["--model", model] : [] });
const context = await browse();

// A first visit: the page, the program, the hint, one answer prepared on the spot, the answer.
const began = performance.now();
const { page } = await open(context, server.web);
const shown = performance.now();
await page.getByRole("button", { name: "Ask privately" }).click();
await page.locator(".labels li").first().waitFor({ timeout: 300_000 });
const answered = performance.now();
const phases = await page.locator("#costs").innerText();
console.log(`first visit: ${((answered - began) / 1e3).toFixed(2)} s, of which ` +
  `${((shown - began) / 1e3).toFixed(2)} until the page is ready`);
console.log(phases.replaceAll(/^/gm, "  "));
await page.close();

// Prepared, then asked from stock.
const other = await bare(context, server.web);
const browser = await other.evaluate(async ([text, asked]) => {
  const { connect } = await import("/primer.js");
  let moved = 0;
  const onprogress = (event) => {
    if (event.phase === "moved") moved = event.down + event.up;
  };
  const client = await connect("/", { onprogress });
  const [began, before] = [performance.now(), moved];
  await client.prepare(asked, { tokens: 8 });
  const prepared = [(performance.now() - began) / 1e3 / asked, (moved - before) / asked];
  const answers = [];
  for (let i = 0; i < asked; i++) answers.push(await client.classify(text));
  client.close();
  return { prepared, answers };
}, [TEXT, ASKED]);
assert.ok(browser.answers.every(({ cost }) => cost.prepared_ahead));
const median = (all) => all.toSorted((a, b) => a - b)[all.length >> 1];
const asking = median(browser.answers.map(({ cost }) => cost.online_s));
const { online_up: up, online_down: down } = browser.answers[0].cost.bytes;

const alone = Array.from({ length: ASKED }, () => native(server, TEXT));
const [offline, online] = ["offline_s", "online_s"].map((name) =>
  median(alone.map((answer) => answer[name])));
const row = (name, time, bytes, beside) => console.log(`${name}: ${time.toFixed(3)} s, ` +
  `${(bytes / 1e6).toFixed(2)} MB; native ${beside.toFixed(3)} s: ${(time / beside).toFixed(1)} x`);
row("preparing, each", ...browser.prepared, offline);
row("asking from stock", asking, up + down, online);
await context.close();
await server.kill();
