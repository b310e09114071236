// The client in a browser against a real server and beside the native client. Started by
// scripts/test-web.

import assert from "node:assert/strict";
import { request } from "node:http";
import { browse, elsewhere, native, open, serve, token } from "./rig.mjs";

const { PICTURES: pictures } = process.env;
const TEXTS = ["a warm and funny film", "an utter mess", "the plot is thin and the jokes are old"];
const NEAR = 0.05;

function same(found, expected, text) {
  assert.equal(found.label, expected.label, text);
  for (const [i, logit] of found.logits.entries()) {
    assert.ok(Math.abs(logit - expected.logits[i]) < NEAR, `${text}: ${found.logits}`);
  }
}

/** Asks by the page's own fields; the label and what the server saw. */
async function ask(page, text, submit) {
  const before = await page.locator("#seen").textContent();
  await page.getByLabel("Text", { exact: true }).fill(text);
  await submit();
  await page.waitForFunction((old) => document.querySelector("#seen").textContent !== old, before,
    { timeout: 60_000 });
  const label = page.locator(".labels li").first().locator(".name span").first();
  return [await label.textContent(), await page.locator("#seen").textContent()];
}

const server = await serve("server");
const context = await browse();
const { page, faults } = await open(context, server.web);

// As a person does: by mouse, then by keyboard.
const button = page.getByRole("button", { name: "Ask privately" });
const [first, seen] = await ask(page, TEXTS[0], () => button.click());
assert.equal(first, "positive");
const [, again] = await ask(page, TEXTS[0], () => page.keyboard.press("Control+Enter"));
const words = (text) => text.match(/[0-9a-f]{8}/g);
assert.equal(words(seen).length, 48, "what the server sees is shown");
assert.ok(words(seen).every((word) => !words(again).includes(word)), "masks are fresh");
await page.getByText("Page and program").waitFor();
for (const field of await page.locator("input:visible, textarea:visible, select:visible").all()) {
  const id = await field.getAttribute("id");
  assert.equal(await page.locator(`label[for=${id}]`).count(), 1, id);
}
assert.deepEqual(faults, []);

// As a program does: answers are those of the native client, asked at the same server.
const answers = await page.evaluate(async (texts) => {
  const { connect } = await import("/primer.js");
  const phases = new Set();
  const client = await connect("/", { onprogress: ({ phase }) => phases.add(phase) });
  await client.prepare(2, { tokens: 16 });
  const prepared = await client.prepared();
  const found = [];
  for (const text of texts) found.push(await client.classify(text));
  client.close();
  return { found, prepared, phases: [...phases] };
}, TEXTS);
assert.equal(answers.prepared[16], 2);
assert.deepEqual(answers.found.map(({ cost }) => cost.prepared_ahead), [true, true, false]);
for (const phase of ["moved", "preparing", "prepared"]) assert.ok(answers.phases.includes(phase));
for (const [i, text] of TEXTS.entries()) same(answers.found[i], native(server, text), text);

// The example does the same in thirty lines.
const example = await context.newPage();
await example.goto(`${server.web}example.html`);
await example.getByRole("button").click();
await example.getByText("positive").waitFor({ timeout: 60_000 });
await example.close();

// A tab that is closed in the middle leaves a server that others can ask.
const other = await open(context, server.web);
other.page.locator("#prepare-form").evaluate((form) => form.requestSubmit()).catch(() => {});
await other.page.getByText(/^Preparing /).waitFor();
await other.page.close();
await ask(page, TEXTS[1], () => button.click());

// A page of another origin is refused by the server, unless it was named.
const origin = await elsewhere();
const hospitable = await serve("hospitable", { more: ["--web-origin", origin.slice(0, -1)] });
const stranger = await context.newPage();
await stranger.goto(origin);
const connecting = (url) => stranger.evaluate(async (url) => {
  const { connect } = await import("/primer.js");
  (await connect(url)).close();
}, url);
await connecting(hospitable.web);
await assert.rejects(connecting(server.web), /does not let this page connect/);
const status = await new Promise((resolve) => {
  const headers = { Connection: "Upgrade", Upgrade: "websocket", Origin: origin.slice(0, -1),
    "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==" };
  request(`${server.web}ws`, { headers }, (answer) => resolve(answer.statusCode)).end();
});
assert.equal(status, 403);
await stranger.close();
await hospitable.kill();

// A server that asks for a token is asked for nothing without one.
const { secret, file } = token();
const closed = await serve("closed", { more: ["--token-file", file] });
const guest = await context.newPage();
await guest.goto(closed.web);
await guest.getByText(/^There is no connection: .*token/).waitFor();
await guest.getByLabel("Access token of this server").fill(secret);
await guest.getByRole("button", { name: "Connect" }).click();
await guest.getByText(/^Model /).waitFor();
await guest.close();
await closed.kill();

// Pictures, while preparing and after, light and dark, wide and narrow.
for (const [name, width, colorScheme] of [["wide", 1200, "light"], ["narrow", 400, "dark"]]) {
  await page.setViewportSize({ width, height: 900 });
  await page.emulateMedia({ colorScheme });
  await page.locator("#prepare-form").evaluate((form) => form.requestSubmit());
  await page.getByText(/^Preparing 4 /).waitFor();
  await page.screenshot({ path: `${pictures}/${name}-preparing.png`, fullPage: true });
  await page.locator("#ask:enabled").waitFor({ timeout: 120_000 });
  await page.screenshot({ path: `${pictures}/${name}.png`, fullPage: true });
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= width, `${wide} pixels at ${width}`);
}

// The server goes away in the middle, and is said to be gone; once it is back, it is asked again.
await page.locator("#length").selectOption("128");
await page.locator("#prepare-form").evaluate((form) => form.requestSubmit());
await page.getByText(/^Preparing /).waitFor();
await server.kill();
await page.getByText(/^That did not work: /).waitFor({ timeout: 60_000 });
assert.match(await page.locator("#trouble").textContent(), /cannot be reached/);
const back = await serve("server", { listen: new URL(server.web).host });
const [late] = await ask(page, TEXTS[1], () => button.click());
assert.equal(late, "negative");
await context.close();
await back.kill();
