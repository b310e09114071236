// Asks a model on someone else's server without showing it the text.
//
//   import { connect } from "./primer.js";
//   const client = await connect("https://models.example/");
//   await client.prepare(4);
//   const { label } = await client.classify("a warm and funny film");

/** Tokens of a sentence or two. */
const USUAL = 32;

/** Says why this browser, or this page, cannot do it; nothing if it can. */
export function trouble() {
  if (!globalThis.crossOriginIsolated) {
    return "This page is not isolated from others (headers Cross-Origin-Opener-Policy and " +
      "Cross-Origin-Embedder-Policy), so its workers cannot share memory.";
  }
  if (!globalThis.WebAssembly || !globalThis.Worker) return "This browser has no WebAssembly.";
  return "";
}

/** Returns the address of a server's WebSocket. */
function socketOf(url) {
  const there = new URL(url, location.href);
  there.protocol = { "http:": "ws:", "https:": "wss:" }[there.protocol] ?? there.protocol;
  if (there.pathname.endsWith("/")) there.pathname += "ws";
  [there.search, there.hash] = ["", ""];
  return there.href;
}

/** Connects to a server; by default to the one that this page is from. */
export async function connect(url = "/", { token, onprogress } = {}) {
  const why = trouble();
  if (why) throw new Error(why);
  const client = new Client(onprogress);
  try {
    await client.start(socketOf(url), token);
  } catch (error) {
    client.close();
    throw error;
  }
  return client;
}

/** A client of one server. It does one thing after another. */
class Client {
  #workers;
  #waiting = new Map();
  #calls = 0;
  #closed = "";

  constructor(onprogress) {
    this.onprogress = onprogress;
    this.card = null;
    this.fetched = 0;
    this.keeps = "nothing";
    const worker = (file) => new Worker(new URL(file, import.meta.url), { type: "module" });
    this.#workers = [worker("./worker.js"), worker("./socket.js")];
    this.#workers[0].onmessage = ({ data }) => this.#hear(data);
    for (const each of this.#workers) {
      each.onerror = (event) => this.#fail(event.message || "a file of the client is missing");
    }
  }

  async start(url, token) {
    const { port1, port2 } = new MessageChannel();
    this.#workers[1].postMessage({ port: port2 }, [port2]);
    const told = await this.#ask("connect", { port: port1, url, token }, [port1]);
    [this.card, this.fetched, this.keeps] = [told.card, told.fetched, told.keeps];
  }

  /** Prepares some answers ahead, for texts of up to `tokens` tokens. */
  async prepare(count, { tokens = Math.min(USUAL, this.card.lengths.at(-1)) } = {}) {
    await this.#ask("prepare", { tokens, count });
  }

  /** Tells how many answers are prepared, by padded length. */
  prepared() {
    return this.#ask("prepared");
  }

  /** Finds the label of a text, or of a pair of texts. */
  classify(text, { pair } = {}) {
    return this.#ask("classify", { text, pair });
  }

  /** Ends everything at once; what is under way is lost. */
  close() {
    this.#fail("the client was closed");
  }

  #ask(call, args = {}, moved = []) {
    if (this.#closed) return Promise.reject(new Error(this.#closed));
    const id = this.#calls++;
    this.#workers[0].postMessage({ id, call, args }, moved);
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }

  #hear({ id, result, error, event }) {
    if (event) {
      this.onprogress?.(event);
      return;
    }
    const { resolve, reject } = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error === undefined) resolve(result);
    else reject(new Error(error));
  }

  #fail(why) {
    this.#closed ||= why;
    for (const each of this.#workers) each.terminate();
    for (const { reject } of this.#waiting.values()) reject(new Error(why));
    this.#waiting.clear();
  }
}
