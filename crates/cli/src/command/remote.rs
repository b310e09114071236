//! What all commands of the client share: which server, who we are, and what is shown meanwhile.

use crate::progress::Transfer;
use anyhow::{Context, Result};
use clap::Args;
use primer::server::identity;
use primer::{Client, ClientOptions, Cost, Event, Fingerprint, Zeroizing};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// The environment variable that may hold the access token.
const TOKEN_VARIABLE: &str = "PRIMER_TOKEN";

/// Which server, and who we are to it.
#[derive(Args)]
pub(super) struct RemoteArgs {
    /// Address of the server
    #[arg(long, value_name = "HOST:PORT")]
    pub(super) server: String,
    /// Trust the server with this certificate from now on; needed once for each server
    ///
    /// The server prints the fingerprint (SHA-256 of its certificate) when it starts. It is
    /// recorded in the file known_servers of the state directory; a server that shows another
    /// certificate later is refused.
    #[arg(long, value_name = "HEX")]
    trust_fingerprint: Option<Fingerprint>,
    /// File with the access token, if the server asks for one (or the variable PRIMER_TOKEN)
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Certificate to show to a server that asks for one, as PEM
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// Its private key, as PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    #[command(flatten)]
    state: StateArgs,
    /// Longest silence of the server
    #[arg(long, value_name = "SECONDS", default_value_t = 120,
          value_parser = clap::value_parser!(u64).range(1..))]
    timeout: u64,
    /// Threads that encrypt and decrypt while preparing [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Attempts in all if the connection breaks, each with a fresh bundle
    #[arg(long, value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u32).range(1..=100))]
    attempts: u32,
}

/// Where things are kept.
#[derive(Args)]
pub(super) struct StateArgs {
    /// Directory for certificates, known servers and prepared bundles [default:
    /// $XDG_STATE_HOME/primer, or ~/.local/state/primer]
    #[arg(long, value_name = "DIR")]
    pub(super) state: Option<PathBuf>,
}

impl RemoteArgs {
    /// Connects, and shows progress on standard error from then on.
    pub(super) fn connect(&self) -> Result<Client> {
        let token = match &self.token_file {
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .with_context(|| format!("reading the token {}", path.display()))?;
                Some(Zeroizing::new(Zeroizing::new(text).trim().to_owned()))
            }
            None => std::env::var(TOKEN_VARIABLE).ok().map(Zeroizing::new),
        };
        let identity = match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => Some(identity::from_files(cert, key)?),
            _ => None,
        };
        let options = ClientOptions {
            state: self.state.state.clone(),
            trust: self.trust_fingerprint,
            token,
            identity,
            timeout: Duration::from_secs(self.timeout),
            threads: self.threads.map(usize::from),
            attempts: self.attempts,
            ..ClientOptions::default()
        };
        let mut client = Client::connect(&self.server, options)?;
        show_progress(&mut client, self.attempts);
        Ok(client)
    }
}

/// Has a client tell on standard error what it does.
pub(super) fn show_progress(client: &mut Client, attempts: u32) {
    let mut bar: Option<Transfer> = None;
    client.observe(move |event| match event {
        Event::Offline {
            tokens,
            bundles,
            meter,
            expected,
        } => {
            let what = match bundles {
                1 => String::new(),
                _ => format!("{bundles} bundles "),
            };
            let label = format!("preparing {what}for up to {tokens} tokens");
            drop(bar.replace(Transfer::watch(&label, meter.clone(), expected)));
        }
        Event::Prepared { .. } => drop(bar.take()),
        Event::Retry { error, attempt } => {
            drop(bar.take());
            eprintln!("primer: {error}; attempt {attempt} of {attempts}");
        }
        Event::Discarded { id, refusal } => {
            eprintln!("primer: bundle {id} was deleted: the server says that {refusal}");
        }
        _ => {}
    });
}

/// What an inference cost, as JSON has it.
pub(super) fn cost_json(cost: &Cost) -> Value {
    json!({
        "offline_s": cost.offline_s, "online_s": cost.online_s,
        "bytes": {
            "offline_up": cost.bytes.offline_up, "offline_down": cost.bytes.offline_down,
            "online_up": cost.bytes.online_up, "online_down": cost.bytes.online_down,
        },
        "tokens": cost.tokens, "prepared_ahead": cost.prepared_ahead,
    })
}

/// Two JSON objects as one.
pub(super) fn merged(mut left: Value, right: Value) -> Value {
    if let (Value::Object(left), Value::Object(right)) = (&mut left, right) {
        left.extend(right);
    }
    left
}

/// What an inference cost, as a person reads it.
pub(super) fn cost_line(cost: &Cost) -> String {
    let mb = |bytes: u64| bytes as f64 / 1e6;
    let online = mb(cost.bytes.online_up + cost.bytes.online_down);
    let offline = if cost.prepared_ahead {
        "offline ahead of time".to_owned()
    } else {
        let bytes = mb(cost.bytes.offline_up + cost.bytes.offline_down);
        format!("offline {:.2} s ({bytes:.1} MB)", cost.offline_s)
    };
    format!(
        "{offline}, online {:.2} s ({online:.2} MB), padded to {} tokens",
        cost.online_s, cost.tokens
    )
}

/// Warns if the model's values came near the end of their ranges.
pub(super) fn note_range(in_range: Option<bool>) {
    if in_range == Some(false) {
        eprintln!(
            "primer: a value of the model came near the end of the range that it was calibrated              for, so this answer may be wrong; ask the server's owner to calibrate with text that              resembles yours (primer serve --calibration FILE, and eval with the same option to              check)"
        );
    }
}

/// Tells of tokens that were cut off.
pub(super) fn note_removed(removed: usize, limit: usize) {
    if removed > 0 {
        eprintln!(
            "primer: the text is {removed} tokens longer than the limit of {limit} and was cut \
             there"
        );
    }
}
