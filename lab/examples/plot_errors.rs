//! Draws how far fixed-point logits are from float ones: docs/logit-errors.svg.
//!
//! ```text
//! primer eval --task sst2 --data dev.tsv --engine float --predictions float.jsonl
//! primer eval --task sst2 --data dev.tsv --engine fixed --predictions fixed.jsonl
//! cargo run -p primer-lab --example plot_errors -- OUT.svg "NAME" float.jsonl fixed.jsonl
//! ```
//! Any number of names with their two files; each becomes a panel.

use anyhow::{Context, Result, ensure};
use primer_lab::plot::panel::{Mark, Panel, picture};
use serde_json::Value;

fn logits(path: &str) -> Result<Vec<Vec<f64>>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("reading {path}"))?;
    text.lines()
        .map(|line| {
            let line: Value = serde_json::from_str(line)?;
            let list = line["logits"].as_array().context("a line has no logits")?;
            list.iter()
                .map(|v| v.as_f64().context("a logit is not a number"))
                .collect()
        })
        .collect()
}

fn panel(name: &str, float: &str, fixed: &str) -> Result<Panel> {
    let (float, fixed) = (logits(float)?, logits(fixed)?);
    ensure!(
        fixed.len() <= float.len(),
        "{name}: more fixed-point answers than float ones"
    );
    let mut errors: Vec<f64> = float
        .iter()
        .zip(&fixed)
        .flat_map(|(a, b)| a.iter().zip(b).map(|(a, b)| (a - b).abs()))
        .collect();
    ensure!(!errors.is_empty(), "{name}: nothing to compare");
    errors.sort_by(f64::total_cmp);
    let n = errors.len();
    let mean = errors.iter().sum::<f64>() / n as f64;
    let high = errors[(n * 99).div_ceil(100) - 1];
    let max = errors[n - 1];
    println!("{name}: {n} logits, mean {mean:.4}, 99th percentile {high:.4}, largest {max:.4}");
    const BARS: usize = 40;
    let width = max / BARS as f64;
    let mut counts = [0usize; BARS];
    for error in &errors {
        counts[((error / width) as usize).min(BARS - 1)] += 1;
    }
    let percent = |count: usize| 100.0 * count as f64 / n as f64;
    let bars = counts.iter().enumerate();
    let bars = bars.map(|(i, c)| (i as f64 * width, (i + 1) as f64 * width, percent(*c)));
    let highest = counts.iter().copied().max().unwrap_or(1);
    Ok(Panel {
        title: format!("{name}: % of {n} logits, mean error {mean:.4}"),
        x_label: "absolute difference between fixed-point and float logits".into(),
        x: (0.0, 1.02 * max),
        y: (0.0, 1.1 * percent(highest)),
        marks: vec![
            Mark::Bars(bars.collect()),
            Mark::Upright(high, format!("99 % below {high:.3}")),
        ],
    })
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let usage = "usage: plot_errors OUT.svg NAME FLOAT.jsonl FIXED.jsonl ...";
    let (out, rest) = args.split_first().context(usage)?;
    ensure!(!rest.is_empty() && rest.len() % 3 == 0, usage);
    let panels: Result<Vec<Panel>> = rest.chunks(3).map(|c| panel(&c[0], &c[1], &c[2])).collect();
    let title = "Differences between fixed-point and float logits";
    std::fs::write(out, picture(title, &panels?)).with_context(|| format!("writing {out}"))
}
