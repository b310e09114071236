//! `primer config`: the configuration file.

use crate::config::{self, Config, flags, section};
use anyhow::{Context, Result};
use clap::{Arg, ArgAction, Args, Command, Subcommand};
use primer_measure::console::output;
use std::path::PathBuf;

/// Arguments of `primer config`.
#[derive(Args)]
#[command(after_help = "\
A table for every command, whose keys are its long flags, and [client] for what all commands share
that ask a server. What is typed goes before PRIMER_SERVER, PRIMER_STATE and PRIMER_TOKEN, these
before the file, that before defaults. The file is that of --config or PRIMER_CONFIG, or
primer/config.toml in $XDG_CONFIG_HOME or ~/.config, if it is there.

Example:
  primer config example > ~/.config/primer/config.toml
  primer config check")]
pub(super) struct ConfigArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Check a configuration file: every table, key and value
    Check {
        /// The file; the one that is in force if not given
        file: Option<PathBuf>,
    },
    /// Print a configuration file that has every flag in it, commented out
    Example,
}

pub(super) fn run(args: &ConfigArgs, given: Option<PathBuf>, whole: &Command) -> Result<()> {
    match &args.action {
        Action::Check { file } => {
            let path = config::find(file.clone().or(given));
            let path = path.context("there is no configuration file to check; name one")?;
            let settings = Config::read(&path)?.check(whole)?;
            let settings = match settings {
                1 => "1 setting".to_owned(),
                n => format!("{n} settings"),
            };
            output::line(format_args!(
                "{}: {settings}, all of them fine",
                path.display()
            ))
        }
        Action::Example => output::text(example(whole)?),
    }
}

/// Lists every flag of every command, with what it does and its default.
fn example(whole: &Command) -> Result<String> {
    let mut out = "# What primer would be told on the command line: a table for each command.\n\
                   # Remove the # before a key to set it; `primer config check` checks the file.\n"
        .to_owned();
    let commands = whole.get_subcommands().map(Command::get_name);
    for name in [config::CLIENT].into_iter().chain(commands) {
        let Ok(command) = section(whole, name) else {
            continue;
        };
        table(&mut out, name, &command);
    }
    Ok(out)
}

fn table(out: &mut String, name: &str, command: &Command) {
    if flags(command).next().is_some() {
        let about = match name {
            config::CLIENT => "All commands that ask a server".to_owned(),
            _ => command
                .get_about()
                .map(ToString::to_string)
                .unwrap_or_default(),
        };
        *out += &format!("\n# {about}.\n[{name}]\n");
        for (key, arg) in flags(command) {
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            *out += &format!("# {}\n#{key} = {}\n", help.replace('\n', " "), value(arg));
        }
    }
    for inner in command
        .get_subcommands()
        .filter(|one| one.get_name() != "help")
    {
        table(out, &format!("{name}.{}", inner.get_name()), inner);
    }
}

/// Returns a flag's default, or the name of what it takes.
fn value(arg: &Arg) -> String {
    let default = arg.get_default_values().first();
    let default = default.map(|value| value.to_string_lossy().into_owned());
    if matches!(arg.get_action(), ArgAction::SetTrue) {
        return "true".to_owned();
    }
    let names = arg.get_value_names().and_then(|names| names.first());
    let value = default
        .or_else(|| names.map(ToString::to_string))
        .unwrap_or_default();
    match value.parse::<i64>() {
        Ok(_) => value,
        Err(_) => format!("{value:?}"),
    }
}
