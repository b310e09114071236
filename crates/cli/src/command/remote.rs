//! What all commands of the client share: which server, who we are, and what is shown meanwhile.

use anyhow::{Context, Result, ensure};
use clap::Args;
use primer::server::{identity, is_hash};
use primer::{Client, ClientOptions, Cost, Event, Fingerprint, Zeroizing};
use primer_measure::console::progress::{Stages, Transfer};
use primer_measure::{note, warning};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The environment variable that may hold the access token.
const TOKEN_VARIABLE: &str = "PRIMER_TOKEN";

/// Takes an address with its port, which people forget.
fn host_and_port(given: &str) -> Result<String, &'static str> {
    match given.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => Ok(given.into()),
        _ => Err("it is a host and a port, as in models.example:7447"),
    }
}

/// Which server, and who we are to it.
#[derive(Args)]
pub(crate) struct RemoteArgs {
    /// Address of the server
    #[arg(
        long,
        value_name = "HOST:PORT",
        value_parser = host_and_port,
        env = "PRIMER_SERVER",
        hide_env_values = true
    )]
    pub(super) server: String,
    /// Where to prepare bundles, if replicas of the server do that at another address
    #[arg(long, value_name = "HOST:PORT", value_parser = host_and_port)]
    prepare_server: Option<String>,
    /// Where a copy of the server's hint is: http://…, https://… or a file; it is checked against
    /// what the server says, which is asked if the copy is not right
    #[arg(long, value_name = "URL")]
    hint_url: Option<String>,
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
    /// Attempts in all if the connection breaks in the middle of work, each with a fresh bundle
    #[arg(long, value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(super) attempts: u32,
    /// How long to try again while the server is full, stopping, starting or not there, also behind
    /// a balancer that takes connections and drops them [default: 30 if it says so itself, 0
    /// otherwise]
    #[arg(long, value_name = "SECONDS")]
    wait: Option<u64>,
}

/// Where things are kept.
#[derive(Args)]
pub(super) struct StateArgs {
    /// Directory for certificates, known servers and prepared bundles [default:
    /// $XDG_STATE_HOME/primer, or ~/.local/state/primer]
    #[arg(long, value_name = "DIR", env = "PRIMER_STATE", hide_env_values = true)]
    pub(super) state: Option<PathBuf>,
}

impl RemoteArgs {
    /// Connects, and shows progress on standard error from then on.
    pub(super) fn connect(&self) -> Result<Client> {
        let options = self.options()?;
        let progress = progress(self.attempts);
        Ok(Client::connect_observed(&self.server, options, progress)?)
    }

    /// Reads what the command line names.
    pub(super) fn options(&self) -> Result<ClientOptions> {
        let token = match &self.token_file {
            Some(path) => Some(read_token(path)?),
            None => {
                let token = std::env::var(TOKEN_VARIABLE).ok().map(Zeroizing::new);
                token.filter(|token| !token.is_empty())
            }
        };
        let identity = match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => Some(identity::from_files(cert, key)?),
            _ => None,
        };
        Ok(ClientOptions {
            state: self.state.state.clone(),
            prepare_at: self.prepare_server.clone(),
            hint_url: self.hint_url.clone(),
            trust: self.trust_fingerprint,
            token,
            identity,
            timeout: Duration::from_secs(self.timeout),
            threads: self.threads.map(usize::from),
            attempts: self.attempts,
            wait: self.wait.map(Duration::from_secs),
            ..ClientOptions::default()
        })
    }
}

/// Reads a client's own token.
fn read_token(path: &Path) -> Result<Zeroizing<String>> {
    let text = std::fs::read_to_string(path)
        .map(Zeroizing::new)
        .with_context(|| format!("reading the token {}", path.display()))?;
    ensure!(
        !is_hash(&text),
        "{} is the server's file of hashes, not a client's token",
        path.display()
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let metadata = std::fs::metadata(path);
        if metadata.is_ok_and(|data| data.permissions().mode() & 0o077 != 0) {
            let path = path.display();
            warning!("primer: other users can read the token file {path}; run chmod 600 {path}");
        }
    }
    Ok(Zeroizing::new(text.trim().to_owned()))
}

/// Has a client tell on standard error what it does.
pub(super) fn show_progress(client: &mut Client, attempts: u32) {
    client.observe(progress(attempts));
}

/// Tells on standard error what a client does.
pub(super) fn progress(attempts: u32) -> impl FnMut(Event<'_>) + Send {
    let mut bar: Option<Transfer> = None;
    let hint = Stages::default();
    move |event| match event {
        Event::Hint { done, bytes } => {
            // In kilobytes: a bar of single bytes has more digits than people read.
            let kilo = |bytes: u64| bytes.div_ceil(1000) as usize;
            hint.tell("fetching the hint (kB)", kilo(done), kilo(bytes));
        }
        Event::NoCopy { error } => {
            warning!("primer: {error}; the rest is fetched from the server");
        }
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
            note!("primer: {error}; attempt {attempt} of {attempts}");
        }
        Event::Waiting { error, pause } => {
            drop(bar.take());
            let seconds = pause.as_secs_f64();
            note!("primer: {error}; trying again in {seconds:.1} s");
        }
        Event::Discarded { id, refusal } => {
            warning!("primer: bundle {id} was deleted: the server says that {refusal}");
        }
        _ => {}
    }
}

/// Returns what an inference cost, as JSON has it.
pub(super) fn cost_json(cost: &Cost) -> Value {
    serde_json::to_value(cost).unwrap_or_default()
}

/// Merges two JSON objects.
pub(super) fn merged(mut left: Value, right: Value) -> Value {
    if let (Value::Object(left), Value::Object(right)) = (&mut left, right) {
        left.extend(right);
    }
    left
}

/// Says what an inference cost, as a person reads it.
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
        warning!(
            "primer: a value of the model came near the end of the range that it was calibrated \
             for, so this answer may be wrong; ask the server's owner to calibrate with text that \
             resembles yours (primer serve --calibration FILE, and eval with the same option to \
             check)"
        );
    }
}

/// Tells of tokens that were cut off.
pub(super) fn note_removed(removed: usize, limit: usize) {
    if removed > 0 {
        warning!(
            "primer: the text is {removed} token{} longer than the limit of {limit} and was cut \
             there",
            if removed == 1 { "" } else { "s" }
        );
    }
}
