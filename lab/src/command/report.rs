//! `primer-lab report`: tables and pictures of results that were measured before.

use anyhow::{Context, Result, ensure};
use clap::Args;
use primer_lab::report::{Records, figures, page};
use primer_measure::note;
use std::path::{Path, PathBuf};

/// Arguments of `primer-lab report`.
#[derive(Args)]
pub(super) struct ReportArgs {
    /// Results of `bench --json`, `eval --json`, and of compare-peers and two-hosts in
    /// lab/scripts, or directories of them
    #[arg(required = true, value_name = "PATH")]
    results: Vec<PathBuf>,
    /// The page to write
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    out: PathBuf,
    /// Write every picture into this directory as well
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
    /// Write the tables as Markdown as well
    #[arg(long, value_name = "FILE.md")]
    tables: Option<PathBuf>,
}

pub(super) fn run(args: &ReportArgs) -> Result<()> {
    let records = Records::read(&args.results)?;
    ensure!(
        !records.is_empty(),
        "there is no result to show in {}: no file there ends in .json",
        named(&args.results)
    );
    write_page(&records, &args.out)?;
    if let Some(dir) = &args.svg {
        std::fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
        for figure in figures::all(&records) {
            write(&dir.join(format!("{}.svg", figure.name)), &figure.svg)?;
        }
    }
    if let Some(path) = &args.tables {
        write(path, &page::markdown(&records))?;
    }
    Ok(())
}

fn named(paths: &[PathBuf]) -> String {
    let names = paths.iter().map(|path| path.display().to_string());
    names.collect::<Vec<_>>().join(", ")
}

/// Writes the page and says where.
pub(super) fn write_page(records: &Records, path: &Path) -> Result<()> {
    write(path, &page::html(records))?;
    note!("primer: the report is in {}", path.display());
    Ok(())
}

pub(super) fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}
