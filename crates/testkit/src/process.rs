//! Programs, and servers and gateways that are processes of their own: for what only a process has,
//! such as signals, streams, exit codes and memory.

use crate::command::{program, signal};
use crate::hint::give_hint;
use crate::http::Metrics;
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// Makes a command of `primer`, without any settings of the environment.
pub fn primer() -> Command {
    let mut command = program("primer");
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

/// A server process.
pub struct Server {
    child: Child,
    /// Where it listens.
    pub address: String,
    /// What its clients trust; nothing for a gateway.
    pub fingerprint: String,
    /// Its health and metrics, if it was told to have them.
    pub metrics: Metrics,
    /// Its state directory; its log is beside it.
    pub state: PathBuf,
}

impl Server {
    /// Starts one and waits until it is ready.
    pub fn start(state: &Path, args: &[&str]) -> Self {
        Self::start_on("127.0.0.1:0", state, args)
    }

    /// Starts one on an address of the caller's choice.
    pub fn start_on(listen: &str, state: &Path, args: &[&str]) -> Self {
        let mut command = primer();
        command.args(["serve", "--json", "--listen", listen, "--state"]);
        command.arg(state).args(args);
        Self::spawn(command, state)
    }

    /// Starts one by a prepared command.
    pub fn spawn(command: Command, state: &Path) -> Self {
        let log = File::options()
            .create(true)
            .append(true)
            .open(state.with_extension("log"))
            .unwrap();
        Self::spawn_logging(command, state, log)
    }

    /// Starts one with a log of the caller's choice.
    pub fn spawn_logging(mut command: Command, state: &Path, log: File) -> Self {
        give_hint(state);
        Self::spawn_bare(&mut command, state, log)
    }

    /// Starts one with nothing in its state directory that it did not put there.
    pub fn spawn_bare(command: &mut Command, state: &Path, log: File) -> Self {
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
            metrics: Metrics {
                address: text("metrics"),
            },
            state: state.to_owned(),
        }
    }

    /// Returns what it logged so far.
    pub fn log(&self) -> String {
        log_of(&self.state)
    }

    /// Ends it by `kill -9`.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Tells it to stop by `kill -TERM`, and returns how it ended.
    pub fn terminate(self) -> ExitStatus {
        self.signal("TERM");
        self.wait()
    }

    /// Returns how it ended, for a process that was told to stop. (A second signal would end it at
    /// once, with another status.)
    pub fn wait(mut self) -> ExitStatus {
        let status = self.child.wait().unwrap();
        std::mem::forget(self);
        status
    }

    /// Returns its number.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    pub fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }

    /// Returns its peak resident memory in bytes.
    pub fn peak_memory(&self) -> u64 {
        self.memory("VmHWM")
    }

    /// Returns its resident memory in bytes.
    pub fn resident_memory(&self) -> u64 {
        self.memory("VmRSS")
    }

    /// Counts its threads and open files.
    pub fn threads_and_files(&self) -> (u64, usize) {
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
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn log_of(state: &Path) -> String {
    std::fs::read_to_string(state.with_extension("log")).unwrap_or_default()
}

/// Makes a client's command that trusts the server.
pub fn client(command: &str, server: &Server, state: &Path) -> Command {
    let mut client = primer();
    client.arg(command).args(["--server", &server.address]);
    client.args(["--trust-fingerprint", &server.fingerprint, "--state"]);
    client.arg(state).stdin(Stdio::null());
    client
}
