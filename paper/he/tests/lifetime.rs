//! How many inferences of one client flooding hides the weights from.

mod common;

use common::dense;
use primer_paper_he::product::lifetime;

/// Checks that answers that carry much noise serve for few inferences, and many rows of them for
/// fewer.
#[test]
fn flooding_hides_weights_for_some_inferences() {
    assert!(lifetime([&dense(30, 768, 768)], 1) > 1e4);
    let embedding = dense(30, 30_522, 768);
    let once = lifetime([&embedding], 1);
    assert!((100.0..1000.0).contains(&once), "{once}");
    // Squares of distances add up: twice the answers, half of the life.
    let twice = lifetime([&embedding, &embedding], 1);
    assert!((twice / once - 0.5).abs() < 1e-9);
    assert!((lifetime([&embedding, &embedding], 2) / once - 1.0).abs() < 1e-9);
    // A vocabulary of a quarter of a million.
    assert!(lifetime([&dense(30, 250_002, 768)], 1) < 10.0);
}
