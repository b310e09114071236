//! Figures side by side as horizontal bars, in groups, each with another's figure marked beside it.
//!
//! Costs of two systems lie orders of magnitude apart, so an axis may count powers of ten. A bar
//! whose figure was not measured whole is hatched, and the mark of a figure from elsewhere is a
//! diamond.

use super::axis::Axis;
use super::svg::{AXIS, END, GRID, MIDDLE, Svg, TITLE, hatched};
use super::{PALE, PALETTE};

const WIDTH: f64 = 760.0;
/// Room for the names of groups; more if one is longer.
const LEFT: f64 = 128.0;
/// About the width of a letter; the text is not measured.
const LETTER: f64 = 6.4;
const RIGHT: f64 = 150.0;
const BAR: f64 = 13.0;
const BETWEEN_BARS: f64 = 3.0;
const BETWEEN_GROUPS: f64 = 11.0;
const LEGEND: f64 = 28.0;
const LINE: f64 = 16.0;
const BOTTOM: f64 = 40.0;

/// One figure.
#[derive(Debug, Clone, Default)]
pub struct Bar {
    /// Its length; none if there is no such figure.
    pub value: Option<f64>,
    /// What is written at its end.
    pub label: String,
    /// A figure to compare it with.
    pub mark: Option<f64>,
    /// Not measured whole.
    pub hatched: bool,
}

impl Bar {
    fn is_shown(&self) -> bool {
        self.value.is_some() || self.mark.is_some()
    }
}

/// Bars that belong together, one for each series.
#[derive(Debug, Clone)]
pub struct Group {
    /// What they have in common.
    pub name: String,
    /// In the order of the chart's series.
    pub bars: Vec<Bar>,
}

/// Bars of one colour, one in each group.
#[derive(Debug, Clone)]
pub struct Series {
    /// What they have in common.
    pub name: String,
    /// As SVG writes it.
    pub color: &'static str,
}

impl Series {
    /// Makes series in the colours of the palette.
    pub fn list(names: &[&str]) -> Vec<Self> {
        let colors = PALETTE.iter().cycle();
        let series = |(name, color): (&&str, &&'static str)| Self {
            name: (*name).to_owned(),
            color,
        };
        names.iter().zip(colors).map(series).collect()
    }
}

/// How long a bar of a figure is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// A factor of ten is as long everywhere, between the powers of ten around the figures.
    Powers,
    /// In proportion, up to here.
    UpTo(f64),
}

/// Groups of bars over one axis.
#[derive(Debug, Clone)]
pub struct Chart {
    /// What is shown.
    pub title: String,
    /// What the axis counts.
    pub unit: String,
    /// What a group has a bar of each of.
    pub series: Vec<Series>,
    /// The groups, from above.
    pub groups: Vec<Group>,
    /// The axis.
    pub scale: Scale,
    /// What a diamond stands for.
    pub mark: Option<String>,
}

/// Draws several charts in one picture, from above.
pub fn stacked(title: &str, charts: &[Chart]) -> String {
    let mut all = Svg::default();
    let mut y = 0.0;
    for chart in charts {
        let (svg, height) = chart.drawn();
        all.add((0.0, y), &svg);
        y += height;
    }
    all.picture((WIDTH, y), title)
}

impl Chart {
    /// Draws the picture.
    pub fn svg(&self) -> String {
        let (svg, height) = self.drawn();
        svg.picture((WIDTH, height), &self.title)
    }

    /// Returns everything that is drawn, and its height.
    fn drawn(&self) -> (Svg, f64) {
        let axis = self.axis();
        let (left, right) = axis.place();
        let mut svg = Svg::default();
        svg.text((10.0, 20.0), TITLE, &self.title);
        let top = self.legend(&mut svg, left);
        let bottom = top + self.groups.iter().map(height).sum::<f64>() - BETWEEN_GROUPS / 2.0;
        for (x, number) in axis.ticks() {
            svg.line([(x, top - 6.0), (x, bottom)], GRID);
            svg.text((x, bottom + 15.0), MIDDLE, &number);
        }
        let mut y = top;
        for group in &self.groups {
            self.group(&mut svg, group, &axis, y);
            y += height(group);
        }
        svg.line([(left, top - 6.0), (left, bottom)], AXIS);
        let middle = f64::midpoint(left, right);
        svg.text((middle, bottom + 31.0), MIDDLE, &self.unit);
        (svg, bottom + BOTTOM)
    }

    fn bars(&self) -> impl Iterator<Item = &Bar> {
        self.groups.iter().flat_map(|g| &g.bars)
    }

    fn axis(&self) -> Axis {
        let names = self.groups.iter().map(|g| g.name.chars().count());
        let longest = (18.0 + LETTER * names.max().unwrap_or(0) as f64).round();
        // The bars keep half of the picture.
        let left = longest.clamp(LEFT, (WIDTH - RIGHT) / 2.0);
        let place = (left, WIDTH - RIGHT);
        match self.scale {
            Scale::UpTo(high) => Axis::linear((0.0, high), place),
            Scale::Powers => {
                let figures = self.bars().flat_map(|b| [b.value, b.mark]);
                Axis::powers(figures.flatten(), place)
            }
        }
    }

    /// Names every sign that is drawn, in as many lines as it takes; returns where bars begin.
    fn legend(&self, svg: &mut Svg, left: f64) -> f64 {
        let bars_of = |i: usize| self.groups.iter().filter_map(move |g| g.bars.get(i));
        let mut entries: Vec<(Option<String>, &str)> = Vec::new();
        for (i, series) in self.series.iter().enumerate() {
            // A series keeps its place where it has no figure, but needs no name there.
            if bars_of(i).any(|b| b.value.is_some()) {
                entries.push((Some(series.color.to_owned()), &series.name));
            }
            if bars_of(i).any(|b| b.hatched) {
                svg.define_hatching(series.color);
            }
        }
        if self.bars().any(|b| b.hatched) {
            svg.define_hatching(PALE);
            entries.push((Some(hatched(PALE)), "extrapolated"));
        }
        if let Some(mark) = &self.mark
            && self.bars().any(|b| b.mark.is_some())
        {
            entries.push((None, mark));
        }
        let (mut x, mut y) = (left, LEGEND);
        for (fill, name) in entries {
            let width = 30.0 + LETTER * name.chars().count() as f64;
            if x > left && x + width > WIDTH {
                (x, y) = (left, y + LINE);
            }
            match fill {
                Some(fill) => svg.rectangle((x, y), (11.0, 11.0), &fill),
                None => svg.diamond((x + 5.5, y + 5.5)),
            }
            svg.text((x + 15.0, y + 10.0), "", name);
            x += width;
        }
        y + 24.0
    }

    fn group(&self, svg: &mut Svg, group: &Group, axis: &Axis, mut y: f64) {
        let left = axis.place().0;
        let middle = y + (height(group) - BETWEEN_GROUPS) / 2.0;
        svg.text((left - 8.0, middle + 4.0), END, &group.name);
        for (series, bar) in self.series.iter().zip(&group.bars) {
            if !bar.is_shown() {
                continue;
            }
            let mut end = left;
            if let Some(value) = bar.value {
                end = axis.at(value);
                let size = ((end - left).max(1.0), BAR);
                if bar.hatched {
                    svg.rectangle((left, y), size, &hatched(series.color));
                } else {
                    svg.rectangle((left, y), size, series.color);
                }
            }
            if let Some(mark) = bar.mark {
                let x = axis.at(mark);
                svg.diamond((x, y + BAR / 2.0));
                end = end.max(x + 5.0);
            }
            svg.text((end + 5.0, y + BAR - 2.5), "", &bar.label);
            y += BAR + BETWEEN_BARS;
        }
    }
}

/// Tells how much of the picture a group takes.
fn height(group: &Group) -> f64 {
    let shown = group.bars.iter().filter(|b| b.is_shown()).count();
    shown as f64 * (BAR + BETWEEN_BARS) - BETWEEN_BARS + BETWEEN_GROUPS
}

#[cfg(test)]
mod tests {
    use super::super::number;
    use super::*;

    fn chart() -> Chart {
        let bar = |value, mark, hatched| Bar {
            value,
            label: value.map_or(String::new(), number),
            mark,
            hatched,
        };
        let group = |name: &str, bars| Group {
            name: name.into(),
            bars,
        };
        Chart {
            title: "costs <of> two".into(),
            unit: "seconds".into(),
            series: Series::list(&["ours", "other"]),
            groups: vec![
                group(
                    "first",
                    vec![bar(Some(10.0), Some(100.0), false), Bar::default()],
                ),
                group(
                    "second",
                    vec![bar(Some(1000.0), None, true), bar(Some(1.0), None, false)],
                ),
            ],
            scale: Scale::Powers,
            mark: Some("paper".into()),
        }
    }

    #[test]
    fn marks_hatching_and_gaps_are_drawn() {
        let svg = chart().svg();
        assert!(svg.contains("<title>costs &lt;of&gt; two</title>"));
        assert!(svg.contains("class=\"title\">costs &lt;of&gt; two</text>"));
        assert_eq!(
            svg.matches("url(#hatch-").count(),
            2,
            "one bar and the legend"
        );
        let own = hatched(PALETTE[0]);
        assert_eq!(svg.matches(&own).count(), 1, "in its own colour");
        assert_eq!(
            svg.matches("fill=\"#fff\" stroke").count(),
            2,
            "one mark and the legend"
        );
        let bars = svg.matches(&format!("height=\"{BAR}\"")).count();
        assert_eq!(bars, 3, "no bar where there is no figure");
    }

    #[test]
    fn charts_stand_one_above_the_other() {
        let (_, height) = chart().drawn();
        let svg = stacked("both", &[chart(), chart()]);
        assert!(svg.contains("<title>both</title>"));
        assert!(svg.contains(&format!("translate(0 {height})")));
        assert!(svg.contains(&format!("viewBox=\"0 0 {WIDTH} {}\"", 2.0 * height)));
        assert_eq!(svg.matches("class=\"title\"").count(), 2);
    }

    #[test]
    fn nothing_to_show_is_an_empty_chart() {
        let mut empty = chart();
        empty.groups.clear();
        assert!(empty.svg().ends_with("</svg>\n"));
    }

    #[test]
    fn long_names_have_room() {
        let mut long = chart();
        let left = |chart: &Chart| chart.axis().place().0;
        assert_eq!(left(&long), LEFT);
        long.groups[0].name = "a name of thirty letters or so".into();
        assert!(left(&long) > 30.0 * LETTER);
        assert_eq!(long.axis().at(1000.0), WIDTH - RIGHT);
        long.groups[0].name = "x".repeat(1000);
        assert!(left(&long) <= WIDTH / 2.0);
    }

    #[test]
    fn a_long_legend_takes_another_line() {
        let mut long = chart();
        let mut svg = Svg::default();
        assert_eq!(long.legend(&mut svg, LEFT), LEGEND + 24.0);
        long.series[1].name = "x".repeat(90);
        assert_eq!(long.legend(&mut svg, LEFT), LEGEND + 2.0 * LINE + 24.0);
    }
}
