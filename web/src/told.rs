//! What a page is told while it waits.

use crate::host;
use primer_client::Event;
use serde_json::json;

/// Tells the page of an event.
pub(crate) fn tell(event: &Event<'_>) {
    let told = match event {
        Event::Offline {
            tokens,
            bundles,
            expected,
            ..
        } => json!({
            "phase": "preparing", "tokens": tokens, "bundles": bundles, "expected": expected,
        }),
        Event::Prepared {
            tokens,
            bundles,
            seconds,
        } => json!({
            "phase": "prepared", "tokens": tokens, "bundles": bundles, "seconds": seconds,
        }),
        Event::Hint { done, bytes } => json!({ "phase": "hint", "done": done, "bytes": bytes }),
        Event::Retry { error, attempt } => json!({
            "phase": "retry", "error": error.to_string(), "attempt": attempt,
        }),
        Event::Waiting { error, pause } => json!({
            "phase": "waiting", "error": error.to_string(), "seconds": pause.as_secs_f64(),
        }),
        Event::Discarded { refusal, .. } => json!({
            "phase": "discarded", "error": refusal.to_string(),
        }),
        _ => return,
    };
    host::tell(&told.to_string());
}
