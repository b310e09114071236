//! A pair of axes with curves, bands, bars and bounds; several of them side by side.

use super::{PALETTE, STYLE, escape, number, ticks};
use std::fmt::Write;

const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 66.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 46.0;

/// What is drawn into a panel, in its own units.
#[derive(Debug, Clone)]
pub enum Mark {
    /// A curve with a dot at every point, in a colour of the palette, named at its right end; several are named in the upper left
    /// corner, since their ends may lie close together.
    Line {
        /// The points, from left to right.
        points: Vec<(f64, f64)>,
        /// Which colour of the palette.
        color: usize,
        /// Its name.
        name: String,
    },
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
#[derive(Debug, Clone)]
pub struct Panel {
    /// What is shown.
    pub title: String,
    /// What the horizontal axis counts.
    pub x_label: String,
    /// From where to where the horizontal axis goes.
    pub x: (f64, f64),
    /// The same of the vertical axis.
    pub y: (f64, f64),
    /// What is drawn, one over the other.
    pub marks: Vec<Mark>,
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
            escape(&self.title)
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
        let is_line = |mark: &&Mark| matches!(mark, Mark::Line { .. });
        let alone = self.marks.iter().filter(is_line).count() == 1;
        let mut names = 0;
        for mark in &self.marks {
            *out += &match mark {
                Mark::Line {
                    points,
                    color,
                    name,
                } => {
                    let color = PALETTE[color % PALETTE.len()];
                    let name = if alone {
                        self.name_at_end(points, color, name)
                    } else {
                        names += 1;
                        let (x, y) = (left + 10.0, top + 14.0 * f64::from(names));
                        name_at(x, y, "", color, name)
                    };
                    self.line(points, color) + &name
                }
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
                         <text x=\"{:.1}\" y=\"{:.1}\">{}</text>\n",
                        x + 4.0,
                        y + 12.0,
                        escape(label)
                    )
                }
            };
        }
        *out += &format!(
            "<path d=\"M{left} {top}V{bottom}H{right}\" class=\"axis\"/>\
             <text x=\"{}\" y=\"{}\" class=\"middle\">{}</text>\n",
            (left + right) / 2.0,
            HEIGHT - 8.0,
            escape(&self.x_label)
        );
    }

    fn line(&self, points: &[(f64, f64)], color: &str) -> String {
        let path = self.path(points.iter().copied());
        let mut out =
            format!("<path d=\"{path}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"/>\n");
        for (x, y) in points {
            let (x, y) = self.at(*x, *y);
            out += &format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.2\" fill=\"{color}\"/>\n");
        }
        out
    }

    fn name_at_end(&self, points: &[(f64, f64)], color: &str, name: &str) -> String {
        let Some((x, y)) = points.last() else {
            return String::new();
        };
        let (x, y) = self.at(*x, *y);
        name_at(x - 4.0, y - 8.0, " class=\"end\"", color, name)
    }
}

fn name_at(x: f64, y: f64, class: &str, color: &str, name: &str) -> String {
    let name = escape(name);
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\"{class} style=\"fill:{color}\">{name}</text>\n")
}

/// Panels two abreast as one picture.
pub fn picture(panels: &[Panel]) -> String {
    let columns = panels.len().min(2);
    let rows = panels.len().div_ceil(2);
    let (width, height) = (WIDTH * columns as f64, HEIGHT * rows as f64);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\">\n{STYLE}\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    for (i, panel) in panels.iter().enumerate() {
        let (x, y) = ((i % 2) as f64 * WIDTH, (i / 2) as f64 * HEIGHT);
        out += &format!("<g transform=\"translate({x} {y})\">\n");
        panel.draw(&mut out);
        out += "</g>\n";
    }
    out + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_lines_do_not_cover_each_other() {
        let line = |name: &str| Mark::Line {
            points: vec![(0.0, 0.0), (1.0, 1.0)],
            color: 0,
            name: name.into(),
        };
        let places = |marks: Vec<Mark>| -> Vec<String> {
            let svg = picture(&[Panel {
                title: String::new(),
                x_label: String::new(),
                x: (0.0, 1.0),
                y: (0.0, 1.0),
                marks,
            }]);
            let names = svg.lines().filter(|l| l.contains("style=\"fill:"));
            let places = names.map(|l| l.split(" style").next().unwrap_or_default().to_owned());
            places.collect()
        };
        let one = places(vec![line("a")]);
        assert!(
            one.len() == 1 && one[0].contains("class=\"end\""),
            "{one:?}"
        );
        let two = places(vec![line("a"), line("b")]);
        assert_eq!(two.len(), 2);
        assert_ne!(two[0], two[1]);
    }
}
