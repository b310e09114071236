//! Figures side by side as horizontal bars, in groups, each with another's figure marked beside it.
//!
//! Costs of two systems lie orders of magnitude apart, so an axis may count powers of ten. A bar whose figure was not
//! measured whole is hatched, and the mark of a figure from elsewhere is a diamond.

use super::{PALETTE, STYLE, escape, number, ticks};

const WIDTH: f64 = 760.0;
/// Room for the names of groups; more if one is longer.
const LEFT: f64 = 128.0;
/// About the width of a letter; the text is not measured.
const LETTER: f64 = 6.4;
const RIGHT: f64 = 150.0;
const BAR: f64 = 13.0;
const BETWEEN_BARS: f64 = 3.0;
const BETWEEN_GROUPS: f64 = 11.0;
const TOP: f64 = 52.0;
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

/// Bars that belong together, one for each series.
#[derive(Debug, Clone)]
pub struct Group {
    /// What they have in common.
    pub name: String,
    /// In the order of the chart's series.
    pub bars: Vec<Bar>,
}

/// How long a bar of a figure is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// A tenth of a factor of ten for each tenth of its length, between the powers of ten around the figures.
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
    /// Names of the series.
    pub series: Vec<String>,
    /// The groups, from above.
    pub groups: Vec<Group>,
    /// The axis.
    pub scale: Scale,
    /// What a diamond stands for.
    pub mark: Option<String>,
}

struct Axis {
    left: f64,
    low: f64,
    high: f64,
    powers: bool,
}

impl Axis {
    fn of(chart: &Chart) -> Self {
        let names = chart.groups.iter().map(|g| g.name.chars().count());
        let left = names
            .max()
            .map_or(0.0, |n| (18.0 + LETTER * n as f64).round());
        // The bars keep half of the picture.
        let left = left.clamp(LEFT, (WIDTH - RIGHT) / 2.0);
        if let Scale::UpTo(high) = chart.scale {
            return Self {
                left,
                low: 0.0,
                high,
                powers: false,
            };
        }
        let bars = chart.groups.iter().flat_map(|g| &g.bars);
        let figures = bars.flat_map(|b| [b.value, b.mark]).flatten();
        let figures: Vec<f64> = figures.filter(|v| *v > 0.0).collect();
        let low = figures.iter().copied().fold(f64::INFINITY, f64::min);
        let high = figures.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if figures.is_empty() {
            return Self {
                left,
                low: 0.0,
                high: 1.0,
                powers: true,
            };
        }
        let low = low.log10().floor();
        Self {
            left,
            low,
            high: high.log10().ceil().max(low + 1.0),
            powers: true,
        }
    }

    fn at(&self, value: f64) -> f64 {
        let value = if self.powers {
            // Nothing is shorter than the axis begins.
            value.log10().max(self.low)
        } else {
            value
        };
        let part = ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        self.left + part * (WIDTH - self.left - RIGHT)
    }

    fn ticks(&self) -> Vec<(f64, String)> {
        if self.powers {
            let powers = self.low as i32..=self.high as i32;
            // Room for eight numbers; the lines between them have none.
            let every = (self.high - self.low) as i32 / 8 + 1;
            let tick = |p: i32| {
                let value = 10f64.powi(p);
                let named = (p - self.low as i32) % every == 0;
                (value, if named { number(value) } else { String::new() })
            };
            return powers.map(tick).collect();
        }
        ticks((self.low, self.high))
            .into_iter()
            .map(|v| (v, number(v)))
            .collect()
    }
}

impl Chart {
    /// The picture.
    pub fn svg(&self) -> String {
        let axis = Axis::of(self);
        let mut y = TOP;
        let mut body = String::new();
        for group in &self.groups {
            body += &self.group(group, &axis, &mut y);
        }
        let bottom = y - BETWEEN_GROUPS / 2.0;
        let height = bottom + BOTTOM;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
             height=\"{height}\">\n{STYLE}{}<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
             <text x=\"10\" y=\"20\" class=\"title\">{}</text>\n",
            self.patterns(),
            escape(&self.title),
        );
        out += &self.legend(axis.left);
        for (value, label) in axis.ticks() {
            let x = axis.at(value);
            out += &format!(
                "<path d=\"M{x:.1} {:.1}V{bottom:.1}\" class=\"grid\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" class=\"middle\">{label}</text>\n",
                TOP - 6.0,
                bottom + 15.0
            );
        }
        out += &body;
        out + &format!(
            "<path d=\"M{left} {:.1}V{bottom:.1}\" class=\"axis\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" class=\"middle\">{}</text>\n</svg>\n",
            TOP - 6.0,
            (axis.left + WIDTH - RIGHT) / 2.0,
            bottom + 31.0,
            escape(&self.unit),
            left = axis.left,
        )
    }

    fn color(series: usize) -> &'static str {
        PALETTE[series % PALETTE.len()]
    }

    /// A hatching in the colour of each series.
    fn patterns(&self) -> String {
        let one = |i: usize| {
            format!(
                "<pattern id=\"h{i}\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" \
                 patternTransform=\"rotate(45)\"><rect width=\"5\" height=\"5\" fill=\"{c}\" fill-opacity=\".25\"/>\
                 <rect width=\"2\" height=\"5\" fill=\"{c}\"/></pattern>\n",
                c = Self::color(i)
            )
        };
        let all: String = (0..self.series.len()).map(one).collect();
        format!("<defs>{all}</defs>\n")
    }

    fn legend(&self, left: f64) -> String {
        let bars = || self.groups.iter().flat_map(|g| &g.bars);
        let square = |fill: &str, x: f64| {
            format!("<rect x=\"{x:.1}\" y=\"28\" width=\"11\" height=\"11\" fill=\"{fill}\"/>")
        };
        let mut out = String::new();
        let mut x = left;
        let mut entry = |sign: &dyn Fn(f64) -> String, name: &str| {
            out += &sign(x);
            out += &format!(
                "<text x=\"{:.1}\" y=\"38\">{}</text>\n",
                x + 15.0,
                escape(name)
            );
            x += 30.0 + LETTER * name.chars().count() as f64;
        };
        for (i, name) in self.series.iter().enumerate() {
            // A series keeps its colour where it has no figure, but needs no name there.
            let shown = |g: &Group| g.bars.get(i).is_some_and(|b| b.value.is_some());
            if !self.groups.iter().any(shown) {
                continue;
            }
            entry(&|x| square(Self::color(i), x), name);
        }
        if bars().any(|b| b.hatched) {
            entry(&|x| square("url(#h0)", x), "extrapolated");
        }
        if let Some(mark) = &self.mark
            && bars().any(|b| b.mark.is_some())
        {
            entry(&|x| diamond(x + 5.5, 33.5), mark);
        }
        out
    }

    fn group(&self, group: &Group, axis: &Axis, y: &mut f64) -> String {
        let shown = group
            .bars
            .iter()
            .enumerate()
            .filter(|(_, b)| b.value.is_some() || b.mark.is_some());
        let shown: Vec<(usize, &Bar)> = shown.collect();
        let height = shown.len() as f64 * (BAR + BETWEEN_BARS) - BETWEEN_BARS;
        let mut out = format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" class=\"end\">{}</text>\n",
            axis.left - 8.0,
            *y + height / 2.0 + 4.0,
            escape(&group.name)
        );
        for (series, bar) in shown {
            let mut end = axis.left;
            if let Some(value) = bar.value {
                end = axis.at(value);
                let fill = if bar.hatched {
                    format!("url(#h{series})")
                } else {
                    Self::color(series).to_owned()
                };
                out += &format!(
                    "<rect x=\"{left}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{BAR}\" fill=\"{fill}\"/>\n",
                    *y,
                    (end - axis.left).max(1.0),
                    left = axis.left
                );
            }
            if let Some(mark) = bar.mark {
                let x = axis.at(mark);
                out += &diamond(x, *y + BAR / 2.0);
                end = end.max(x + 5.0);
            }
            out += &format!(
                "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>\n",
                end + 5.0,
                *y + BAR - 2.5,
                escape(&bar.label)
            );
            *y += BAR + BETWEEN_BARS;
        }
        *y += BETWEEN_GROUPS - BETWEEN_BARS;
        out
    }
}

fn diamond(x: f64, y: f64) -> String {
    format!(
        "<path d=\"M{:.1} {y:.1}l5 -5l5 5l-5 5z\" fill=\"#fff\" stroke=\"#222\" stroke-width=\"1.3\"/>\n",
        x - 5.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(scale: Scale) -> Chart {
        let bar = |value, mark, hatched| Bar {
            value,
            label: value.map_or(String::new(), number),
            mark,
            hatched,
        };
        Chart {
            title: "costs <of> two".into(),
            unit: "seconds".into(),
            series: vec!["ours".into(), "other".into()],
            groups: vec![
                Group {
                    name: "first".into(),
                    bars: vec![bar(Some(10.0), Some(100.0), false), Bar::default()],
                },
                Group {
                    name: "second".into(),
                    bars: vec![bar(Some(1000.0), None, true), bar(Some(1.0), None, false)],
                },
            ],
            scale,
            mark: Some("paper".into()),
        }
    }

    #[test]
    fn a_factor_of_ten_is_always_as_long() {
        let axis = Axis::of(&chart(Scale::Powers));
        let (a, b, c) = (axis.at(1.0), axis.at(10.0), axis.at(100.0));
        assert!((c - b - (b - a)).abs() < 1e-9);
        assert_eq!(axis.at(1000.0), WIDTH - RIGHT);
        assert_eq!(axis.at(0.0), LEFT, "what has no logarithm is at the start");
        let axis = Axis::of(&chart(Scale::UpTo(2000.0)));
        assert_eq!(axis.at(1000.0), LEFT + (WIDTH - LEFT - RIGHT) / 2.0);
    }

    #[test]
    fn marks_hatching_and_gaps_are_drawn() {
        let svg = chart(Scale::Powers).svg();
        assert!(svg.contains("costs &lt;of&gt; two"));
        assert_eq!(svg.matches("url(#h0)").count(), 2, "one bar and the legend");
        assert_eq!(
            svg.matches("fill=\"#fff\" stroke").count(),
            2,
            "one mark and the legend"
        );
        let bars = svg.matches(&format!("height=\"{BAR}\"")).count();
        assert_eq!(bars, 3, "no bar where there is no figure");
    }

    #[test]
    fn wide_axes_name_some_lines_only() {
        let axis = |low, high| Axis {
            left: LEFT,
            low,
            high,
            powers: true,
        };
        let named = |axis: Axis| axis.ticks().iter().filter(|t| !t.1.is_empty()).count();
        assert_eq!(named(axis(0.0, 4.0)), 5);
        assert_eq!(named(axis(-5.0, 8.0)), 7);
        assert_eq!(axis(-5.0, 8.0).ticks().len(), 14);
    }

    #[test]
    fn nothing_to_show_is_an_empty_chart() {
        let mut empty = chart(Scale::Powers);
        empty.groups.clear();
        assert!(empty.svg().ends_with("</svg>\n"));
    }

    #[test]
    fn long_names_have_room() {
        let mut long = chart(Scale::Powers);
        assert_eq!(Axis::of(&long).left, LEFT);
        long.groups[0].name = "a name of thirty letters or so".into();
        let axis = Axis::of(&long);
        assert!(axis.left > 30.0 * LETTER);
        assert_eq!(axis.at(1000.0), WIDTH - RIGHT);
        long.groups[0].name = "x".repeat(1000);
        assert!(Axis::of(&long).left <= WIDTH / 2.0);
    }
}
