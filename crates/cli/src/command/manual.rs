//! `primer completions` and `primer man`: what shells and manuals want to know.

use anyhow::{Context, Result};
use clap::{Args, Command};
use clap_complete::Shell;
use primer_measure::console::output;
use std::path::PathBuf;

/// Arguments of `primer completions`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  primer completions bash > ~/.local/share/bash-completion/completions/primer
  primer completions zsh > ~/.zfunc/_primer
  primer completions fish > ~/.config/fish/completions/primer.fish")]
pub(super) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Arguments of `primer man`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  primer man | man -l -
  primer man ~/.local/share/man/man1")]
pub(super) struct ManArgs {
    /// Directory to write a page for every command into; made if it is not there. Without it, the
    /// first page goes to standard output
    dir: Option<PathBuf>,
}

pub(super) fn completions(args: &CompletionsArgs, mut whole: Command) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut whole, "primer", &mut script);
    output::text(String::from_utf8_lossy(&script))
}

pub(super) fn man(args: &ManArgs, whole: Command) -> Result<()> {
    let Some(dir) = &args.dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(whole).render(&mut page)?;
        return output::text(String::from_utf8_lossy(&page));
    };
    let at = || format!("writing manual pages into {}", dir.display());
    std::fs::create_dir_all(dir).with_context(at)?;
    clap_mangen::generate_to(whole, dir).with_context(at)
}
