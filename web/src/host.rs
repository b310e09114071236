//! What is done by the JavaScript of the worker that this runs in.

use primer_wire::clock::{Source, set_source};
use std::sync::Once;
use std::time::Duration;
use wasm_bindgen::prelude::wasm_bindgen;

#[wasm_bindgen(raw_module = "./host.js")]
extern "C" {
    /// Returns milliseconds on a clock that never goes back.
    fn now() -> f64;
    /// Returns seconds since 1970.
    fn unix_now() -> f64;
    /// Waits for some milliseconds.
    fn sleep(time: f64);
    /// Keeps the words of a panic, for the error that the page gets.
    fn panicked(words: &str);
    /// Tells the page of something, in JSON.
    pub(crate) fn tell(event: &str);

    /// Opens a WebSocket, within some milliseconds; a negative number if there is none.
    pub(crate) fn dial(url: &str, patience: f64) -> i32;
    /// Receives some bytes: how many, zero at the end, or `WAITED`.
    pub(crate) fn receive(line: u32, out: &mut [u8], patience: f64) -> i32;
    /// Sends some bytes: `GONE` or `WAITED` if they cannot be taken.
    pub(crate) fn send(line: u32, bytes: &[u8], patience: f64) -> i32;
    /// Ends a connection, behind what was sent.
    pub(crate) fn hang_up(line: u32);

    /// Returns how many files there are.
    pub(crate) fn files() -> usize;
    /// Returns how many bytes the browser gave this page room for when it started.
    pub(crate) fn room() -> f64;
    /// Returns the bytes of a file; below zero, as with those that follow, that it cannot be done.
    pub(crate) fn file_bytes(file: usize) -> f64;
    /// Reads bytes from a place on, and returns how many there were.
    pub(crate) fn file_read(file: usize, out: &mut [u8], at: f64) -> f64;
    /// Writes bytes at a place.
    pub(crate) fn file_write(file: usize, bytes: &[u8], at: f64) -> f64;
    /// Cuts off what is behind some bytes.
    pub(crate) fn file_truncate(file: usize, bytes: f64) -> f64;
    /// Makes what was written durable.
    pub(crate) fn file_flush(file: usize) -> f64;
}

/// There is no room for a file.
pub(crate) const FULL: f64 = -2.0;

/// Nothing moved for as long as was granted.
pub(crate) const WAITED: i32 = -1;
/// The other side is gone.
pub(crate) const GONE: i32 = -2;

/// Returns milliseconds; a wait without an end is one of many days.
pub(crate) fn millis(time: Option<Duration>) -> f64 {
    const MOST: f64 = 1e9;
    time.map_or(MOST, |time| (time.as_secs_f64() * 1e3).min(MOST))
}

/// Sets the clocks, and what is done at a panic.
pub(crate) fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        set_source(Source {
            now: || Duration::from_secs_f64(now() / 1e3),
            unix_now: || unix_now() as u64,
            sleep: |time| sleep(millis(Some(time))),
        });
        std::panic::set_hook(Box::new(|told| panicked(&told.to_string())));
    });
}
