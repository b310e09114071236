// The worker that holds the WebSockets. It never waits: what arrives goes into memory that it
// shares with the client's worker (ring.js), what is to be sent is posted here.

import { BELL, BYTES, CLOSED, FULL, OPEN, READ, SENT, STATE, WRITTEN, line } from "./ring.js";

/** Milliseconds until it is looked again how much has been sent. */
const SOON = 4;
/** Bytes that may wait for room in a ring. A WebSocket cannot be told to pause: a server that sends
 * more than any preparation has, faster than the client takes it, is hung up on. */
const MOST_WAITING = 2 ** 30;

const lines = new Map();

function ring(ctl) {
  Atomics.add(ctl, BELL, 1);
  Atomics.notify(ctl, BELL);
}

/** Moves what has arrived into the ring, as far as there is room. */
function fill(it) {
  const { ctl, waiting } = it;
  while (waiting.length) {
    const written = Atomics.load(ctl, WRITTEN);
    const room = BYTES - ((written - Atomics.load(ctl, READ)) | 0);
    if (room === 0) {
      if (Atomics.exchange(ctl, FULL, 1)) return;
      continue; // The client may have read before it could see that.
    }
    const count = Math.min(room, waiting[0].length);
    const at = written & (BYTES - 1);
    const first = Math.min(count, BYTES - at);
    it.ring.set(waiting[0].subarray(0, first), at);
    it.ring.set(waiting[0].subarray(first, count), 0);
    Atomics.add(ctl, WRITTEN, count);
    ring(ctl);
    it.backlog -= count;
    waiting[0] = waiting[0].subarray(count);
    if (waiting[0].length === 0) waiting.shift();
  }
  Atomics.store(ctl, FULL, 0);
  if (it.ended) end(it);
}

function end(it) {
  Atomics.store(it.ctl, STATE, CLOSED);
  ring(it.ctl);
  lines.delete(it.id);
}

/** Counts what has left. */
function count(it) {
  Atomics.store(it.ctl, SENT, (it.given - it.socket.bufferedAmount) | 0);
  ring(it.ctl);
  if (it.socket.bufferedAmount > 0 && !it.looking) {
    it.looking = true;
    setTimeout(() => {
      it.looking = false;
      count(it);
    }, SOON);
  }
}

function open(id, url, shared) {
  const none = { waiting: [], backlog: 0, given: 0, ended: false, looking: false };
  const it = { ...line(shared), id, ...none };
  lines.set(id, it);
  try {
    it.socket = new WebSocket(url);
  } catch {
    end(it);
    return;
  }
  it.socket.binaryType = "arraybuffer";
  it.socket.onopen = () => {
    Atomics.store(it.ctl, STATE, OPEN);
    ring(it.ctl);
  };
  it.socket.onmessage = ({ data }) => {
    if (it.ended) return;
    if (data instanceof ArrayBuffer && data.byteLength) {
      it.waiting.push(new Uint8Array(data));
      it.backlog += data.byteLength;
    }
    if (it.backlog > MOST_WAITING) {
      it.waiting.length = it.backlog = 0;
      it.ended = true;
      it.socket.close();
    }
    fill(it);
  };
  // What the page's own policy forbids only has an error.
  it.socket.onclose = it.socket.onerror = () => {
    it.ended ||= it.socket.readyState === WebSocket.CLOSED;
    fill(it);
  };
}

function hear({ data }) {
  if (data.open !== undefined) {
    open(data.open, data.url, data.shared);
    return;
  }
  const it = lines.get(data.send ?? data.close ?? data.room);
  if (!it) return;
  if (data.room !== undefined) fill(it);
  if (data.close !== undefined) it.socket.close();
  if (data.send !== undefined && it.socket.readyState === WebSocket.OPEN) {
    it.socket.send(data.bytes);
    it.given = (it.given + data.bytes.length) | 0;
    count(it);
  }
}

onmessage = ({ data }) => {
  data.port.onmessage = hear;
};
