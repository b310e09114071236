//! `primer gateway`: HTTP beside the owner of the text.

use super::remote::RemoteArgs;
use super::serve::heed_signals;
use crate::log::{self, LogForm};
use crate::notify;
use anyhow::{Context, Result, ensure};
use clap::Args;
use primer::{Client, ClientOptions, Zeroizing};
use primer_gateway::{Access, Gateway, Options};
use primer_measure::console::output;
use serde_json::json;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Arguments of `primer gateway`.
#[derive(Args)]
#[command(after_help = "\
Runs beside the owner of the text: what reaches the gateway is the text itself, what leaves it for
the server is masked. It listens on loopback; on other addresses only with --expose and a token.

It answers in the shapes of Hugging Face's inference API:
  POST /              {\"inputs\": \"a warm film\"}  ->  [[{\"label\": …, \"score\": …}, …]]
  POST /models/NAME   the same, if the server's model has that name
  GET /               a page for people; /status the same as JSON
  GET /healthz, GET /metrics

Errors are {\"error\": …} with a status of 400, 401, 403, 404, 405, 408, 413, 429, 500 or 503. The
header x-primer-meta says what an answer cost, and so does \"meta\" in the answer with
{\"options\": {\"meta\": true}}.

--stock bundles are kept prepared for each length that is asked for, so that a request takes only
the online phase. SIGTERM and SIGINT stop it in good order.

Examples:
  primer gateway --server models.example:7447 --trust-fingerprint 3f0a…
  curl http://127.0.0.1:8087/ -d '{\"inputs\": \"a warm and funny film\"}'")]
pub(super) struct GatewayArgs {
    #[command(flatten)]
    remote: RemoteArgs,
    /// Address to listen on, by plain HTTP; port 0 lets the system choose
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8087")]
    listen: String,
    /// Listen where other machines can connect; texts travel to the gateway in the clear
    #[arg(long, requires = "gateway_token_file")]
    expose: bool,
    /// File with the token that callers show as "Authorization: Bearer TOKEN"
    #[arg(long, value_name = "FILE")]
    gateway_token_file: Option<PathBuf>,
    /// Bundles that are kept prepared for each length; 0 prepares each when it is needed
    #[arg(long, value_name = "N", default_value_t = 4,
          value_parser = clap::value_parser!(u16).range(0..=1024))]
    stock: u16,
    /// Lengths to prepare from the start, in tokens, with commas between; others join when they are
    /// asked for [default: 32]
    #[arg(long, value_name = "TOKENS", value_delimiter = ',',
          value_parser = clap::value_parser!(u16).range(1..=512))]
    lengths: Vec<u16>,
    /// Questions that are answered at the same time, each on a connection of its own
    #[arg(long, value_name = "N", default_value_t = 2,
          value_parser = clap::value_parser!(u16).range(1..=64))]
    workers: u16,
    /// Questions that may wait; one more is refused with status 429
    #[arg(long, value_name = "N", default_value_t = 64,
          value_parser = clap::value_parser!(u16).range(1..=4096))]
    queue: u16,
    /// How long a stop waits for answers under way
    #[arg(long, value_name = "SECONDS", default_value_t = 60,
          value_parser = clap::value_parser!(u64).range(0..=3600))]
    drain_timeout: u64,
    /// Form of the log
    #[arg(long, default_value = "text")]
    log: LogForm,
    /// Print the address and the model as one JSON object on standard output
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &GatewayArgs) -> Result<()> {
    log::start(args.log);
    serve(args).map_err(|error| log::last(args.log, error))
}

fn serve(args: &GatewayArgs) -> Result<()> {
    let token = match &args.gateway_token_file {
        None => None,
        Some(path) => {
            let text = std::fs::read_to_string(path).map(Zeroizing::new);
            let text = text.with_context(|| format!("reading the token {}", path.display()))?;
            ensure!(!text.trim().is_empty(), "{} holds no token", path.display());
            Some(Zeroizing::new(text.trim().to_owned()))
        }
    };
    let options = Options {
        listen: resolve(&args.listen)?,
        access: Access {
            expose: args.expose,
            token,
        },
        stock: usize::from(args.stock),
        lengths: args.lengths.iter().map(|n| usize::from(*n)).collect(),
        workers: usize::from(args.workers),
        queue: usize::from(args.queue),
        drain: Duration::from_secs(args.drain_timeout),
    };
    let (server, remote) = (args.remote.server.clone(), args.remote.options()?);
    let connect = Arc::new(move |hang_up| {
        let options = ClientOptions {
            hang_up,
            ..remote.clone()
        };
        Client::connect(&server, options)
    });
    let gateway = Gateway::bind(options, connect)?;
    let stop = gateway.shutdown_handle();
    heed_signals(move || stop.shut_down(), None)?;
    announce(args, &gateway)?;
    notify::ready();
    Ok(gateway.run()?)
}

fn resolve(address: &str) -> Result<SocketAddr> {
    let found = address.to_socket_addrs();
    let found = found
        .with_context(|| format!("resolving the address to listen on, {address}"))?
        .next();
    found.with_context(|| format!("{address} is not an address"))
}

fn announce(args: &GatewayArgs, gateway: &Gateway) -> Result<()> {
    let (address, model) = (gateway.address(), &gateway.card().model);
    match args.json {
        true => output::line(json!({"address": address.to_string(), "model": model})),
        false => output::line(format_args!("answering for {model} on http://{address}")),
    }
}
