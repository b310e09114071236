//! Real servers and real clients, each a process of its own.

use primer_store::{Fate, Store};
use serde_json::Value;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// Texts whose sentiment nobody doubts, the embedded model least of all.
pub(crate) const TEXTS: [(&str, &str); 5] = [
    ("a warm , funny film", "positive"),
    ("an utter mess", "negative"),
    ("one of the best films of the year", "positive"),
    ("the plot is thin and the jokes are old", "negative"),
    ("a wonderful story", "positive"),
];

/// A command of the program under test, without any settings of whoever runs the tests.
pub(crate) fn primer() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_primer"));
    command.env("PRIMER_CONFIG", "");
    for variable in [
        "PRIMER_SERVER",
        "PRIMER_STATE",
        "PRIMER_TOKEN",
        "PRIMER_LOG",
        "PRIMER_STORE",
        "PRIMER_BLOBS",
        "PRIMER_STORE_KEY",
    ] {
        command.env_remove(variable);
    }
    command
}

/// A file of the repository.
pub(crate) fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

/// A file with a text, and its name.
pub(crate) fn write(dir: &Path, name: &str, text: impl AsRef<[u8]>) -> String {
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// The random question-answering model with a vocabulary.
pub(crate) fn random_qa(dir: &Path) -> String {
    let model = dir.join("random-qa");
    std::fs::create_dir(&model).unwrap();
    let fixtures = repository("crates/model/tests/fixtures/random-qa");
    for file in ["config.json", "model.safetensors", "tokenizer_config.json"] {
        std::fs::copy(fixtures.join(file), model.join(file)).unwrap();
    }
    let vocab = repository("models/sst2-demo/vocab.txt");
    std::fs::copy(vocab, model.join("vocab.txt")).unwrap();
    model.display().to_string()
}

/// A copy of the embedded model's directory.
pub(crate) fn copy_of_demo(dir: &Path) {
    let demo = repository("models/sst2-demo");
    for file in ["config.json", "tokenizer.json", "model.safetensors"] {
        std::fs::copy(demo.join(file), dir.join(file)).unwrap();
    }
}

/// The server's half of a state directory with the embedded model's hint in it. It takes seconds to
/// build, so it is kept from one run of the tests to the next, and built anew if it has changed.
static BUILT: LazyLock<PathBuf> = LazyLock::new(|| {
    let state = Path::new(env!("CARGO_TARGET_TMPDIR")).join("state-with-hint");
    let built = primer()
        .args(["hint", "build", "--state"])
        .arg(&state)
        .output();
    let built = built.unwrap();
    assert!(built.status.success(), "{}", stderr(&built));
    state.join("server")
});

/// Gives a server's state the hint that was built before, unless it has one.
pub(crate) fn give_hint(state: &Path) {
    let own = state.join("server");
    if own.join("hint.key").exists() {
        return;
    }
    std::fs::create_dir_all(own.join("hints")).unwrap();
    for file in std::fs::read_dir(BUILT.join("hints")).unwrap() {
        let file = file.unwrap();
        let (from, to) = (file.path(), own.join("hints").join(file.file_name()));
        // No test writes into it: one file serves all, where one file system does.
        if std::fs::hard_link(&from, &to).is_err() {
            std::fs::copy(from, to).unwrap();
        }
    }
    std::fs::copy(BUILT.join("hint.key"), own.join("hint.key")).unwrap();
}

/// A server process.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
    pub(crate) fingerprint: String,
    pub(crate) metrics: String,
    pub(crate) state: PathBuf,
}

impl Server {
    /// Starts one and waits until it is ready.
    pub(crate) fn start(state: &Path, args: &[&str]) -> Self {
        Self::start_on("127.0.0.1:0", state, args)
    }

    /// On an address of the caller's choice.
    pub(crate) fn start_on(listen: &str, state: &Path, args: &[&str]) -> Self {
        let mut command = primer();
        command.args(["serve", "--json", "--listen", listen, "--state"]);
        command.arg(state).args(args);
        Self::spawn(command, state)
    }

    /// From a prepared command.
    pub(crate) fn spawn(command: Command, state: &Path) -> Self {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(state.with_extension("log"))
            .unwrap();
        Self::spawn_logging(command, state, log)
    }

    /// With a log of the caller's choice.
    pub(crate) fn spawn_logging(mut command: Command, state: &Path, log: File) -> Self {
        give_hint(state);
        Self::spawn_bare(&mut command, state, log)
    }

    /// With nothing in its state directory that it did not put there.
    pub(crate) fn spawn_bare(command: &mut Command, state: &Path, log: File) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut line = String::new();
        let out = child.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap_or_else(|_| {
            let _ = child.wait();
            panic!("the server did not start: {}", log_of(state))
        });
        let text = |key: &str| ready[key].as_str().unwrap_or_default().to_owned();
        Self {
            child,
            address: text("address"),
            fingerprint: text("fingerprint"),
            metrics: text("metrics"),
            state: state.to_owned(),
        }
    }

    /// What it logged so far.
    pub(crate) fn log(&self) -> String {
        log_of(&self.state)
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// `kill -TERM`, and how it ended.
    pub(crate) fn terminate(self) -> ExitStatus {
        self.signal("TERM");
        self.wait()
    }

    /// How it ended; for a process that was told to stop. (A second signal would end it at once,
    /// with another status.)
    pub(crate) fn wait(mut self) -> ExitStatus {
        let status = self.child.wait().unwrap();
        std::mem::forget(self);
        status
    }

    /// Its number.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }

    /// Peak resident memory in bytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        self.memory("VmHWM")
    }

    /// Resident memory in bytes.
    pub(crate) fn resident_memory(&self) -> u64 {
        self.memory("VmRSS")
    }

    /// Threads, and open files.
    pub(crate) fn threads_and_files(&self) -> (u64, usize) {
        let files = format!("/proc/{}/fd", self.child.id());
        let files = std::fs::read_dir(files).unwrap().count();
        (self.status("Threads"), files)
    }

    fn memory(&self, name: &str) -> u64 {
        self.status(name) << 10
    }

    fn status(&self, name: &str) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status.lines().find(|l| l.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// A page of the metrics port.
    pub(crate) fn page(&self, path: &str) -> String {
        let mut socket = TcpStream::connect(&self.metrics).unwrap();
        let head = "HTTP/1.1\r\nHost: x\r\nConnection: close";
        write!(socket, "GET {path} {head}\r\n\r\n").unwrap();
        let mut page = String::new();
        socket.read_to_string(&mut page).unwrap();
        page
    }

    /// One number of the metrics.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let page = self.page("/metrics");
        let line = page
            .lines()
            .find_map(|l| l.strip_prefix(&format!("{name} ")));
        line.unwrap_or_else(|| panic!("no {name} in {page}"))
            .parse()
            .unwrap()
    }

    /// Waits until a number of the metrics has come to a value. The server counts after it has
    /// sent, so a client may be done before what it did is counted.
    pub(crate) fn counts(&self, name: &str, value: f64) {
        eventually(&format!("{name} = {value}"), || self.metric(name) == value);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn log_of(state: &Path) -> String {
    std::fs::read_to_string(state.with_extension("log")).unwrap_or_default()
}

/// Sends a signal to a process that this test started.
pub(crate) fn signal(process: u32, name: &str) {
    let status = Command::new("kill")
        .args([&format!("-{name}"), &process.to_string()])
        .status();
    assert!(status.unwrap().success());
}

/// A client's command that trusts the server.
pub(crate) fn client(command: &str, server: &Server, state: &Path) -> Command {
    let mut client = primer();
    client.arg(command).args(["--server", &server.address]);
    client.args(["--trust-fingerprint", &server.fingerprint, "--state"]);
    client.arg(state).stdin(Stdio::null());
    client
}

/// The JSON object that a command prints.
pub(crate) fn json(command: &mut Command) -> Value {
    let output = command.arg("--json").output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("one JSON object on standard output")
}

/// What a command said on standard error.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A command that must fail with a code and certain words, and without a panic.
pub(crate) fn fails(command: &mut Command, code: i32, words: &[&str]) -> String {
    let output = command.output().unwrap();
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{message}");
    assert!(output.stdout.is_empty());
    assert!(!message.contains("panicked"), "{message}");
    for word in words {
        assert!(message.contains(word), "no \"{word}\" in: {message}");
    }
    message
}

/// Waits until something holds. Not a measurement: a machine may be busy with other tests.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    const PATIENCE: Duration = Duration::from_secs(180);
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(
            Instant::now() < end,
            "{what} did not happen in {PATIENCE:?}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// How often each bundle was given out, by the tombstones of a store.
pub(crate) fn spends(state: &Path, role: &str) -> HashMap<String, u32> {
    let store = Store::open(state.join(role).join("store")).unwrap();
    let history = store.history().unwrap();
    let spent = history.into_iter().filter(|p| p.fate == Fate::Spent);
    spent.map(|p| (p.id.to_string(), p.spends)).collect()
}

/// Checks, from both stores, that no bundle was used twice and that the server used none that its
/// clients kept.
pub(crate) fn check_stores(server: &Path, clients: &[&Path]) {
    let served = spends(server, "server");
    let mut asked = HashMap::new();
    for client in clients {
        for (id, times) in spends(client, "client") {
            assert_eq!(times, 1, "the client spent {id} more than once");
            assert!(asked.insert(id, ()).is_none(), "two clients share a bundle");
        }
    }
    for (id, times) in &served {
        assert_eq!(*times, 1, "the server spent {id} more than once");
        assert!(
            asked.contains_key(id),
            "the server spent {id}, which no client spent"
        );
    }
}
