//! Plots as SVG, readable on their own, in a page and in a README: white ground, no script, no font
//! of their own, and a title that a screen reader finds.
//!
//! [`panel`] draws curves over a pair of axes, [`bars`] compares figures, [`lanes`] shows who does
//! what when; all place figures by an `axis` and write elements through `svg`. They know nothing of
//! what they show.
//!
//! # Why not a crate
//!
//! `plotters` 0.3.7 (its last release is of September 2024), with its SVG backend alone, was tried
//! on the same figures. It adds three crates and about ten seconds of compilation, and the pictures
//! get worse:
//! - Coordinates are whole pixels, so a dense curve (`docs/function-errors.svg`) becomes a
//!   staircase.
//! - Nothing can be filled with a pattern: an extrapolated bar is not hatched.
//! - A legend lies inside the axes, over the bars.
//! - Groups of different sizes, labels at the ends of bars and marks beside them have to be placed
//!   by hand as here; the bar chart alone took ninety lines, the panel forty more.
//! - A picture has no title, and every element repeats its font: twice the size.

mod axis;
pub mod bars;
pub mod lanes;
pub mod panel;
mod svg;

/// Colours of series. All of them can be told apart, and none is close to [`INK`] or [`PALE`].
pub const PALETTE: [&str; 8] = [
    "#2a6fbb", "#c0562b", "#3b8f5a", "#7a5fa8", "#b58a1b", "#1a9aa8", "#c7588f", "#8a5a44",
];
/// What belongs to no series, and is before all.
pub const INK: &str = "#444444";
/// What belongs to no series, and comes second.
pub const PALE: &str = "#a3a8ae";

/// Writes a number with as many digits as a reader needs.
pub fn number(v: f64) -> String {
    if v == 0.0 {
        return "0".into();
    }
    let digits = (3 - v.abs().log10().floor() as i32).clamp(0, 6) as usize;
    let text = format!("{v:.digits$}");
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    };
    text.replace('-', "\u{2212}")
}

/// Writes text as it may stand in SVG and HTML.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(number(0.5), "0.5");
        assert_eq!(number(-12.25), "\u{2212}12.25");
        assert_eq!(number(123_456.0), "123456");
    }

    #[test]
    fn text_stays_text() {
        assert_eq!(escape("a<b & \"c\""), "a&lt;b &amp; &quot;c&quot;");
    }
}
