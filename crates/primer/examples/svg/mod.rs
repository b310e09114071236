//! Just enough SVG for the plots in the documentation.
#![allow(dead_code)] // Each plot uses a part.

use std::fmt::Write;

const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 66.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 46.0;

/// What is drawn into a panel, in its own units.
pub(crate) enum Mark {
    /// From below to above at every x: the spread of a dense curve.
    Band(Vec<(f64, f64, f64)>),
    /// A bar from zero: left, right, height.
    Bars(Vec<(f64, f64, f64)>),
    /// A dashed horizontal line.
    Bound(f64),
    /// A dashed vertical line with a label.
    Upright(f64, String),
}

/// One pair of axes.
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) x_label: String,
    pub(crate) x: (f64, f64),
    pub(crate) y: (f64, f64),
    pub(crate) marks: Vec<Mark>,
}

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

fn number(v: f64) -> String {
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

impl Panel {
    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        let part = |v: f64, (low, high): (f64, f64)| (v - low) / (high - low);
        (
            LEFT + part(x, self.x) * (WIDTH - LEFT - RIGHT),
            HEIGHT - BOTTOM - part(y, self.y) * (HEIGHT - TOP - BOTTOM),
        )
    }

    fn path(&self, points: impl IntoIterator<Item = (f64, f64)>) -> String {
        let mut path = String::new();
        for (i, (x, y)) in points.into_iter().enumerate() {
            let (x, y) = self.at(x, y);
            let letter = if i == 0 { 'M' } else { 'L' };
            write!(path, "{letter}{x:.1} {y:.1}").expect("writing to memory");
        }
        path
    }

    fn draw(&self, out: &mut String) {
        let (left, bottom) = self.at(self.x.0, self.y.0);
        let (right, top) = self.at(self.x.1, self.y.1);
        *out += &format!(
            "<text x=\"{LEFT}\" y=\"20\" class=\"title\">{}</text>\n",
            self.title
        );
        for tick in ticks(self.y) {
            let y = self.at(self.x.0, tick).1;
            *out += &format!(
                "<path d=\"M{left} {y:.1}H{right}\" class=\"grid\"/>\
                 <text x=\"{}\" y=\"{:.1}\" class=\"end\">{}</text>\n",
                left - 6.0,
                y + 4.0,
                number(tick)
            );
        }
        for tick in ticks(self.x) {
            let x = self.at(tick, self.y.0).0;
            *out += &format!(
                "<path d=\"M{x:.1} {bottom}v4\" class=\"axis\"/>\
                 <text x=\"{x:.1}\" y=\"{}\" class=\"middle\">{}</text>\n",
                bottom + 17.0,
                number(tick)
            );
        }
        for mark in &self.marks {
            *out += &match mark {
                Mark::Band(points) => {
                    let above = points.iter().map(|p| (p.0, p.2));
                    let below = points.iter().rev().map(|p| (p.0, p.1));
                    format!(
                        "<path d=\"{}Z\" class=\"band\"/>\n",
                        self.path(above.chain(below))
                    )
                }
                Mark::Bars(bars) => bars
                    .iter()
                    .filter(|b| b.2 > 0.0)
                    .map(|&(from, to, height)| {
                        let path = [(from, 0.0), (from, height), (to, height), (to, 0.0)];
                        format!("<path d=\"{}Z\" class=\"bar\"/>\n", self.path(path))
                    })
                    .collect(),
                Mark::Bound(y) => {
                    let path = self.path([(self.x.0, *y), (self.x.1, *y)]);
                    format!("<path d=\"{path}\" class=\"bound\"/>\n")
                }
                Mark::Upright(x, label) => {
                    let path = self.path([(*x, self.y.0), (*x, self.y.1)]);
                    let (x, y) = self.at(*x, self.y.1);
                    format!(
                        "<path d=\"{path}\" class=\"bound\"/>\
                         <text x=\"{:.1}\" y=\"{:.1}\">{label}</text>\n",
                        x + 4.0,
                        y + 12.0
                    )
                }
            };
        }
        *out += &format!(
            "<path d=\"M{left} {top}V{bottom}H{right}\" class=\"axis\"/>\
             <text x=\"{}\" y=\"{}\" class=\"middle\">{}</text>\n",
            (left + right) / 2.0,
            HEIGHT - 8.0,
            self.x_label
        );
    }
}

/// Panels two abreast as one picture.
pub(crate) fn picture(panels: &[Panel]) -> String {
    let columns = panels.len().min(2);
    let rows = panels.len().div_ceil(2);
    let (width, height) = (WIDTH * columns as f64, HEIGHT * rows as f64);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\">\n<style>\n\
         text {{ font: 12px sans-serif; fill: #444; }}\n\
         .title {{ font-weight: bold; font-size: 13px; fill: #222; }}\n\
         .end {{ text-anchor: end; }} .middle {{ text-anchor: middle; }}\n\
         .grid {{ stroke: #e4e4e4; }} .axis {{ stroke: #888; fill: none; }}\n\
         .band {{ fill: #2a6fbb; stroke: #2a6fbb; stroke-width: .6; }}\n\
         .bar {{ fill: #2a6fbb; fill-opacity: .85; stroke: #fff; stroke-width: .6; }}\n\
         .bound {{ stroke: #c0562b; stroke-dasharray: 5 4; fill: none; }}\n\
         </style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    for (i, panel) in panels.iter().enumerate() {
        let (x, y) = ((i % 2) as f64 * WIDTH, (i / 2) as f64 * HEIGHT);
        out += &format!("<g transform=\"translate({x} {y})\">\n");
        panel.draw(&mut out);
        out += "</g>\n";
    }
    out + "</svg>\n"
}
