//! `primer demo`: both parties on this machine, as two processes over TLS.

use super::batch::combined;
use super::classify::classification_json;
use super::remote::{cost_line, merged, note_range, show_progress};
use anyhow::{Context, Result, bail};
use clap::Args;
use primer::client::{argmax, probabilities};
use primer::source::Model;
use primer::{Classification, Client, ClientOptions, Fingerprint, HangUp};
use primer_gateway::{Access, Connect, Gateway, Options};
use primer_measure::console::output;
use primer_measure::note;
use primer_model::float::{self, NoObserver};
use primer_plan::graph::Graph;
use primer_plan::shape::Head;
use primer_text::Truncate;
use serde::Deserialize;
use serde_json::{Value, json};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What is judged if no text is given.
const TEXTS: [&str; 2] = [
    "a warm, funny and moving film",
    "the plot is thin and the jokes are old",
];

/// What is said at the end.
const SEEN: &str = "
  server  that a client asked, and the padded length; every value it computed on was masked
          by randomness of the client that was used once
  client  the model's shape, its tokenizer, and the two scores; no weight, nothing in between
Both are assumed to follow the protocol; SECURITY.md says what else is and is not promised.";

/// Arguments of `primer demo`.
#[derive(Args)]
#[command(after_help = "\
Starts this program a second time as the server, with the embedded sentiment model, on a port of
127.0.0.1 that the system chooses; the first process is the client. They talk TLS 1.3 and keep their
state in a temporary directory, which is removed at the end.

Examples:
  primer demo \"one of the best films of the year\"
  primer demo --open")]
pub(super) struct DemoArgs {
    /// The text to judge; two built-in ones if not given
    text: Option<String>,
    /// Open a page in the browser instead, with server and gateway behind it, until Ctrl-C
    #[arg(long, conflicts_with_all = ["text", "json"])]
    open: bool,
    /// Where the page of --open is served
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8087")]
    listen: SocketAddr,
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
}

/// The server process; it ends with this value, whatever happens, and with this process even if
/// that is killed.
struct ServerProcess {
    child: Child,
    /// The server stops when this pipe closes.
    _stdin: Option<ChildStdin>,
    ready: Ready,
}

/// What the server says when it is ready.
#[derive(Deserialize)]
struct Ready {
    address: String,
    fingerprint: String,
}

impl ServerProcess {
    fn start(state: &Path) -> Result<Self> {
        let program = std::env::current_exe().context("locating this program's executable")?;
        let mut child = Command::new(program)
            .args(["serve", "--json", "--stop-with-stdin"])
            .args(["--listen", "127.0.0.1:0", "--state"])
            .arg(state)
            .env("PRIMER_LOG", "warn")
            // Settings are for servers that people start.
            .env("PRIMER_CONFIG", "")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting the server process")?;
        let stdin = child.stdin.take();
        let output = child.stdout.take();
        let mut process = Self {
            child,
            _stdin: stdin,
            ready: Ready {
                address: String::new(),
                fingerprint: String::new(),
            },
        };
        let mut line = String::new();
        if let Some(output) = output {
            BufReader::new(output)
                .read_line(&mut line)
                .context("reading what the server says")?;
        }
        match serde_json::from_str(&line) {
            Ok(ready) => process.ready = ready,
            Err(_) => bail!("the server process ended before it was ready"),
        }
        Ok(process)
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(super) fn run(args: &DemoArgs) -> Result<()> {
    let started = Instant::now();
    let dir = tempfile::tempdir().context("making a temporary directory")?;
    clean_up_on_signals(dir.path())?;
    let server = ServerProcess::start(&dir.path().join("server"))?;
    let trust: Fingerprint = (server.ready.fingerprint.parse()).map_err(anyhow::Error::msg)?;
    let (address, state) = (server.ready.address.clone(), dir.path().join("client"));
    let connect = move |hang_up| {
        let options = ClientOptions {
            state: Some(state.clone()),
            trust: Some(trust),
            hang_up,
            ..ClientOptions::default()
        };
        Client::connect(&address, options)
    };
    if args.open {
        return open_page(args.listen, Arc::new(connect));
    }
    let mut client = connect(HangUp::default())?;
    if !args.json {
        show_progress(&mut client, 3);
        introduce(&server, &client)?;
    }
    let plain = Model::load(None)?;
    let texts: Vec<&str> = match &args.text {
        Some(text) => vec![text],
        None => TEXTS.to_vec(),
    };
    let mut results = Vec::new();
    for text in texts {
        let found = client.classify(text)?;
        note_range(found.in_range);
        let (label, score) = in_the_clear(&plain, text)?;
        if args.json {
            let clear = json!({"text": text, "plaintext_label": label, "plaintext_score": score});
            results.push(merged(classification_json(&found), clear));
        } else {
            show(text, &found, &label, score)?;
        }
    }
    let transport = client.transport();
    client.close();
    drop(server);
    let seconds = started.elapsed().as_secs_f64();
    if args.json {
        let object = combined(results).unwrap_or(Value::Null);
        output::line(merged(object, json!({"total_s": seconds})))
    } else {
        output::line(format_args!(
            "What each party saw ({transport}):{SEEN}\nDone in {seconds:.1} s."
        ))
    }
}

/// Serves the page until a signal ends the process.
fn open_page(listen: SocketAddr, connect: Connect) -> Result<()> {
    let gateway = Gateway::bind(
        Options {
            listen,
            access: Access::default(),
            stock: 4,
            lengths: vec![16],
            workers: 2,
            queue: 64,
            drain: Duration::from_secs(5),
        },
        connect,
    )?;
    let url = format!("http://{}/", gateway.address());
    output::line(format_args!(
        "the page is at {url}; Ctrl-C ends it, and the server behind it"
    ))?;
    let opener = std::env::var("BROWSER").unwrap_or_else(|_| "xdg-open".to_owned());
    let opened = Command::new(opener)
        .arg(&url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if opened.is_err() {
        note!("primer: no browser was found; open the address in yours");
    }
    Ok(gateway.run()?)
}

fn introduce(server: &ServerProcess, client: &Client) -> Result<()> {
    output::line(format_args!(
        "server: process {}, {} at {}, certificate {}…\n\
         client: process {}, holds the text\n",
        server.child.id(),
        client.card().model,
        server.ready.address,
        &server.ready.fingerprint[..16],
        std::process::id()
    ))
}

fn show(text: &str, found: &Classification, label: &str, score: f64) -> Result<()> {
    let private = found.score.unwrap_or_default();
    let cost = cost_line(&found.cost);
    let cut = match found.removed {
        0 => String::new(),
        removed => format!("  (the text was too long and was cut by {removed} tokens)\n"),
    };
    output::line(format_args!(
        "\"{text}\"\n  \
         private    {:<9} {private:.4}   {cost}\n  \
         plaintext  {label:<9} {score:.4}   the same model in single precision, for comparison\n\
         {cut}",
        found.label
    ))
}

/// Returns the float model's label and its probability.
fn in_the_clear(model: &Model, text: &str) -> Result<(String, f64)> {
    let limit = model.max_tokens();
    let input = model
        .text
        .encode_padded(text, None, limit, Truncate::LongestFirst)?;
    let graph = Graph::new(&model.shape, input.tokens());
    let outputs = float::run(&graph, &model.weights, &input, &mut NoObserver);
    let logits: Vec<f64> = outputs[0].data().iter().map(|v| f64::from(*v)).collect();
    let index = argmax(&logits);
    let label = match &model.shape.head {
        Head::Classify { labels, .. } => labels[index].clone(),
        _ => bail!("the embedded model has labels"),
    };
    Ok((label, probabilities(&logits)[index]))
}

/// Lets a signal end this process at once; the server notices by its closed pipe, the directory is
/// removed here.
fn clean_up_on_signals(dir: &Path) -> Result<()> {
    let dir = dir.to_owned();
    let mut signals = Signals::new([SIGTERM, SIGINT]).context("registering signal handlers")?;
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            let _ = std::fs::remove_dir_all(&dir);
            let _ = std::io::stdout().flush();
            std::process::exit(130);
        }
    });
    Ok(())
}
