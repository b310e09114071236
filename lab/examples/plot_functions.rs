//! Draws how far the integer functions are from the real ones: docs/function-errors.svg, and
//! docs/lookup-errors.svg for those that are looked up.
//!
//! ```text
//! cargo run -p primer-lab --example plot_functions -- docs
//! ```
//! The scales are those that `primer_plan::assign` gives every model.

use primer_lab::plot::panel::{Mark, Panel, picture};
use primer_plan::function::{Activation, Gelu, InverseRoot, Softmax, SoftmaxScratch, Tanh};

/// Samples as the spread in each of 380 columns, about one for every unit of the picture.
fn band(x: (f64, f64), samples: impl IntoIterator<Item = (f64, f64)>) -> Mark {
    const COLUMNS: usize = 380;
    let width = (x.1 - x.0) / COLUMNS as f64;
    let mut columns = vec![(f64::INFINITY, f64::NEG_INFINITY); COLUMNS];
    for (at, error) in samples {
        let column = ((at - x.0) / width) as usize;
        let (low, high) = &mut columns[column.min(COLUMNS - 1)];
        (*low, *high) = (low.min(error), high.max(error));
    }
    let middle = |i: usize| x.0 + (i as f64 + 0.5) * width;
    let seen = columns.iter().enumerate().filter(|(_, c)| c.0 <= c.1);
    Mark::Band(seen.map(|(i, c)| (middle(i), c.0, c.1)).collect())
}

/// Makes a panel with the largest error in its title.
fn panel(title: &str, x_label: &str, x: (f64, f64), bound: f64, samples: Vec<(f64, f64)>) -> Panel {
    let worst = samples.iter().fold(0f64, |m, s| m.max(s.1.abs()));
    println!("{title}: largest error {worst:.5}, bound {bound:.5}");
    assert!(worst <= bound, "{title} keeps its bound");
    Panel {
        title: format!("{title}, at most {worst:.4}"),
        x_label: x_label.into(),
        x,
        y: (-1.25 * bound, 1.25 * bound),
        marks: vec![band(x, samples), Mark::Bound(bound), Mark::Bound(-bound)],
    }
}

fn gelu() -> Panel {
    let gelu = Gelu::new(Activation::GeluErf, 13, 8, 10);
    let error = |x: i64| {
        let real = x as f64 / 256.0;
        let got = gelu.apply(x) as f64 / 1024.0;
        (real, got - Activation::GeluErf.real(real))
    };
    // Half a cell of 1/64 and one unit of 1/256 for the one's complement, times the slope of δ
    // (at most 1/2), and the rounding of an entry.
    let bound = (1.0 / 128.0 + 1.0 / 256.0) / 2.0 + 1.0 / 2048.0;
    let samples = (-1536..1536).map(error).collect();
    panel("GELU: error", "input", (-6.0, 6.0), bound, samples)
}

fn tanh() -> Panel {
    let tanh = Tanh::new(16, 10);
    let error = |x: i64| {
        let real = x as f64 / 1024.0;
        (real, tanh.apply(x) as f64 / 4096.0 - real.tanh())
    };
    let bound = 1.0 / 512.0 + 1.0 / 1024.0 + 1.0 / 8192.0;
    let samples = (-6144..6144).map(error).collect();
    panel("tanh: error", "input", (-6.0, 6.0), bound, samples)
}

/// Draws the error of the probability of a second key, `z` units of log 2 below the first.
fn softmax() -> Panel {
    let softmax = Softmax::new(15, 5, 0, 0);
    let mut scratch = SoftmaxScratch::default();
    let mut samples = Vec::new();
    for others in [0usize, 1, 3, 10, 30, 100] {
        for z in 0..16 * 32i64 {
            // `others` more keys as high as the first one make the sum larger.
            let mut row = vec![0; others + 2];
            row[1] = -z;
            let mut out = vec![0; row.len()];
            softmax.apply(&row, &mut out, &mut scratch);
            let power = (-z as f64 / 32.0).exp2();
            let real = power / (1.0 + others as f64 + power);
            samples.push((z as f64 / 32.0, out[1] as f64 / 4096.0 - real));
        }
    }
    let (x, bound) = ((0.0, 16.0), 0.5 / 32.0);
    let label = "distance from the row maximum, in units of log 2";
    panel("softmax: error of a probability", label, x, bound, samples)
}

fn inverse_root() -> Panel {
    let root = InverseRoot::new(22, 1.0);
    let error = |v: i64| {
        let got = root.apply(v) as f64 * f64::from(-root.output_fraction).exp2();
        ((v as f64).log2(), got * (v as f64).sqrt() - 1.0)
    };
    let samples = (1..1 << 10).chain((1 << 10..(1 << 21) - 1).step_by(61));
    let label = "log2 of the sum of squares, as an integer of the ring";
    let samples = samples.map(error).collect();
    panel("1/√v: relative error", label, (0.0, 21.0), 0.004, samples)
}

/// Lists arguments in steps of a 1024th, each with the two indices in cells of `1/cells` that
/// truncation may make of it, and the error of what comes out.
fn looked_up(
    (low, high): (i32, i32),
    cells: i32,
    error: impl Fn(f64, f64) -> f64,
) -> Vec<(f64, f64)> {
    let mut samples = Vec::new();
    for unit in 1024 * low..1024 * high {
        let below = (unit * cells).div_euclid(1024);
        for index in [below, below + 1] {
            // An argument on an index has that index.
            if (unit * cells) % 1024 != 0 || index == below {
                let (x, k) = (
                    f64::from(unit) / 1024.0,
                    f64::from(index) / f64::from(cells),
                );
                samples.push((x, error(x, k)));
            }
        }
    }
    samples
}

/// Draws GELU looked up in cells of some width, going on from the index along a line of some slope.
fn looked_up_gelu(cells: i32, eighths: i32) -> Panel {
    let gelu = Activation::GeluErf;
    let slope = f64::from(eighths) / 8.0;
    let samples = looked_up((-4, 4), cells, |x, k| {
        gelu.real(k) + slope * (x - k) - gelu.real(x)
    });
    panel(
        &format!("GELU, cells of 1/{cells}, slope {eighths}/8: error"),
        "input",
        (-4.0, 4.0),
        0.07,
        samples,
    )
}

/// Draws the relative error of a power of two.
fn power(cells: i32) -> Panel {
    let samples = looked_up((-12, 2), cells, |x, k| (k - x).exp2() - 1.0);
    let title = format!("2^x, cells of 1/{cells}: relative error");
    let label = "exponent, zero at the row's reference";
    panel(&title, label, (-12.0, 2.0), 0.0906, samples)
}

fn main() -> std::io::Result<()> {
    let docs = std::env::args().nth(1).unwrap_or_else(|| "docs".into());
    let panels = [gelu(), softmax(), inverse_root(), tanh()];
    let title = "Errors of the four functions against their inputs";
    std::fs::write(
        format!("{docs}/function-errors.svg"),
        picture(title, &panels),
    )?;
    let panels = [
        looked_up_gelu(16, 1),
        looked_up_gelu(32, 1),
        power(8),
        power(16),
    ];
    let title = "Errors of looked-up functions, whatever the shares";
    std::fs::write(format!("{docs}/lookup-errors.svg"), picture(title, &panels))
}
