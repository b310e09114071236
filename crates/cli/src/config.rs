//! The configuration file: flags that need not be typed.
//!
//! TOML, with a table for every command whose keys are the command's long flags, and a table
//! `client` for the flags that all commands share that ask a server:
//!
//! ```toml
//! [serve]
//! model = "./checkpoint"
//! token-file = "/etc/primer/tokens"
//!
//! [client]
//! server = "models.example:7447"
//! ```
//!
//! What is typed goes before environment variables, these before the command's own table, that
//! before `client`, and all of it before defaults. A setting that conflicts with a flag that is
//! typed gives way. The file is that of `--config` or `PRIMER_CONFIG` (none, if that is empty), or
//! `primer/config.toml` in `$XDG_CONFIG_HOME` or `~/.config`, if it is there. Settings are flags to
//! the parser of the command line, so a flag that joins can be set here without a line of code, and
//! is checked as it is when it is typed.

use crate::command::RemoteArgs;
use anyhow::{Context, Result, bail, ensure};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// The table of what all commands share that ask a server.
pub(crate) const CLIENT: &str = "client";
/// Commands that do not read the file.
const WITHOUT: [&str; 4] = ["bench-party", "completions", "config", "man"];
/// Flags that are of no use in a file.
const NOT_HERE: [&str; 4] = ["config", "help", "quiet", "version"];

/// Has the command line take from the configuration file what is not typed.
pub(crate) fn apply(command: Command, typed: Vec<OsString>) -> Result<Command> {
    let given = command.clone().ignore_errors(true);
    // Help needs no file.
    let Ok(given) = given.try_get_matches_from(typed) else {
        return Ok(command);
    };
    let Some((name, given_to_it)) = given.subcommand() else {
        return Ok(command);
    };
    if WITHOUT.contains(&name) {
        return Ok(command);
    }
    let path = given.get_one::<PathBuf>("config").cloned();
    let Some(path) = find(path) else {
        return Ok(command);
    };
    let config = Config::read(&path)?;
    config.check(&command)?;
    let name = name.to_owned();
    Ok(command.mut_subcommand(&name, |one| config.inject(&name, one, given_to_it)))
}

/// Finds the file that is in force, if there is one.
pub(crate) fn find(given: Option<PathBuf>) -> Option<PathBuf> {
    let from = |name: &str| std::env::var_os(name).map(PathBuf::from);
    if let Some(path) = given.or_else(|| from("PRIMER_CONFIG")) {
        return (!path.as_os_str().is_empty()).then_some(path);
    }
    let absolute = |path: &PathBuf| path.is_absolute();
    let base = from("XDG_CONFIG_HOME")
        .filter(absolute)
        .or_else(|| Some(from("HOME").filter(absolute)?.join(".config")));
    let path = base.map(|base| base.join("primer/config.toml"));
    path.filter(|path| path.exists())
}

/// A configuration file.
pub(crate) struct Config {
    path: PathBuf,
    tables: Table,
}

impl Config {
    /// Reads a file.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let at = || format!("the configuration {}", path.display());
        let text = std::fs::read_to_string(path).with_context(at)?;
        let tables = text.parse().map_err(|error: toml::de::Error| {
            let message = error.message().to_owned();
            let line = error
                .span()
                .map(|span| text[..span.start].lines().count().max(1));
            match line {
                Some(line) => anyhow::anyhow!("line {line}: {message}"),
                None => anyhow::anyhow!(message),
            }
        });
        Ok(Self {
            path: path.to_owned(),
            tables: tables.with_context(at)?,
        })
    }

    /// Checks everything in it; tells how many settings there are.
    pub(crate) fn check(&self, command: &Command) -> Result<usize> {
        let mut settings = 0;
        for (name, table) in &self.tables {
            let at = || format!("the configuration {}", self.path.display());
            let Value::Table(table) = table else {
                return Err(anyhow::anyhow!(
                    "`{name}` must be inside a table such as [serve]"
                ))
                .with_context(at);
            };
            let described = section(command, name).with_context(at)?;
            settings += check_table(name, table, described).with_context(at)?;
        }
        Ok(settings)
    }

    /// Returns a command whose flags take their defaults from here.
    fn inject(&self, name: &str, mut command: Command, given: &ArgMatches) -> Command {
        let table = |name: &str| self.tables.get(name).and_then(Value::as_table);
        let asks = asks_a_server(&command) || name == "bundles";
        if let (true, Some(shared)) = (asks, table(CLIENT)) {
            command = with_defaults(command, shared, given);
        }
        match table(name) {
            Some(own) => with_defaults(command, own, given),
            None => command,
        }
    }
}

/// Returns the command whose flags a table holds.
pub(crate) fn section(command: &Command, name: &str) -> Result<Command> {
    if name == CLIENT {
        return Ok(RemoteArgs::augment_args(Command::new(CLIENT)));
    }
    let found = command.find_subcommand(name);
    let found = found.filter(|found| !found.is_hide_set() && !WITHOUT.contains(&name));
    found
        .cloned()
        .with_context(|| format!("there is no command for the table [{name}]"))
}

/// Lists the flags that may stand in a table.
pub(crate) fn flags(command: &Command) -> impl Iterator<Item = (&str, &Arg)> {
    let visible = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let named = visible.filter_map(|arg| Some((arg.get_long()?, arg)));
    named.filter(|(name, _)| !NOT_HERE.contains(name))
}

fn asks_a_server(command: &Command) -> bool {
    flags(command).any(|(name, _)| name == "server")
}

fn check_table(name: &str, table: &Table, command: Command) -> Result<usize> {
    let (mut line, mut settings) = (vec![name.to_owned()], 0);
    for (key, value) in table {
        if let Value::Table(inner) = value {
            let found = command.find_subcommand(key).cloned();
            let found = found.with_context(|| format!("there is no [{name}.{key}]"))?;
            settings += check_table(&format!("{name}.{key}"), inner, found)?;
            continue;
        }
        let at = || format!("[{name}] {key}");
        let flag = flags(&command).find(|(flag, _)| flag == key);
        let (_, arg) = flag.with_context(|| format!("[{name}] has no setting {key}"))?;
        let values = values(arg, value).with_context(at)?;
        if matches!(arg.get_action(), ArgAction::SetTrue) {
            line.extend((values == ["true"]).then(|| format!("--{key}")));
        } else {
            line.extend(values.iter().map(|value| format!("--{key}={value}")));
        }
        settings += 1;
    }
    // As if it had been typed, but that what is missing may be typed yet.
    let parser = command.mut_args(|arg| arg.required(false));
    let parser = parser
        .subcommand_required(false)
        .arg_required_else_help(false);
    let wrong = parser.try_get_matches_from(line).err();
    if let Some(error) = wrong.filter(|error| !lacks_texts_only(error)) {
        let text = error.to_string();
        let text = text.split("\n\n").next().unwrap_or_default();
        let words: Vec<&str> = text.split_whitespace().collect();
        bail!(
            "[{name}]: {}",
            words.join(" ").trim_start_matches("error: ")
        );
    }
    Ok(settings)
}

/// Tells whether all that is wrong is that arguments without a flag are missing, which are never
/// set.
fn lacks_texts_only(error: &clap::Error) -> bool {
    let missing = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(names)) => names.iter().all(|name| name.starts_with('<')),
        _ => false,
    };
    error.kind() == ErrorKind::MissingRequiredArgument && missing
}

/// Returns what is set, as it would be typed.
fn values(arg: &Arg, value: &Value) -> Result<Vec<String>> {
    let one = |value: &Value| -> Result<String> {
        Ok(match value {
            Value::String(text) => text.clone(),
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            Value::Boolean(flag) => flag.to_string(),
            other => bail!("{} is not a value of a flag", other.type_str()),
        })
    };
    let is_flag = matches!(arg.get_action(), ArgAction::SetTrue);
    ensure!(
        is_flag == matches!(value, Value::Boolean(_)),
        "{}",
        if is_flag {
            "expected true or false"
        } else {
            "expected a value, not true or false"
        }
    );
    match value {
        Value::Array(all) => all.iter().map(one).collect(),
        value => Ok(vec![one(value)?]),
    }
}

/// Returns a command that takes what is not typed from a table that was checked.
fn with_defaults(mut command: Command, table: &Table, given: &ArgMatches) -> Command {
    for (key, value) in table {
        if let Value::Table(inner) = value {
            if let Some((name, given)) = given.subcommand().filter(|(name, _)| name == key) {
                command = command.mut_subcommand(name, |one| with_defaults(one, inner, given));
            }
            continue;
        }
        let Some((_, arg)) = flags(&command).find(|(flag, _)| flag == key) else {
            // A setting of `client` that is not one of a command's below: it may be of its own.
            let names: Vec<String> = command
                .get_subcommands()
                .map(|one| one.get_name().to_owned())
                .collect();
            let single: Table = [(key.clone(), value.clone())].into_iter().collect();
            for name in names {
                let Some(given) = given.subcommand_matches(&name) else {
                    continue;
                };
                command = command.mut_subcommand(name, |one| with_defaults(one, &single, given));
            }
            continue;
        };
        if gives_way(&command, arg, given) {
            continue;
        }
        let Ok(values) = values(arg, value) else {
            continue;
        };
        let id = arg.get_id().clone();
        command = command.mut_arg(id, |arg| arg.required(false).default_values(values));
    }
    command
}

/// Tells whether a setting conflicts with something that was typed.
fn gives_way(command: &Command, arg: &Arg, given: &ArgMatches) -> bool {
    let conflict = |one: &Arg, other: &Arg| {
        let others = command.get_arg_conflicts_with(one);
        others.iter().any(|found| found.get_id() == other.get_id())
    };
    let typed = |other: &&Arg| {
        let source = given.value_source(other.get_id().as_str());
        source == Some(ValueSource::CommandLine)
    };
    // A token in the environment goes before a file's name in the configuration.
    let token = std::env::var_os("PRIMER_TOKEN").is_some_and(|token| !token.is_empty());
    if token && arg.get_long() == Some("token-file") && asks_a_server(command) {
        return true;
    }
    let mut others = command.get_arguments().filter(typed);
    others.any(|other| conflict(arg, other) || conflict(other, arg))
}
