// The worker that the client runs in. It does one thing after another, and waits while it does.

import start, { Session } from "./primer_web.js";
import { openFiles } from "./files.js";
import { attach, lastPanic } from "./host.js";

let session = null;
let broken = "";

/** Returns the bytes of the files that this worker loaded, as they came. */
function fetched() {
  const files = performance.getEntriesByType("resource");
  return files.reduce((sum, file) => sum + file.encodedBodySize, 0);
}

const calls = {
  async connect({ port, url, token }) {
    attach(port);
    const [keeps] = await Promise.all([openFiles(), start()]);
    session = Session.connect(url, token);
    return { card: JSON.parse(session.card()), fetched: fetched(), keeps };
  },
  prepared: () => JSON.parse(session.prepared()),
  prepare: ({ tokens, count }) => session.prepare(tokens, count),
  classify: ({ text, pair }) => JSON.parse(session.classify(text, pair)),
};

onmessage = async ({ data: { id, call, args } }) => {
  try {
    if (broken) throw new Error(broken);
    postMessage({ id, result: await calls[call](args) });
  } catch (error) {
    // What panicked may not be used again.
    if (error instanceof WebAssembly.RuntimeError) {
      broken = `the client failed: ${lastPanic() || error.message}`;
    }
    postMessage({ id, error: broken || error.message || String(error) });
  }
};
