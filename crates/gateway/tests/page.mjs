// Drives the gateway's page in a real Chromium as a person would: type, submit, read the answer.
// Started by scripts/test-page, which says where page, browser and pictures are.

import assert from "node:assert/strict";
import { createRequire } from "node:module";

const { URL: url, CHROMIUM: executablePath, PICTURES: pictures, MODULES: modules } = process.env;
const { chromium } = createRequire(`${modules}/`)("playwright-core");

const browser = await chromium.launch({
  executablePath,
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run"],
});

/** A page of some size and colour scheme that must ask nothing but the gateway. */
async function open(width, height, colorScheme) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme });
  const page = await context.newPage();
  const strangers = [];
  page.on("request", (request) => {
    if (!request.url().startsWith(url) && !request.url().startsWith("data:")) {
      strangers.push(request.url());
    }
  });
  const complaints = [];
  page.on("console", (said) => said.type() === "error" && complaints.push(said.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.goto(url);
  await page.getByText(/^Model /).waitFor();
  return { page, strangers, complaints };
}

/** Types a text, asks, and reads the best label and what the server saw. */
async function ask(page, text, submit) {
  const before = await page.locator("#seen").textContent();
  await page.getByLabel("Text", { exact: true }).fill(text);
  await submit();
  await page.waitForFunction((old) => document.querySelector("#seen").textContent !== old, before,
    { timeout: 60_000 });
  return {
    label: await page.locator(".labels li").first().locator(".name span").first().textContent(),
    seen: await page.locator("#seen").textContent(),
    yours: await page.locator("#yours").textContent(),
  };
}

const desktop = await open(1100, 1250, "light");
const { page } = desktop;
const button = page.getByRole("button", { name: "Ask privately" });
const praise = await ask(page, "a warm and funny film", () => button.click());
assert.equal(praise.label, "positive");
assert.equal(praise.yours, "a warm and funny film");

// By keyboard, the same text again: the same answer, another mask.
const again = await ask(page, "a warm and funny film", () => page.keyboard.press("Control+Enter"));
assert.equal(again.label, "positive");
const words = (seen) => seen.split(" ").filter((word) => /^[0-9a-f]{11}$/.test(word));
assert.equal(words(praise.seen).length, 33, praise.seen);
const same = words(praise.seen).filter((word) => words(again.seen).includes(word));
assert.equal(same.length, 0, "masks must be fresh");
assert.ok(!again.seen.includes("warm"));

const blame = await ask(page, "an utter mess", () => button.click());
assert.equal(blame.label, "negative");
await page.locator(".cost .value").first().waitFor();
await page.getByText("this text would have been 13 bytes").waitFor();
await page.getByText("of 4 ready").first().waitFor({ timeout: 120_000 });
await page.screenshot({ path: `${pictures}/page.png`, fullPage: true });

// What a screen reader is told.
assert.equal(await page.locator("#result").getAttribute("aria-live"), "polite");
assert.equal(await page.locator("html").getAttribute("lang"), "en");
for (const field of await page.locator("input:visible, textarea:visible").all()) {
  const id = await field.getAttribute("id");
  assert.equal(await page.locator(`label[for=${id}]`).count(), 1, id);
}

// A text that fails is said so, and the next one works.
await page.getByLabel("Text", { exact: true }).fill("");
await button.click();
await page.getByRole("alert").getByText("That did not work").waitFor();
await ask(page, "a wonderful story", () => button.click());
assert.equal(await page.locator("#trouble").isHidden(), true);

const phone = await open(390, 844, "light");
await ask(phone.page, "one of the best films of the year", () => phone.page.keyboard.press("Enter")
  .then(() => phone.page.getByRole("button", { name: "Ask privately" }).click()));
const overflow = await phone.page.evaluate(
  () => document.documentElement.scrollWidth - document.documentElement.clientWidth);
assert.equal(overflow, 0, "nothing sticks out at phone width");
await phone.page.screenshot({ path: `${pictures}/page-phone.png`, fullPage: true });

const dark = await open(1100, 1250, "dark");
await ask(dark.page, "the plot is thin and the jokes are old",
  () => dark.page.getByRole("button", { name: "Ask privately" }).click());
await dark.page.screenshot({ path: `${pictures}/page-dark.png`, fullPage: true });

for (const { strangers, complaints } of [desktop, phone, dark]) {
  assert.deepEqual(strangers, [], "the page loads from the gateway alone");
  const unexpected = complaints.filter((text) => !text.includes("400 (Bad Request)"));
  assert.deepEqual(unexpected, [], "nothing to complain about");
}
await browser.close();
console.log("page: 3 passed, 0 failed");
