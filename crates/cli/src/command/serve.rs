//! `primer serve`: the server.

use super::remote::StateArgs;
use super::shared::SharedArgs;
use crate::log::{self, LogForm};
use crate::notify;
use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use primer::server::{Reloaded, Starting, identity};
use primer::service::message::ServerRole;
use primer::{AccessTokens, Clients, Fingerprint, Limits, Reveal};
use primer::{Server, ServerOptions, WebOptions};
use primer_measure::command::lean;
use primer_measure::console::output;
use primer_measure::console::progress::Stages;
use primer_measure::{Lean, Scheme};
use primer_store::{Allowance, Allowances};
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Arguments of `primer serve`.
#[derive(Args)]
#[command(after_help = "\
On the first start the server makes a certificate, keeps it in the state directory, and prints its
fingerprint, which clients name once with --trust-fingerprint; --cert and --key use a certificate of
yours instead. It also builds the model's hint, which takes up to a minute for a BERT-base and is
kept (`primer hint`).

Everyone who can reach the port may use the server, unless --token-file, --client-ca or
--client-fingerprint say otherwise. `primer token new` makes tokens.

SIGTERM and SIGINT stop it in good order: inferences under way are finished, nothing new is begun,
unspent bundles stay. A second signal ends it at once. SIGHUP reads the file of tokens again, and
tokens that are no longer in it are refused: all, if it is empty or gone. Without such a file SIGHUP
stops the server.

The state directory holds the server's halves of prepared bundles. Never restore it from a backup or
a snapshot: a bundle that comes back after it was used is a bundle that is used twice.

Replicas behind a load balancer share a store (--store, --blobs, --store-key-file) and a certificate
(--cert, --key): a bundle that one of them prepared can be spent on any, once. See docs/fleet.md.

Logs go to standard error and never hold texts, shares, keys or tokens. PRIMER_LOG sets what is
logged: a level, or levels of modules such as info,primer_server=debug (default: info).

Examples:
  primer serve --model ./my-checkpoint --listen 0.0.0.0:7447
  primer serve --model ./my-checkpoint --token-file tokens --metrics 127.0.0.1:9100 --log json")]
pub(super) struct ServeArgs {
    /// Directory written by Hugging Face's save_pretrained (the embedded SST-2 model if not given)
    #[arg(long, value_name = "DIR")]
    model: Option<PathBuf>,
    /// Text whose activation ranges set the scales, which are public, one input a line (a built-in
    /// text if not given)
    #[arg(long, value_name = "FILE", conflicts_with = "prepared")]
    calibration: Option<PathBuf>,
    /// Take scales and integer weights from a file written by `inspect --save-prepared`
    #[arg(long, value_name = "FILE")]
    prepared: Option<PathBuf>,
    /// Address to listen on; port 0 lets the system choose
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7447")]
    listen: String,
    /// How the plan is compiled: there is one way
    #[arg(long, default_value = "lean", value_parser = lean)]
    scheme: Lean,
    /// What clients learn: all outputs of the model, or the label alone, of the text or of each
    /// token
    #[arg(long, default_value = "logits")]
    reveal: RevealArg,
    /// Threads that prepare bundles, divided among the sessions [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    #[command(flatten)]
    state: StateArgs,
    /// Directory of the model's hint and of what multiplies it, if `primer hint build --out` put
    /// them elsewhere; built there if they are missing [default: server/hints in the state
    /// directory]
    #[arg(long, value_name = "DIR")]
    hint_dir: Option<PathBuf>,
    #[command(flatten)]
    shared: SharedArgs,
    /// What this replica is called in logs, metrics and the journal of a shared store [default: its
    /// address]
    #[arg(
        long,
        value_name = "NAME",
        help_heading = "Replicas that share a store"
    )]
    replica: Option<String>,
    /// What this replica does, so that others can do the rest: prepare (heavy), infer (light)
    #[arg(
        long,
        value_name = "WORK",
        value_delimiter = ',',
        default_value = "prepare,infer",
        help_heading = "Replicas that share a store"
    )]
    roles: Vec<ServerRole>,
    /// Certificate chain, as PEM, instead of one of the server's own making
    #[arg(
        long,
        value_name = "FILE",
        requires = "key",
        help_heading = "Who may connect"
    )]
    cert: Option<PathBuf>,
    /// Its private key, as PEM
    #[arg(
        long,
        value_name = "FILE",
        requires = "cert",
        help_heading = "Who may connect"
    )]
    key: Option<PathBuf>,
    /// File of the hashes of access tokens, as `primer token new` writes it; clients without a
    /// token are refused
    #[arg(long, value_name = "FILE", help_heading = "Who may connect")]
    token_file: Option<PathBuf>,
    /// The name of before
    #[arg(long, hide = true, value_parser = renamed, num_args = 0..=1, default_missing_value = "")]
    tokens: Option<String>,
    /// Certificates of authorities, as PEM; clients must show a certificate that one of them signed
    #[arg(long, value_name = "FILE", help_heading = "Who may connect")]
    client_ca: Option<PathBuf>,
    /// Fingerprint of a client's certificate; clients must show one of those given (may be
    /// repeated)
    #[arg(
        long,
        value_name = "HEX",
        conflicts_with = "client_ca",
        help_heading = "Who may connect"
    )]
    client_fingerprint: Vec<Fingerprint>,
    #[command(flatten)]
    limits: LimitArgs,
    /// Tell health (/healthz), readiness (/readyz) and Prometheus metrics (/metrics) on this
    /// address, by plain HTTP
    #[arg(long, value_name = "HOST:PORT")]
    metrics: Option<String>,
    #[command(flatten)]
    web: WebArgs,
    /// Form of the log
    #[arg(long, default_value = "text")]
    log: LogForm,
    /// Print the address and the fingerprint as one JSON object on standard output
    #[arg(long)]
    json: bool,
    /// Stop when standard input ends: for programs that start a server of their own
    #[arg(long, hide = true)]
    stop_with_stdin: bool,
}

/// Clients in browsers.
#[derive(Args)]
#[command(next_help_heading = "Browsers")]
struct WebArgs {
    /// Serve this page, which scripts/build-web makes, and its WebSocket: plain HTTP, for this
    /// machine or a proxy that encrypts, unless --cert and --key are given
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with_all = ["client_ca", "client_fingerprint"]
    )]
    web: Option<PathBuf>,
    /// Address that it is served on
    #[arg(
        long,
        value_name = "HOST:PORT",
        default_value = "127.0.0.1:7480",
        requires = "web"
    )]
    web_listen: String,
    /// Origin of a page elsewhere that may connect, such as https://example.org (may be repeated)
    #[arg(long, value_name = "ORIGIN", requires = "web", value_parser = origin)]
    web_origin: Vec<String>,
}

/// Reads an origin as browsers write it.
fn origin(text: &str) -> Result<String, &'static str> {
    let host = text.split_once("://").map(|(scheme, host)| {
        let known = matches!(scheme, "http" | "https");
        host.to_owned() + if known { "" } else { "/" }
    });
    match host {
        Some(host) if !host.is_empty() && !host.contains('/') => Ok(text.to_ascii_lowercase()),
        _ => Err("an origin is https:// and a host, perhaps with a port, and nothing behind it"),
    }
}

/// What clients can make the server do.
#[derive(Args)]
#[command(next_help_heading = "Limits")]
struct LimitArgs {
    /// Sessions at once; one more is refused with a reason
    #[arg(long, value_name = "N", default_value_t = 16,
          value_parser = clap::value_parser!(u64).range(1..=4096))]
    max_sessions: u64,
    /// Tokens of one input, if less than the model's own limit
    #[arg(long, value_name = "N", default_value_t = 512,
          value_parser = clap::value_parser!(u64).range(4..=512))]
    max_tokens: u64,
    /// Bytes of unspent bundles that are kept for one client
    #[arg(long, value_name = "BYTES", default_value_t = 64 << 30)]
    max_stored_bytes_per_client: u64,
    /// Bytes of unspent bundles that are kept altogether
    #[arg(long, value_name = "BYTES", default_value_t = 512 << 30)]
    max_stored_bytes: u64,
    /// Answers that a client may have, if its token does not say otherwise: N/day (of universal
    /// time), N (in all), both with a comma, or unlimited
    #[arg(long, value_name = "LIMIT", default_value = "unlimited")]
    max_answers: Allowance,
    /// Bundles that may be prepared for a client, if its token does not say otherwise
    #[arg(long, value_name = "LIMIT", default_value = "unlimited")]
    max_prepared: Allowance,
    /// Lengths whose encoded weights stay in memory
    #[arg(long, value_name = "N", default_value_t = 4,
          value_parser = clap::value_parser!(u64).range(1..=64))]
    max_lengths: u64,
    /// Unspent bundles are deleted after this time
    #[arg(long, value_name = "DAYS", default_value_t = 30,
          value_parser = clap::value_parser!(u64).range(1..=3650))]
    bundle_days: u64,
    /// From the connection to the end of the greeting
    #[arg(long, value_name = "SECONDS", default_value_t = 10,
          value_parser = clap::value_parser!(u64).range(1..=600))]
    handshake_timeout: u64,
    /// From the last bundle prepared or spent, or hint fetched, to the next, and the longest pause
    /// within one
    #[arg(long, value_name = "SECONDS", default_value_t = 300,
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    idle_timeout: u64,
    /// A whole session, however busy it is
    #[arg(long, value_name = "SECONDS", default_value_t = 4 * 3600,
          value_parser = clap::value_parser!(u64).range(1..=604_800))]
    session_timeout: u64,
    /// How long a stop waits for inferences under way
    #[arg(long, value_name = "SECONDS", default_value_t = 60,
          value_parser = clap::value_parser!(u64).range(0..=3600))]
    drain_timeout: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RevealArg {
    /// All outputs of the model
    Logits,
    /// The label alone, of the text or of each token
    Label,
}

/// Refuses `--tokens`, which is a length in every other command.
fn renamed(_: &str) -> Result<String, &'static str> {
    Err(
        "access tokens are given with --token-file FILE now, which holds their hashes (`primer \
         token new` makes tokens); the longest text is --max-tokens",
    )
}

impl ServeArgs {
    fn access(&self) -> Result<Option<Arc<AccessTokens>>> {
        let read = self.token_file.as_deref().map(AccessTokens::read);
        Ok(read.transpose()?.map(Arc::new))
    }

    /// Tells whether everyone who reaches the port may use the server.
    fn is_open(&self) -> bool {
        self.token_file.is_none() && self.client_ca.is_none() && self.client_fingerprint.is_empty()
    }

    fn options(&self) -> Result<ServerOptions> {
        let store = self.shared.store()?;
        let identity = match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => Some(identity::from_files(cert, key)?),
            _ => None,
        };
        let clients = match &self.client_ca {
            Some(path) => {
                let pem = std::fs::read_to_string(path)
                    .with_context(|| format!("reading the authorities {}", path.display()))?;
                Clients::Authority(pem)
            }
            None if self.client_fingerprint.is_empty() => Clients::Anyone,
            None => Clients::Pinned(self.client_fingerprint.clone()),
        };
        let seconds = Duration::from_secs;
        let limits = &self.limits;
        ensure!(
            limits.max_stored_bytes_per_client <= limits.max_stored_bytes,
            "--max-stored-bytes-per-client is more than --max-stored-bytes"
        );
        Ok(ServerOptions {
            model: self.model.clone(),
            prepared: self.prepared.clone(),
            calibration: self.calibration.clone(),
            listen: self.listen.clone(),
            metrics: self.metrics.clone(),
            web: (self.web.web.clone()).map(|dir| WebOptions {
                dir,
                listen: self.web.web_listen.clone(),
                origins: self.web.web_origin.clone(),
                secure: self.cert.is_some(),
            }),
            state: self.state.state.clone(),
            hints: self.hint_dir.clone(),
            store,
            replica: self.replica.clone(),
            roles: self.roles.clone(),
            identity,
            clients,
            access: self.access()?,
            reveal: match self.reveal {
                RevealArg::Logits => Reveal::Outputs,
                RevealArg::Label => Reveal::Label,
            },
            threads: self.threads.map(usize::from),
            limits: Limits {
                sessions: limits.max_sessions as usize,
                tokens: limits.max_tokens as usize,
                stored_per_client: limits.max_stored_bytes_per_client,
                stored: limits.max_stored_bytes,
                allowances: Allowances {
                    prepared: limits.max_prepared,
                    answers: limits.max_answers,
                },
                lengths: limits.max_lengths as usize,
                expiry: seconds(limits.bundle_days * 86_400),
                handshake: seconds(limits.handshake_timeout),
                idle: seconds(limits.idle_timeout),
                session: seconds(limits.session_timeout),
                drain: seconds(limits.drain_timeout),
            },
        })
    }
}

pub(super) fn run(args: &ServeArgs) -> Result<()> {
    log::start(args.log);
    serve(args).map_err(|error| log::last(args.log, error))
}

fn serve(args: &ServeArgs) -> Result<()> {
    let options = args.options()?;
    let access = options.access.clone();
    let stages = Stages::default();
    let server = Server::bind_with_progress(options, |stage, done, total| match args.log {
        LogForm::Text => stages.tell(stage.about(), done, total),
        LogForm::Json if stage == Starting::Calibrating && done == total => {
            tracing::info!(inputs = total, "calibrated");
        }
        LogForm::Json => {}
    })?;
    let stop = server.shutdown_handle();
    let on_signal = stop.clone();
    heed_signals(move || on_signal.shut_down(), access)?;
    if args.stop_with_stdin {
        std::thread::spawn(move || {
            let mut rest = [0; 64];
            while std::io::stdin().read(&mut rest).is_ok_and(|n| n > 0) {}
            stop.shut_down();
        });
    }
    let address = server.address();
    if args.is_open() && !address.ip().to_canonical().is_loopback() {
        tracing::warn!(
            %address,
            "everyone who reaches this address may use the server, since there is no --token-file, \
             --client-ca or --client-fingerprint"
        );
    }
    announce(args, &server)?;
    notify::ready();
    Ok(server.run()?)
}

/// Handles signals: the first stops in good order, the second at once; a hang-up reads tokens
/// again.
pub(super) fn heed_signals(
    stop: impl Fn() + Send + 'static,
    access: Option<Arc<AccessTokens>>,
) -> Result<()> {
    let wanted = Signals::new([SIGTERM, SIGINT, SIGHUP]);
    let mut signals = wanted.context("registering signal handlers")?;
    std::thread::spawn(move || {
        let mut seen = false;
        for signal in signals.forever() {
            if let (SIGHUP, Some(access)) = (signal, &access) {
                read_again(access);
                continue;
            }
            if std::mem::replace(&mut seen, true) {
                std::process::exit(1);
            }
            stop();
        }
    });
    Ok(())
}

/// Reads the file of tokens again, and says what came of it.
fn read_again(access: &AccessTokens) {
    match access.reload() {
        Reloaded {
            tokens,
            fault: None,
        } => tracing::info!(tokens, "reloaded the token file"),
        Reloaded {
            tokens: 0,
            fault: Some(error),
        } => tracing::error!(%error, "no valid access token is left: all clients are refused"),
        Reloaded {
            tokens,
            fault: Some(error),
        } => tracing::error!(
            tokens,
            %error,
            "the token file is invalid: tokens that are still in it stay valid, none is added"
        ),
    }
}

/// Prints the line that clients and scripts wait for.
fn announce(args: &ServeArgs, server: &Server) -> Result<()> {
    let (address, fingerprint) = (server.address(), server.fingerprint());
    let card = server.card();
    if args.json || args.log == LogForm::Json {
        return output::line(json!({
            "address": address.to_string(), "fingerprint": fingerprint.to_string(),
            "metrics": server.metrics_address().map(|a| a.to_string()), "web": server.web_url(),
            "model": card.model, "max_tokens": card.max_tokens(), "scheme": args.scheme.name(),
            "bits_per_answer": card.answer_bits.last(),
        }));
    }
    output::line(format_args!(
        "serving {} (up to {} tokens, scheme {}) on {address}\nfingerprint {fingerprint}",
        card.model,
        card.max_tokens(),
        args.scheme.name()
    ))?;
    match server.web_url() {
        Some(url) => output::line(format_args!("browsers open {url}")),
        None => Ok(()),
    }
}
