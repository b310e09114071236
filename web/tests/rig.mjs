// Servers, the native client and browsers for web.mjs. Where they are is said by scripts/test-web.

import { execFileSync, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const { PRIMER: primer, PAGE: dir, WORK: work, CHROMIUM: executablePath, MODULES: modules } =
  process.env;
const { chromium } = createRequire(`${modules}/`)("playwright-core");

/** Starts a server that serves the page; it says where it is. */
export async function serve(state, { listen = "127.0.0.1:0", more = [] } = {}) {
  const args = ["serve", "--json", "--listen", "127.0.0.1:0", "--state", `${work}/${state}`,
    "--web", dir, "--web-listen", listen, ...more];
  const child = spawn(primer, args, { stdio: ["ignore", "pipe", "ignore"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const said = JSON.parse((await lines.next()).value);
  const ended = new Promise((resolve) => child.on("exit", resolve));
  process.on("exit", () => child.kill("SIGKILL"));
  const kill = () => {
    child.kill("SIGKILL");
    return ended;
  };
  return { ...said, kill };
}

/** Serves the page's files from another origin, isolated, without a policy on connections. */
export async function elsewhere() {
  const kinds = { html: "text/html", css: "text/css", js: "text/javascript",
    wasm: "application/wasm", svg: "image/svg+xml" };
  const server = createServer((request, answer) => {
    const path = request.url === "/" ? "/index.html" : request.url;
    if (!existsSync(`${dir}${path}`)) {
      answer.writeHead(404).end();
      return;
    }
    answer.setHeader("Content-Type", kinds[path.split(".").at(-1)]);
    answer.setHeader("Cross-Origin-Opener-Policy", "same-origin");
    answer.setHeader("Cross-Origin-Embedder-Policy", "require-corp");
    answer.end(readFileSync(`${dir}${path}`));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  server.unref();
  return `http://127.0.0.1:${server.address().port}/`;
}

/** Makes an access token, and a server's file with its hash. */
export function token() {
  const file = `${work}/tokens`;
  const made = execFileSync(primer, ["token", "new", "--quiet", file], { encoding: "utf8" });
  return { secret: made.trim(), file };
}

/** Asks with the native client; seconds are those of the whole command. */
export function native(server, text) {
  const args = ["classify", "--json", "--server", server.address, "--trust-fingerprint",
    server.fingerprint, "--state", `${work}/native`, text];
  return JSON.parse(execFileSync(primer, args, { stdio: ["ignore", "pipe", "ignore"] }));
}

/** Starts a browser; with a directory it remembers. */
export async function browse(options = {}) {
  const args = ["--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run"];
  const { profile = `${work}/profile-${Math.random()}`, ...rest } = options;
  return chromium.launchPersistentContext(profile, { executablePath, args, ...rest });
}

/** Opens the page; it may ask nobody but its server, and must not complain. */
export async function open(context, url) {
  const page = await context.newPage();
  const faults = [];
  page.on("request", (request) => {
    if (!request.url().startsWith(url)) faults.push(`asks ${request.url()}`);
  });
  page.on("console", (said) => said.type() === "error" && faults.push(said.text()));
  page.on("pageerror", (error) => faults.push(String(error)));
  await page.goto(url);
  await page.getByText(/^Model /).waitFor();
  return { page, faults };
}

/** Opens a page of the server's origin that has no client of its own yet. */
export async function bare(context, url) {
  const page = await context.newPage();
  await page.goto(`${url}primer.js`);
  return page;
}
