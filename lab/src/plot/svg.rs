//! The few elements that plots are drawn with.

use super::{INK, PALETTE, escape};

/// A picture under way, from the back to the front.
///
/// `look` is what an element has beside its place: attributes as SVG writes them. The classes are
/// those of [`Svg::picture`].
#[derive(Default)]
pub(super) struct Svg(String);

pub(super) const TITLE: &str = "class=\"title\"";
pub(super) const MIDDLE: &str = "class=\"middle\"";
pub(super) const END: &str = "class=\"end\"";
pub(super) const GRID: &str = "class=\"grid\"";
pub(super) const AXIS: &str = "class=\"axis\"";

/// Writes a figure to a tenth of a unit, which is finer than a screen.
fn short(v: f64) -> String {
    let text = format!("{v:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

fn through(points: impl IntoIterator<Item = (f64, f64)>) -> String {
    let point = |(i, (x, y)): (usize, (f64, f64))| {
        let letter = if i == 0 { 'M' } else { 'L' };
        format!("{letter}{} {}", short(x), short(y))
    };
    points.into_iter().enumerate().map(point).collect()
}

impl Svg {
    pub(super) fn text(&mut self, (x, y): (f64, f64), look: &str, text: &str) {
        if text.is_empty() {
            return;
        }
        let space = if look.is_empty() { "" } else { " " };
        self.0 += &format!(
            "<text x=\"{}\" y=\"{}\"{space}{look}>{}</text>\n",
            short(x),
            short(y),
            escape(text)
        );
    }

    /// Draws straight from point to point.
    pub(super) fn line(&mut self, points: impl IntoIterator<Item = (f64, f64)>, look: &str) {
        self.0 += &format!("<path d=\"{}\" {look}/>\n", through(points));
    }

    /// Draws the same, back to the first point, and fills what is inside.
    pub(super) fn area(&mut self, points: impl IntoIterator<Item = (f64, f64)>, look: &str) {
        self.0 += &format!("<path d=\"{}Z\" {look}/>\n", through(points));
    }

    pub(super) fn rectangle(&mut self, at: (f64, f64), size: (f64, f64), fill: &str) {
        let [x, y, width, height] = [at.0, at.1, size.0, size.1].map(short);
        self.0 += &format!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{fill}\"/>\n"
        );
    }

    /// Draws rectangles side by side, between one height and another: from where to where each
    /// goes. What is narrower than a tenth of a unit is as wide as its rounded ends are apart, so
    /// that many of them together keep their share.
    pub(super) fn stripes(
        &mut self,
        ends: impl IntoIterator<Item = (f64, f64)>,
        (top, height): (f64, f64),
        look: &str,
    ) {
        let tenths = |v: f64| (10.0 * v).round() as i64;
        let mut joined: Vec<(i64, i64)> = Vec::new();
        for (from, to) in ends {
            let (from, to) = (tenths(from), tenths(to));
            match joined.last_mut() {
                Some(last) if last.1 == from => last.1 = to,
                _ if from < to => joined.push((from, to)),
                _ => {}
            }
        }
        if joined.is_empty() {
            return;
        }
        let (top, height) = (short(top), short(height));
        let stripe = |(from, to): (i64, i64)| {
            let (x, width) = (from as f64 / 10.0, (to - from) as f64 / 10.0);
            let (x, width) = (short(x), short(width));
            format!("M{x} {top}h{width}v{height}h-{width}z")
        };
        let stripes: String = joined.into_iter().map(stripe).collect();
        self.0 += &format!("<path d=\"{stripes}\" {look}/>\n");
    }

    pub(super) fn dot(&mut self, (x, y): (f64, f64), fill: &str) {
        let (x, y) = (short(x), short(y));
        self.0 += &format!("<circle cx=\"{x}\" cy=\"{y}\" r=\"3.2\" fill=\"{fill}\"/>\n");
    }

    /// Draws a sign for a figure from elsewhere.
    pub(super) fn diamond(&mut self, (x, y): (f64, f64)) {
        let corners = [(x - 5.0, y), (x, y - 5.0), (x + 5.0, y), (x, y + 5.0)];
        self.area(
            corners,
            "fill=\"#fff\" stroke=\"#222\" stroke-width=\"1.3\"",
        );
    }

    /// Defines a hatching, which [`hatched`] fills with.
    pub(super) fn define_hatching(&mut self, color: &str) {
        self.0 += &format!(
            "<defs><pattern id=\"{}\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" \
             patternTransform=\"rotate(45)\">\
             <rect width=\"5\" height=\"5\" fill=\"{color}\" fill-opacity=\".25\"/>\
             <rect width=\"2\" height=\"5\" fill=\"{color}\"/></pattern></defs>\n",
            hatching(color)
        );
    }

    /// Puts another one in front of this one, moved.
    pub(super) fn add(&mut self, (x, y): (f64, f64), other: &Self) {
        self.0 += &format!("<g transform=\"translate({x} {y})\">\n{}</g>\n", other.0);
    }

    /// Returns the whole, with a title that is read aloud.
    pub(super) fn picture(&self, (width, height): (f64, f64), title: &str) -> String {
        let size = format!("width=\"{width}\" height=\"{height}\"");
        let [first, second, ..] = PALETTE;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" \
             viewBox=\"0 0 {width} {height}\" {size}>\n<title>{}</title>\n<style>\n\
             text {{ font: 12px sans-serif; fill: {INK}; }}\n\
             .title {{ font-weight: bold; font-size: 13px; fill: #222; }}\n\
             .end {{ text-anchor: end; }} .middle {{ text-anchor: middle; }}\n\
             .grid {{ stroke: #e4e4e4; }} .axis {{ stroke: #888; fill: none; }}\n\
             .band {{ fill: {first}; stroke: {first}; stroke-width: .6; }}\n\
             .bar {{ fill: {first}; fill-opacity: .85; stroke: #fff; stroke-width: .6; }}\n\
             .bound {{ stroke: {second}; stroke-dasharray: 5 4; fill: none; }}\n\
             </style>\n<rect {size} fill=\"#fff\"/>\n{}</svg>\n",
            escape(title),
            self.0
        )
    }
}

/// Returns the name of a hatching: several pictures share a page and its names, so it is that of a
/// colour.
fn hatching(color: &str) -> String {
    format!("hatch-{}", color.trim_start_matches('#'))
}

/// Returns what fills a shape with a hatching that was defined.
pub(super) fn hatched(color: &str) -> String {
    format!("url(#{})", hatching(color))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that stripes, however narrow, cover as much as they are wide together.
    #[test]
    fn stripes_keep_their_share() {
        let mut svg = Svg::default();
        // A hundredth of a unit, five hundred times, at distances that do not fit the tenths.
        let ends = (0..500).map(|i| (f64::from(i) * 0.0213, f64::from(i) * 0.0213 + 0.01));
        svg.stripes(ends, (5.0, 20.0), "fill=\"#000\"");
        let widths = svg.0.split(" 5h").skip(1);
        let widths = widths.map(|rest| rest.split('v').next().unwrap().parse::<f64>().unwrap());
        let covered: f64 = widths.sum();
        assert!((4.5..5.5).contains(&covered), "{covered}");
        assert!(svg.0.contains("v20h-"), "{}", svg.0);
        let mut empty = Svg::default();
        empty.stripes([(1.0, 1.01)], (0.0, 1.0), "");
        assert_eq!(empty.0, "");
    }
}
