//! Who does what when: lanes one above the other over an axis of time, filled where something is
//! done, and below them a table that is their legend.

use super::axis::Axis;
use super::svg::{AXIS, END, GRID, MIDDLE, Svg, TITLE};

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 20.0;
/// About the width of a letter; the text is not measured.
const LETTER: f64 = 6.8;
const LANE: f64 = 44.0;
const BETWEEN_LANES: f64 = 22.0;
const LINE: f64 = 18.0;

/// What a stretch looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// As SVG writes it.
    pub color: &'static str,
    /// Whether it is pale.
    pub pale: bool,
}

impl Look {
    fn fill(self) -> String {
        let opacity = if self.pale {
            " fill-opacity=\".4\""
        } else {
            ""
        };
        format!("fill=\"{}\"{opacity}", self.color)
    }
}

/// A part of a lane in which something is done, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stretch {
    /// Its begin.
    pub from: f64,
    /// Its end.
    pub to: f64,
    /// What it looks like.
    pub look: Look,
}

/// Lanes over one axis.
#[derive(Debug, Clone)]
pub struct Panel {
    /// What is shown.
    pub title: String,
    /// From when to when, in seconds.
    pub ends: (f64, f64),
    /// Names and stretches, from above.
    pub lanes: Vec<(String, Vec<Stretch>)>,
    /// Sections with their names: from when to when.
    pub sections: Vec<(f64, f64, String)>,
}

/// Where a row of the table has its words and figures.
#[derive(Debug, Clone)]
pub struct Row {
    /// What it stands for.
    pub looks: Vec<Look>,
    /// Its name.
    pub name: String,
    /// Its figures, in the order of the table's columns.
    pub figures: Vec<String>,
}

/// Panels one above the other, and a table that is their legend.
#[derive(Debug, Clone)]
pub struct Picture {
    /// What is shown.
    pub title: String,
    /// What was measured.
    pub about: String,
    /// The panels, from above.
    pub panels: Vec<Panel>,
    /// Names of the table's columns.
    pub columns: Vec<String>,
    /// The rows of the table.
    pub rows: Vec<Row>,
    /// Lines below the table.
    pub notes: Vec<String>,
}

impl Picture {
    /// Draws it.
    pub fn svg(&self) -> String {
        let mut svg = Svg::default();
        svg.text((10.0, 20.0), TITLE, &self.title);
        svg.text((10.0, 20.0 + LINE), "", &self.about);
        let mut y = 20.0 + 2.5 * LINE;
        for panel in &self.panels {
            y = panel.draw(&mut svg, y) + LINE;
        }
        y = self.table(&mut svg, y + 4.0);
        for note in &self.notes {
            svg.text((10.0, y), "", note);
            y += LINE;
        }
        svg.picture((WIDTH, y), &self.title)
    }

    /// Draws the table below a height; returns where it ends.
    fn table(&self, svg: &mut Svg, top: f64) -> f64 {
        let names = self.rows.iter().map(|row| row.name.chars().count());
        let left = 60.0 + LETTER * names.max().unwrap_or(0) as f64;
        let wide = |column: &String| LETTER * column.chars().count() as f64 + 26.0;
        let mut at = left;
        let mut ends = Vec::new();
        for column in &self.columns {
            at += wide(column);
            ends.push(at);
            svg.text((at, top), END, column);
        }
        svg.line([(10.0, top + 6.0), (at, top + 6.0)], AXIS);
        let mut y = top + 6.0;
        for row in &self.rows {
            y += LINE;
            for (i, look) in row.looks.iter().enumerate() {
                let from = 10.0 + 15.0 * i as f64;
                svg.stripes([(from, from + 12.0)], (y - 10.0, 11.0), &look.fill());
            }
            svg.text((50.0, y), "", &row.name);
            for (end, figure) in ends.iter().zip(&row.figures) {
                svg.text((*end, y), END, figure);
            }
        }
        y + 1.5 * LINE
    }
}

impl Panel {
    /// Draws it below a height; returns where it ends.
    fn draw(&self, svg: &mut Svg, top: f64) -> f64 {
        let axis = Axis::linear(self.ends, (LEFT, WIDTH - RIGHT));
        let (left, right) = axis.place();
        svg.text((10.0, top), TITLE, &self.title);
        let above = top + 10.0;
        let count = self.lanes.len() as f64;
        let bottom = above + count * LANE + (count - 1.0) * BETWEEN_LANES;
        for (from, to, name) in &self.sections {
            let (from, to) = (axis.at(*from), axis.at(*to));
            svg.line([(from, above), (from, bottom)], GRID);
            if LETTER * name.chars().count() as f64 + 4.0 < to - from {
                let middle = (f64::midpoint(from, to), above + LANE + 15.0);
                svg.text(middle, MIDDLE, name);
            }
        }
        let mut y = above;
        for (name, stretches) in &self.lanes {
            svg.text((left - 8.0, y + LANE / 2.0 + 4.0), END, name);
            for look in looks(stretches) {
                let alike = stretches.iter().filter(|stretch| stretch.look == look);
                let shown = alike.filter(|s| s.to > self.ends.0 && s.from < self.ends.1);
                let ends = shown.map(|s| (axis.at(s.from), axis.at(s.to)));
                svg.stripes(ends, (y, LANE), &look.fill());
            }
            svg.line([(left, y + LANE), (right, y + LANE)], GRID);
            y += LANE + BETWEEN_LANES;
        }
        for (x, number) in axis.ticks() {
            svg.line([(x, bottom), (x, bottom + 4.0)], AXIS);
            svg.text((x, bottom + 17.0), MIDDLE, &number);
        }
        svg.line([(left, bottom), (right, bottom)], AXIS);
        svg.text((left - 8.0, bottom + 17.0), END, "s");
        bottom + 17.0 + LINE
    }
}

/// Returns the looks of some stretches, each once, in the order in which they come.
fn looks(stretches: &[Stretch]) -> Vec<Look> {
    let mut looks = Vec::new();
    for stretch in stretches {
        if !looks.contains(&stretch.look) {
            looks.push(stretch.look);
        }
    }
    looks
}
