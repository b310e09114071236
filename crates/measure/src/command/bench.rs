//! `bench`: private inferences, measured, and the machine's own figures.

use crate::bench::entrant::{Entrant, Find};
use crate::bench::table::Row;
use crate::bench::{Request, Table, party};
use crate::console::output;
use anyhow::Result;
use clap::Args;
use clap::builder::RangedU64ValueParser;
use primer_net::Link;
use serde_json::Value;

/// Arguments of `bench`, but for what is measured, which each program adds as `--schemes`.
#[derive(Args)]
#[group(skip)]
pub struct BenchArgs {
    /// Measure the building blocks instead: products, garbling, oblivious transfer, look-ups, float
    #[arg(long, conflicts_with_all = [
        "model", "layers", "tokens", "schemes", "link", "runs", "bundles", "threads",
    ])]
    pub kernels: bool,
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
    /// The link between the parties: loopback, paper (2.3 ms, 100 MB/s), wan (40 ms, 25 MB/s) or
    /// far (40 ms, 12.5 MB/s)
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
    /// Print one JSON object on standard output
    #[arg(long)]
    pub json: bool,
}

impl BenchArgs {
    /// Returns what is asked for, of some entrants.
    pub fn request(&self, entrants: Vec<&'static dyn Entrant>) -> Request {
        Request {
            model: self.model.clone(),
            layers: self.layers,
            tokens: self.tokens,
            entrants,
            link: self.link,
            runs: self.runs,
            bundles: self.bundles,
            threads: self.threads,
            record: false,
        }
    }
}

fn up_to(most: u64) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=most)
}

/// Arguments of one of the two processes that a measurement starts.
#[derive(Args)]
pub struct PartyArgs {
    /// What it is to do, as the measurement wrote it
    job: String,
}

/// Runs one of the two processes.
///
/// # Errors
/// If it fails.
pub fn run_party(args: &PartyArgs, find: Find) -> Result<()> {
    party::run(&args.job, find)
}

/// Prints figures of the machine, each with its meaning.
///
/// # Errors
/// If they cannot be written.
pub fn print_kernels<'a>(
    figures: &Value,
    meanings: impl IntoIterator<Item = &'a (&'a str, &'a str)>,
    json: bool,
) -> Result<()> {
    if json {
        return output::line(figures);
    }
    for (key, meaning) in meanings {
        let figure = figures[*key].as_f64().unwrap_or(f64::NAN);
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

/// Returns a table as a person reads it.
pub fn text(table: &Table) -> String {
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
    out
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

/// Tells what is paid once for a session, and once for all of them.
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
        #[arg(long)]
        schemes: Option<String>,
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
