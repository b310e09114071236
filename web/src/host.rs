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
}

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
