//! `primer-lab bench`: the paper's tables, measured, and the machine's own figures.

use super::report;
use anyhow::Result;
use clap::Args;
use primer_lab::bench::growth::{Growth, Point};
use primer_lab::bench::{Entrant, Extras, Measurement, kernels, measure};
use primer_lab::report::Records;
use primer_measure::bench::kernels::FIGURES;
use primer_measure::command::{bench, writable};
use primer_measure::console::output;
use std::path::PathBuf;

/// Arguments of `primer-lab bench`.
#[derive(Args)]
pub(super) struct BenchArgs {
    #[command(flatten)]
    bench: bench::BenchArgs,
    /// What to measure: the schemes base, f, fp, fpc, lean, and the comparators gc (the whole model
    /// as a garbled circuit) and fhe (homomorphic encryption alone), which are run on small shapes
    /// and extrapolated, over loopback only
    #[arg(
        long,
        value_name = "A,B",
        value_delimiter = ',',
        default_value = "lean"
    )]
    schemes: Vec<Entrant>,
    /// Measure also how cost grows: 1, 2 and 4 layers, and 8 to 512 tokens on one layer
    #[arg(long, conflicts_with = "kernels")]
    growth: bool,
    /// Draw what both parties do from moment to moment of an online phase: computing, sending and
    /// receiving, waiting, by kinds of steps; of one scheme
    #[arg(long, value_name = "FILE.svg", conflicts_with = "kernels")]
    timeline: Option<PathBuf>,
    /// Write a page with tables and pictures beside the paper's figures (report.html if no file is
    /// named)
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "report.html",
          conflicts_with = "kernels")]
    report: Option<PathBuf>,
    /// Show these earlier results in the report as well: JSON of `bench` and `eval`, or directories
    /// of it
    #[arg(long, value_name = "PATH", requires = "report")]
    with: Vec<PathBuf>,
}

pub(super) fn run(args: &BenchArgs) -> Result<()> {
    if args.bench.kernels {
        let figures = kernels::measure()?;
        let meanings = kernels::FIGURES.iter().chain(&FIGURES);
        return bench::print_kernels(&figures, meanings, args.bench.json);
    }
    // Before the work, so that a bad path does not cost the results.
    let mut records = Records::read(&args.with)?;
    for path in args.report.iter().chain(&args.timeline) {
        writable(path)?;
    }
    let entrants = args.schemes.iter().map(|entrant| entrant.measured());
    let extras = Extras {
        growth: args.growth,
        timeline: args.timeline.is_some(),
    };
    let Measurement {
        grown,
        timeline,
        stopped,
    } = measure(&args.bench.request(entrants.collect()), extras)?;
    if args.bench.json {
        output::line(serde_json::to_string(&grown)?)?;
    } else {
        let growth = grown.growth.as_ref().map(text).unwrap_or_default();
        output::text(bench::text(&grown.table) + &growth)?;
    }
    if let (Some(path), Some(timeline)) = (&args.timeline, &timeline) {
        report::write(path, &timeline.svg())?;
    }
    if let Some(path) = &args.report {
        records.add_table(grown);
        report::write_page(&records, path)?;
    }
    // What was finished is told in any case.
    stopped.map_or(Ok(()), Err)
}

/// Returns growth as a person reads it.
fn text(growth: &Growth) -> String {
    let points = growth.layers.iter().chain(&growth.tokens);
    "\ngrowth, every point run whole:\n".to_owned() + &points.map(point).collect::<String>()
}

fn point(p: &Point) -> String {
    let bytes = &p.bytes;
    format!(
        "  {:<4} {} layers, {:>3} tokens: offline {:>7.2} s, {:>6.1} MB; \
         online {:>6.3} s, {:>5.1} MB, {} round trips\n",
        p.scheme,
        p.layers,
        p.tokens,
        p.offline_s,
        mega(bytes.offline_up + bytes.offline_down),
        p.online_s,
        mega(bytes.online_up + bytes.online_down),
        p.rounds_online,
    )
}

fn mega(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
