//! `primer bench`: private inferences on this machine, measured.

use anyhow::Result;
use clap::Args;
use primer_measure::Lean;
use primer_measure::bench::entrant::Entrant;
use primer_measure::bench::{LEAN, kernels, measure};
use primer_measure::command::{bench, lean};
use primer_measure::console::output;

/// Arguments of `primer bench`.
#[derive(Args)]
pub(super) struct BenchArgs {
    #[command(flatten)]
    bench: bench::BenchArgs,
    /// What to measure; the paper's schemes and comparators are measured by primer-lab
    #[arg(long, value_name = "A,B", value_delimiter = ',', default_value = "lean",
          value_parser = lean)]
    schemes: Vec<Lean>,
}

pub(super) fn run(args: &BenchArgs) -> Result<()> {
    if args.bench.kernels {
        let figures = kernels::measure()?;
        return bench::print_kernels(&figures, &kernels::FIGURES, args.bench.json);
    }
    let entrants = args.schemes.iter().map(|_| &LEAN as &dyn Entrant);
    let measurement = measure(&args.bench.request(entrants.collect()))?;
    if args.bench.json {
        output::line(serde_json::to_string(&measurement.table)?)?;
    } else {
        output::text(bench::text(&measurement.table))?;
    }
    // What was finished is told in any case.
    measurement.stopped.map_or(Ok(()), Err)
}

pub(super) fn run_party(args: &bench::PartyArgs) -> Result<()> {
    bench::run_party(args, |name| {
        let lean: &'static dyn Entrant = &LEAN;
        (name == lean.name()).then_some(lean)
    })
}
