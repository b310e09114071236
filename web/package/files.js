// Files of this page's origin (the origin private file system). Only opening one takes an event
// loop, so all are opened before the client starts. Each is open for one worker alone: a second
// tab finds them taken, and its client keeps everything in memory.

const FULL = -2;
const FAILED = -1;
/** Two for the store, as many bundles, and five for what is beside them. */
const COUNT = 2 + 32 + 5;
/** How often, and after how many milliseconds, it is looked again: a tab that was just closed, or
 * is loaded again, may still have them. */
const TRIES = 5;
const PAUSE = 200;

const handles = [];
let most = 0;

/** Opens them; says what is kept from now on. */
export async function openFiles() {
  try {
    const root = await navigator.storage.getDirectory();
    const directory = await root.getDirectoryHandle("primer", { create: true });
    const { quota = 0, usage = 0 } = await navigator.storage.estimate();
    for (let left = TRIES; ; left--) {
      try {
        await openAll(directory);
        break;
      } catch (error) {
        for (const handle of handles.splice(0)) handle.close();
        if (error.name !== "NoModificationAllowedError") throw error;
        if (left === 0) return "nothing, since another tab does";
        await new Promise((resolve) => setTimeout(resolve, PAUSE));
      }
    }
    const used = handles.reduce((sum, handle) => sum + handle.getSize(), 0);
    most = Math.max(quota - usage, 0) + used;
    return "files";
  } catch {
    for (const handle of handles.splice(0)) handle.close();
    return "nothing";
  }
}

async function openAll(directory) {
  const open = async (number) => {
    const file = await directory.getFileHandle(String(number), { create: true });
    return file.createSyncAccessHandle();
  };
  // The first decides whose they are.
  handles.push(await open(0));
  const others = Array.from({ length: COUNT - 1 }, (_, number) => open(number + 1));
  const opened = await Promise.allSettled(others);
  handles.push(...opened.filter(({ value }) => value).map(({ value }) => value));
  const failed = opened.find(({ reason }) => reason);
  if (failed) throw failed.reason;
}

function done(work) {
  try {
    return work() ?? 0;
  } catch (error) {
    return error.name === "QuotaExceededError" ? FULL : FAILED;
  }
}

export function files() {
  return handles.length;
}

export function room() {
  return most;
}

export function file_bytes(file) {
  return done(() => handles[file].getSize());
}

export function file_read(file, out, at) {
  return done(() => handles[file].read(out, { at }));
}

export function file_write(file, bytes, at) {
  return done(() => {
    if (handles[file].write(bytes, { at }) !== bytes.length) throw new Error("written in part");
  });
}

export function file_truncate(file, bytes) {
  return done(() => handles[file].truncate(bytes));
}

export function file_flush(file) {
  return done(() => handles[file].flush());
}
