//! `primer bench`: the paper's tables, measured, and the machine's own figures.

use crate::output;
use anyhow::Result;
use clap::Args;
use clap::builder::RangedU64ValueParser;
use primer::Scheme;
use primer_lab::bench::growth::{Growth, Point};
use primer_lab::bench::table::Row;
use primer_lab::bench::{self, Entrant, Measurement, Request, Table, kernels, party};
use primer_lab::report::Records;
use primer_net::Link;
use std::path::PathBuf;

/// Arguments of `primer bench`.
#[derive(Args)]
pub(super) struct BenchArgs {
    /// Measure the building blocks instead: transforms, rotations, garbling, oblivious transfer,
    /// float
    #[arg(long, conflicts_with_all = [
        "model", "layers", "tokens", "schemes", "link", "runs", "bundles", "threads", "growth",
        "timeline", "report",
    ])]
    kernels: bool,
    /// A shape with random weights (bert-tiny, bert-small, bert-base, bert-medium, bert-large,
    /// minilm) or a model directory
    #[arg(long, value_name = "NAME|DIR", default_value = "bert-base")]
    model: String,
    /// Run only that many layers and extrapolate the rest
    #[arg(long, value_name = "N", value_parser = up_to(96))]
    layers: Option<usize>,
    /// Tokens of the input
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = up_to(512))]
    tokens: usize,
    /// What to measure: the schemes base, f, fp, fpc, lean, and the comparators gc (the whole model
    /// as a garbled circuit) and fhe (homomorphic encryption alone), which are run on small shapes
    /// and extrapolated
    #[arg(long, value_name = "A,B", value_delimiter = ',',
          default_value = Scheme::default().name())]
    schemes: Vec<Entrant>,
    /// The link between the parties: loopback, paper (2.3 ms, 100 MB/s), wan (40 ms, 25 MB/s) or
    /// far (40 ms, 12.5 MB/s); comparators take loopback only
    #[arg(long, default_value = "loopback")]
    link: Link,
    /// Inferences of each scheme; the middle one counts
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = up_to(1000))]
    runs: usize,
    /// Bundles that are prepared together, by schemes that can; seconds and bytes are then those of
    /// one of them
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = up_to(32))]
    bundles: usize,
    /// Threads of each party; with one, each party is bound to a core
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = up_to(1024))]
    threads: usize,
    /// Measure also how cost grows: 1, 2 and 4 layers, and 8 to 512 tokens on one layer
    #[arg(long)]
    growth: bool,
    /// Draw what both parties do from moment to moment of an online phase: computing, sending and
    /// receiving, waiting, by kinds of steps; of one scheme
    #[arg(long, value_name = "FILE.svg")]
    timeline: Option<PathBuf>,
    /// Write a page with tables and pictures beside the paper's figures (report.html if no file is
    /// named)
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "report.html")]
    report: Option<PathBuf>,
    /// Show these earlier results in the report as well: JSON of `bench` and `eval`, or directories
    /// of it
    #[arg(long, value_name = "PATH", requires = "report")]
    with: Vec<PathBuf>,
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
}

fn up_to(most: u64) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=most)
}

/// Arguments of one of the two processes that a measurement starts.
#[derive(Args)]
pub(super) struct PartyArgs {
    /// What it is to do, as the measurement wrote it
    job: String,
}

pub(super) fn run_party(args: &PartyArgs) -> Result<()> {
    party::run(&args.job)
}

fn run_kernels(json: bool) -> Result<()> {
    let figures = kernels::measure()?;
    if json {
        return output::line(figures);
    }
    for (key, meaning) in kernels::FIGURES {
        let figure = figures[key].as_f64().unwrap_or(f64::NAN);
        let shown = if figure.fract() == 0.0 {
            format!("{figure:.0}")
        } else if figure < 10.0 {
            format!("{figure:.3}")
        } else {
            format!("{figure:.1}")
        };
        output::line(format_args!("{meaning:<54} {shown:>12}"))?;
    }
    Ok(())
}

pub(super) fn run(args: &BenchArgs) -> Result<()> {
    if args.kernels {
        return run_kernels(args.json);
    }
    // Before the work, so that a bad path does not cost the results.
    let mut records = Records::read(&args.with)?;
    for path in args.report.iter().chain(&args.timeline) {
        super::report::writable(path)?;
    }
    let Measurement {
        table,
        timeline,
        stopped,
    } = bench::measure(&Request {
        model: args.model.clone(),
        layers: args.layers,
        tokens: args.tokens,
        entrants: args.schemes.clone(),
        link: args.link,
        runs: args.runs,
        bundles: args.bundles,
        threads: args.threads,
        growth: args.growth,
        timeline: args.timeline.is_some(),
    })?;
    if args.json {
        output::line(serde_json::to_string(&table)?)?;
    } else {
        output::text(text(&table))?;
    }
    if let (Some(path), Some(timeline)) = (&args.timeline, &timeline) {
        super::report::write(path, &timeline.svg())?;
    }
    if let Some(path) = &args.report {
        records.tables.push(table);
        super::report::write_page(&records, path)?;
    }
    // What was finished is told in any case.
    stopped.map_or(Ok(()), Err)
}

fn text(table: &Table) -> String {
    let mut out = format!(
        "{}: {} layers, {} tokens, link {}, {} a party{}\n",
        table.model,
        table.layers,
        table.tokens,
        table.link.name(),
        match table.threads_per_party {
            1 => "one thread".to_owned(),
            threads => format!("{threads} threads"),
        },
        if table.pinned {
            ", a core each"
        } else {
            ", sharing cores"
        },
    );
    for row in &table.results {
        out += &scheme(row, table);
    }
    if let Some(Growth { layers, tokens }) = &table.growth {
        out += "\ngrowth, every point run whole:\n";
        out += &layers.iter().chain(tokens).map(point).collect::<String>();
    }
    out
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

fn scheme(row: &Row, table: &Table) -> String {
    let mut out = format!(
        "\nscheme {}: offline {:.2} s, online {:.2} s, in the clear {:.3} s\n",
        row.scheme, row.offline_s, row.online_s, row.plaintext_s
    );
    if row.bundles > 1 {
        out += &format!("  each of {} bundles prepared together\n", row.bundles);
    }
    if row.extrapolated {
        let part = match &row.measured_on {
            Some(what) => what.clone(),
            None => format!("{} of {} layers", table.layers_measured, table.layers),
        };
        out += &format!("  extrapolated from {part}\n");
    }
    for step in &row.steps {
        out += &format!(
            "  {:<16} offline {:>9.3} s   online {:>8.3} s\n",
            step.step.name(),
            step.offline_s,
            step.online_s
        );
    }
    let bytes = &row.bytes;
    out += &format!(
        "  offline {:.1} MB up, {:.1} MB down; online {:.2} MB up, {:.2} MB down\n",
        mega(bytes.offline_up),
        mega(bytes.offline_down),
        mega(bytes.online_up),
        mega(bytes.online_down),
    );
    out += &format!(
        "  kept between the phases: client {:.1} MB, server {:.1} MB\n",
        mega(row.client_stored_bytes),
        mega(row.server_stored_bytes),
    );
    out += &once(row);
    out += &format!(
        "  {} round trips online; {} AND gates; memory: client {:.0} MB, server {:.0} MB; \
         largest error {:.4}\n",
        row.rounds_online,
        row.and_gates,
        mega(row.peak_rss_client),
        mega(row.peak_rss_server),
        row.max_abs_logit_error,
    );
    out
}

/// What is paid once for a session, and once for all of them.
fn once(row: &Row) -> String {
    let seconds = |s: Option<f64>| s.map_or_else(String::new, |s| format!("{s:.1} s, "));
    let keys = format!(
        "  keys, once a session: {}{:.1} MB",
        seconds(row.setup_s),
        mega(row.setup_bytes)
    );
    match row.model_s {
        Some(model) => format!("{keys}; model, once: {model:.1} s\n"),
        None => format!("{keys}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use clap::error::ErrorKind;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        bench: BenchArgs,
    }

    #[test]
    fn numbers_out_of_range_are_wrong_usage() {
        let parse = |args: &[&str]| {
            let line = Line::try_parse_from([&["primer"], args].concat());
            line.map(|line| line.bench).map_err(|e| e.kind())
        };
        let good = parse(&["--runs", "3", "--tokens", "512", "--layers", "1"]).unwrap();
        assert_eq!((good.runs, good.tokens, good.layers), (3, 512, Some(1)));
        for [name, value] in [
            ["--runs", "0"],
            ["--tokens", "0"],
            ["--tokens", "513"],
            ["--layers", "0"],
        ] {
            let error = parse(&[name, value]).err();
            assert_eq!(error, Some(ErrorKind::ValueValidation), "{name} {value}");
        }
    }

    #[test]
    fn what_is_paid_once_is_told() {
        let row = |setup: serde_json::Value, model: serde_json::Value| -> Row {
            let row = serde_json::json!({
                "scheme": "fp", "extrapolated": false,
                "offline_s": 1.0, "online_s": 1.0, "plaintext_s": 1.0,
                "bytes": {"offline_up": 1, "offline_down": 1, "online_up": 1, "online_down": 1},
                "setup_bytes": 90_000_000, "setup_s": setup, "model_s": model, "rounds_online": 1,
                "peak_rss_client": 1, "peak_rss_server": 1, "and_gates": 1,
                "max_abs_logit_error": 0.0, "steps": [],
            });
            serde_json::from_value(row).unwrap()
        };
        assert_eq!(
            once(&row(0.92.into(), 6.1.into())),
            "  keys, once a session: 0.9 s, 90.0 MB; model, once: 6.1 s\n"
        );
        assert_eq!(
            once(&row(().into(), ().into())),
            "  keys, once a session: 90.0 MB\n"
        );
    }
}
