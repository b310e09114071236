// What the client asks of the worker that it runs in: time, a line to the server, a word to the
// page. The client waits; so everything here returns at once or sleeps on shared memory, and what
// needs an event loop (the WebSocket) lives in another worker, socket.js.

export { file_bytes, file_flush, file_read, file_truncate, file_write, files, room }
  from "./files.js";
import { BELL, BYTES, FULL, OPEN, READ, SENT, STATE, WRITTEN, line } from "./ring.js";

const WAITED = -1;
const GONE = -2;
/** Bytes that may be on their way to the server. */
const MOST_UNSENT = 4 << 20;
/** Milliseconds between two words on what has moved. */
const OFTEN = 100;

const lines = new Map();
let dialled = 0;
const moved = { down: 0, up: 0, told: 0 };
const sleeping = new Int32Array(new SharedArrayBuffer(4));
let socket = null;
let last = "";

/** Takes the port to the worker with the WebSocket. */
export function attach(port) {
  socket = port;
}

/** Returns the words of the last panic. */
export function lastPanic() {
  return last;
}

export function panicked(words) {
  last = words;
}

export function now() {
  return performance.now();
}

export function unix_now() {
  return Date.now() / 1000;
}

export function sleep(time) {
  Atomics.wait(sleeping, 0, 0, time);
}

export function tell(event) {
  tellMoved();
  postMessage({ event: JSON.parse(event) });
}

function tellMoved() {
  moved.told = performance.now();
  postMessage({ event: { phase: "moved", down: moved.down, up: moved.up } });
}

function move(direction, count) {
  moved[direction] += count;
  if (performance.now() - moved.told > OFTEN) tellMoved();
}

/** Waits until something is true of a line; tells whether it is. */
function until(ctl, patience, isTrue) {
  const deadline = performance.now() + patience;
  for (;;) {
    const bell = Atomics.load(ctl, BELL);
    if (isTrue()) return true;
    const left = deadline - performance.now();
    if (left <= 0) return false;
    Atomics.wait(ctl, BELL, bell, left);
  }
}

export function dial(url, patience) {
  const id = dialled++;
  const { shared, ctl, ring } = line();
  lines.set(id, { ctl, ring, posted: 0 });
  socket.postMessage({ open: id, url, shared });
  const answered = until(ctl, patience, () => Atomics.load(ctl, STATE) !== 0);
  if (answered && Atomics.load(ctl, STATE) === OPEN) return id;
  hang_up(id);
  return answered ? GONE : WAITED;
}

export function receive(id, out, patience) {
  if (!lines.has(id)) return 0;
  const { ctl, ring } = lines.get(id);
  const there = () => (Atomics.load(ctl, WRITTEN) - Atomics.load(ctl, READ)) | 0;
  const isOpen = () => Atomics.load(ctl, STATE) === OPEN;
  if (!until(ctl, patience, () => there() > 0 || !isOpen())) return WAITED;
  const count = Math.min(there(), out.length);
  const from = Atomics.load(ctl, READ) & (BYTES - 1);
  const first = Math.min(count, BYTES - from);
  out.set(ring.subarray(from, from + first));
  out.set(ring.subarray(0, count - first), first);
  Atomics.add(ctl, READ, count);
  if (Atomics.load(ctl, FULL)) socket.postMessage({ room: id });
  move("down", count);
  return count;
}

export function send(id, bytes, patience) {
  const there = lines.get(id);
  if (!there) return GONE;
  const { ctl } = there;
  const isOpen = () => Atomics.load(ctl, STATE) === OPEN;
  const unsent = () => (there.posted - Atomics.load(ctl, SENT)) | 0;
  if (!until(ctl, patience, () => unsent() < MOST_UNSENT || !isOpen())) return WAITED;
  if (!isOpen()) return GONE;
  const copy = bytes.slice();
  there.posted = (there.posted + bytes.length) | 0;
  socket.postMessage({ send: id, bytes: copy }, [copy.buffer]);
  move("up", bytes.length);
  return bytes.length;
}

export function hang_up(id) {
  if (lines.delete(id)) socket.postMessage({ close: id });
}
