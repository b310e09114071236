// The memory that two workers share for a line to the server: some numbers, and a ring of bytes
// that have arrived. Numbers of bytes count from the beginning and wrap at 2^32.

/** 0 while it comes up, then OPEN, then CLOSED. */
export const STATE = 0;
/** Bytes that were put into the ring, by the worker with the WebSocket. */
export const WRITTEN = 1;
/** Bytes that were taken out of it, by the client. */
export const READ = 2;
/** Bytes of the client's that have left this machine's memory. */
export const SENT = 3;
/** Rings, by a change of its number, whenever one of the above changes for the client. */
export const BELL = 4;
/** 1 while more has arrived than fits into the ring. */
export const FULL = 5;

export const OPEN = 1;
export const CLOSED = 2;

/** Bytes of the ring, a power of two. */
export const BYTES = 4 << 20;
const NUMBERS = 8;

/** Makes the memory of a line, or views of one that was made. */
export function line(shared = new SharedArrayBuffer(4 * NUMBERS + BYTES)) {
  return {
    shared,
    ctl: new Int32Array(shared, 0, NUMBERS),
    ring: new Uint8Array(shared, 4 * NUMBERS, BYTES),
  };
}
