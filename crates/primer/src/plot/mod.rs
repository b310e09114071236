//! Plots as SVG, readable on their own, in a page and in a README: white ground, no script, no font of their own.
//!
//! [`panel`] draws curves over a pair of axes, [`bars`] compares figures. They know nothing of what they show.

pub mod bars;
pub mod panel;

/// Colours of series, in this order.
pub const PALETTE: [&str; 5] = ["#2a6fbb", "#c0562b", "#3b8f5a", "#7a5fa8", "#b58a1b"];

/// The classes that every plot uses.
const STYLE: &str = "<style>\n\
    text { font: 12px sans-serif; fill: #444; }\n\
    .title { font-weight: bold; font-size: 13px; fill: #222; }\n\
    .end { text-anchor: end; } .middle { text-anchor: middle; }\n\
    .grid { stroke: #e4e4e4; } .axis { stroke: #888; fill: none; }\n\
    .band { fill: #2a6fbb; stroke: #2a6fbb; stroke-width: .6; }\n\
    .bar { fill: #2a6fbb; fill-opacity: .85; stroke: #fff; stroke-width: .6; }\n\
    .bound { stroke: #c0562b; stroke-dasharray: 5 4; fill: none; }\n\
    </style>\n";

/// Steps of 1, 2 or 5 times a power of ten, about five of them.
fn ticks((low, high): (f64, f64)) -> Vec<f64> {
    let raw = (high - low) / 5.0;
    let power = 10f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|m| m * power)
        .find(|s| *s >= raw)
        .unwrap_or(power);
    let first = (low / step).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last).map(|i| i as f64 * step).collect()
}

/// A number with as many digits as a reader needs.
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

/// Text as it may stand in SVG and HTML.
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
    fn axes_have_round_steps() {
        assert_eq!(ticks((0.0, 10.0)), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(ticks((-1.0, 1.0)), [-1.0, -0.5, 0.0, 0.5, 1.0]);
        assert_eq!(number(0.5), "0.5");
        assert_eq!(number(-12.25), "\u{2212}12.25");
        assert_eq!(number(123_456.0), "123456");
    }

    #[test]
    fn text_stays_text() {
        assert_eq!(escape("a<b & \"c\""), "a&lt;b &amp; &quot;c&quot;");
    }
}
