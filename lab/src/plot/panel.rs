//! A pair of axes with curves, bands, bars and bounds; several of them side by side.

use super::axis::Axis;
use super::svg::{AXIS, END, GRID, MIDDLE, Svg, TITLE};

const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 66.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 46.0;

/// What tells curves of one colour apart: lengths of dashes and gaps.
const DASHES: [&str; 4] = ["none", "6 4", "2 3", "9 3 2 3"];

/// What is drawn into a panel, in its own units.
#[derive(Debug, Clone)]
pub enum Mark {
    /// A curve with a dot at every point, named at its right end; several are named in the upper
    /// left corner, since their ends may lie close together.
    Line {
        /// The points, from left to right.
        points: Vec<(f64, f64)>,
        /// As SVG writes it.
        color: &'static str,
        /// Which dashes it has: 0 for none, the others in turn.
        dashes: usize,
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

struct Axes {
    x: Axis,
    y: Axis,
}

impl Axes {
    fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (self.x.at(x), self.y.at(y))
    }
}

impl Panel {
    fn svg(&self) -> Svg {
        let axes = Axes {
            x: Axis::linear(self.x, (LEFT, WIDTH - RIGHT)),
            y: Axis::linear(self.y, (HEIGHT - BOTTOM, TOP)),
        };
        let ((left, right), (bottom, top)) = (axes.x.place(), axes.y.place());
        let mut svg = Svg::default();
        svg.text((LEFT, 20.0), TITLE, &self.title);
        for (y, number) in axes.y.ticks() {
            svg.line([(left, y), (right, y)], GRID);
            svg.text((left - 6.0, y + 4.0), END, &number);
        }
        for (x, number) in axes.x.ticks() {
            svg.line([(x, bottom), (x, bottom + 4.0)], AXIS);
            svg.text((x, bottom + 17.0), MIDDLE, &number);
        }
        for mark in &self.marks {
            self.mark(&mut svg, &axes, mark);
        }
        self.names(&mut svg, &axes);
        svg.line([(left, top), (left, bottom), (right, bottom)], AXIS);
        let middle = f64::midpoint(left, right);
        svg.text((middle, HEIGHT - 8.0), MIDDLE, &self.x_label);
        svg
    }

    fn mark(&self, svg: &mut Svg, axes: &Axes, mark: &Mark) {
        let at = |point| axes.at(point);
        match mark {
            Mark::Line {
                points,
                color,
                dashes,
                ..
            } => {
                let points = points.iter().copied().map(at);
                svg.line(points.clone(), &stroke(color, *dashes, 2));
                points.for_each(|point| svg.dot(point, color));
            }
            Mark::Band(points) => {
                let above = points.iter().map(|p| (p.0, p.2));
                let below = points.iter().rev().map(|p| (p.0, p.1));
                svg.area(above.chain(below).map(at), "class=\"band\"");
            }
            Mark::Bars(bars) => {
                for &(from, to, height) in bars.iter().filter(|b| b.2 > 0.0) {
                    let corners = [(from, 0.0), (from, height), (to, height), (to, 0.0)];
                    svg.area(corners.map(at), "class=\"bar\"");
                }
            }
            Mark::Bound(y) => svg.line([self.x.0, self.x.1].map(|x| at((x, *y))), BOUND),
            Mark::Upright(x, label) => {
                svg.line([self.y.0, self.y.1].map(|y| at((*x, y))), BOUND);
                let (x, y) = at((*x, self.y.1));
                svg.text((x + 4.0, y + 12.0), "", label);
            }
        }
    }

    fn names(&self, svg: &mut Svg, axes: &Axes) {
        let lines = self.marks.iter().filter_map(|mark| match mark {
            Mark::Line {
                points,
                color,
                dashes,
                name,
            } => Some((points.last()?, color, *dashes, name)),
            _ => None,
        });
        let lines: Vec<_> = lines.collect();
        if let [(end, color, _, name)] = lines[..] {
            let (x, y) = axes.at(*end);
            let look = format!("{END} {}", fill(color));
            svg.text((x - 4.0, y - 8.0), &look, name);
            return;
        }
        let x = axes.x.place().0 + 10.0;
        let mut y = axes.y.place().1;
        for (_, color, dashes, name) in lines {
            y += 14.0;
            svg.line(
                [(x, y - 4.0), (x + 18.0, y - 4.0)],
                &stroke(color, dashes, 3),
            );
            svg.text((x + 23.0, y), &fill(color), name);
        }
    }
}

const BOUND: &str = "class=\"bound\"";

fn fill(color: &str) -> String {
    format!("style=\"fill:{color}\"")
}

fn stroke(color: &str, dashes: usize, width: u32) -> String {
    let dashes = DASHES[dashes % DASHES.len()];
    format!(
        "fill=\"none\" stroke=\"{color}\" stroke-width=\"{width}\" stroke-dasharray=\"{dashes}\""
    )
}

/// Draws panels two abreast as one picture.
pub fn picture(title: &str, panels: &[Panel]) -> String {
    let columns = panels.len().min(2);
    let rows = panels.len().div_ceil(2);
    let mut svg = Svg::default();
    for (i, panel) in panels.iter().enumerate() {
        let corner = ((i % 2) as f64 * WIDTH, (i / 2) as f64 * HEIGHT);
        svg.add(corner, &panel.svg());
    }
    svg.picture((WIDTH * columns as f64, HEIGHT * rows as f64), title)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_lines_do_not_cover_each_other() {
        let line = |name: &str| Mark::Line {
            points: vec![(0.0, 0.0), (1.0, 1.0)],
            color: "#123456",
            dashes: 0,
            name: name.into(),
        };
        let places = |marks: Vec<Mark>| -> Vec<String> {
            let panel = Panel {
                title: String::new(),
                x_label: String::new(),
                x: (0.0, 1.0),
                y: (0.0, 1.0),
                marks,
            };
            let svg = picture("one", &[panel]);
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
