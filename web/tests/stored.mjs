// What a browser keeps between two visits, and what two tabs share. Started by scripts/test-web.

import assert from "node:assert/strict";
import { bare, browse, serve } from "./rig.mjs";

const TEXT = "a warm and funny film";
const profile = `${process.env.WORK}/profile`;
/** The file of the hint, the last one (package/files.js). */
const HINT = "38";

/** Connects in a page, where the client stays as `client`; says what is kept and prepared. */
function connect(page) {
  return page.evaluate(async () => {
    const { connect } = await import("/primer.js");
    globalThis.phases = [];
    const onprogress = (event) => globalThis.phases.push(event);
    globalThis.client = await connect("/", { onprogress });
    return { keeps: client.keeps, prepared: await client.prepared() };
  });
}
const prepare = (page, count, tokens = 8) => page.evaluate(
  ([count, tokens]) => client.prepare(count, { tokens }), [count, tokens]);
const classify = (page) => page.evaluate((text) => client.classify(text), TEXT);
const hints = (page) => page.evaluate(() => phases.filter(({ phase }) => phase === "hint"));

const server = await serve("stored");
let context = await browse({ profile });
let page = await bare(context, server.web);
assert.deepEqual(await connect(page), { keeps: "files", prepared: {} });
await prepare(page, 4);
assert.ok((await hints(page)).length > 1, "the hint was fetched");

// Loaded again, in the same tab: from stock, and without the hint.
await page.reload();
assert.deepEqual(await connect(page), { keeps: "files", prepared: { 8: 4 } });
const again = await classify(page);
assert.equal(again.label, "positive");
assert.ok(again.cost.prepared_ahead);
assert.deepEqual(await hints(page), []);

// A second tab cannot spend what the first one has, and works nevertheless.
const second = await bare(context, server.web);
const told = await connect(second);
assert.deepEqual(told, { keeps: "nothing, since another tab does", prepared: {} });
const [ours, theirs] = await Promise.all([classify(page), classify(second)]);
assert.deepEqual([ours, theirs].map(({ cost }) => cost.prepared_ahead), [true, false]);
assert.deepEqual([ours.label, theirs.label], ["positive", "positive"]);

// The browser is closed without a word, and started again: what was spent stays spent.
await context.close();
context = await browse({ profile });
page = await bare(context, server.web);
assert.deepEqual(await connect(page), { keeps: "files", prepared: { 8: 2 } });
assert.ok((await classify(page)).cost.prepared_ahead);

// A hint that rotted is fetched again from there on (here it is one chunk), and no answer is wrong.
await page.reload();
const bytes = await page.evaluate(async (name) => {
  const root = await navigator.storage.getDirectory();
  const file = await (await root.getDirectoryHandle("primer")).getFileHandle(name);
  const { size } = await file.getFile();
  const changed = await file.createWritable({ keepExistingData: true });
  await changed.write({ type: "write", position: size / 2, data: new Uint8Array(64) });
  await changed.close();
  return size;
}, HINT);
await connect(page);
await prepare(page, 1);
const fetched = await hints(page);
assert.equal(fetched[0].done, 0);
assert.equal(fetched.at(-1).done, bytes);
assert.equal((await classify(page)).label, "positive");

// A browser that gives no more room: said plainly, and what is there still works.
const quota = await context.newCDPSession(page);
await page.reload();
await quota.send("Storage.overrideQuotaForOrigin", { origin: server.web, quotaSize: 20e6 });
const before = await connect(page);
assert.equal(before.keeps, "files");
await assert.rejects(prepare(page, 4, 128), /do not fit into the|no more room/);
assert.ok((await classify(page)).cost.prepared_ahead);

await context.close();
await server.kill();
