//! What replicas share, started by `scripts/fleet`, and the replicas.

use primer_testkit::command::{fails, stderr};
use primer_testkit::files::{repository, write};
use primer_testkit::process::{Server, primer};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A database, a place for blobs, a certificate, scales.
pub(super) struct Rig {
    dir: TempDir,
    database: String,
    /// Where the S3 server is; a directory instead if there is none.
    s3: Option<String>,
    files: [String; 4],
}

fn script(args: &[&str]) -> Output {
    let mut command = Command::new(repository("scripts/fleet"));
    command.args(args).stdin(Stdio::null());
    command.output().unwrap()
}

/// Returns what a script printed; none if what it needs is missing, which is told.
fn wanted(output: &Output) -> Option<String> {
    if output.status.code() == Some(77) {
        println!("skipped, because {}", stderr(output).trim());
        return None;
    }
    assert!(output.status.success(), "{}", stderr(output));
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

impl Rig {
    /// Starts a database, and an S3 server if it is asked for.
    pub(super) fn start(s3: bool) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().display().to_string();
        let database = wanted(&script(&["postgres", "start", &path]))?;
        let identity = primer_net::tls::Identity::self_signed(&["primer".to_owned()]).unwrap();
        let prepared = dir.path().join("prepared").display().to_string();
        let files = [
            write(dir.path(), "cert.pem", identity.chain_pem()),
            write(dir.path(), "key.pem", identity.key_pem()),
            write(dir.path(), "store.key", [7; 32]),
            prepared.clone(),
        ];
        let mut rig = Self {
            dir,
            database,
            s3: None,
            files,
        };
        use std::os::unix::fs::PermissionsExt;
        let owner_only = PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&rig.files[2], owner_only).unwrap();
        let saved = primer()
            .args(["inspect", "--json", "--save-prepared", &prepared])
            .output();
        assert!(saved.unwrap().status.success());
        if s3 {
            rig.s3 = Some(wanted(&script(&["s3", "start", &path]))?);
        }
        Some(rig)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Has the script do something that must succeed.
    pub(super) fn act(&self, part: &str, action: &str) {
        let path = self.dir.path().display().to_string();
        let done = script(&[part, action, &path]);
        assert!(done.status.success(), "{}", stderr(&done));
    }

    fn blobs(&self) -> String {
        match &self.s3 {
            Some(_) => "s3://primer/fleet".into(),
            None => format!("file://{}", self.path("blobs").display()),
        }
    }

    /// Tells a command where the store is.
    fn shared(&self, command: &mut Command) {
        command.args(["--store", &self.database, "--blobs", &self.blobs()]);
        command.args(["--store-key-file", &self.files[2]]);
        if let Some(s3) = &self.s3 {
            for (name, value) in [
                ("AWS_ENDPOINT", s3.as_str()),
                ("AWS_ALLOW_HTTP", "true"),
                ("AWS_REGION", "us-east-1"),
                ("AWS_ACCESS_KEY_ID", "S3RVER"),
                ("AWS_SECRET_ACCESS_KEY", "S3RVER"),
            ] {
                command.env(name, value);
            }
        }
    }

    /// Makes the command of a server with a store of its own, on these addresses.
    pub(super) fn serving(&self, name: &str, listen: &str, metrics: &str) -> Command {
        let mut command = primer();
        let [cert, key, _, prepared] = &self.files;
        command.args(["serve", "--json", "--replica", name, "--listen", listen]);
        command.args(["--cert", cert, "--key", key, "--prepared", prepared]);
        // The first of them builds the hint for all.
        command.arg("--hint-dir").arg(self.path("hints"));
        command.args(["--metrics", metrics, "--state"]);
        command.arg(self.path(name));
        command
    }

    /// Starts a replica, on addresses of its own choice or on those of before.
    pub(super) fn replica(
        &self,
        name: &str,
        before: Option<(&str, &str)>,
        args: &[&str],
    ) -> Server {
        let (listen, metrics) = before.unwrap_or(("127.0.0.1:0", "127.0.0.1:0"));
        let mut command = self.serving(name, listen, metrics);
        self.shared(&mut command);
        command.args(args);
        Server::spawn(command, &self.path(name))
    }

    /// Checks that a replica does not start, and says these words.
    pub(super) fn refused(&self, name: &str, words: &[&str]) {
        let mut command = self.serving(name, "127.0.0.1:0", "127.0.0.1:0");
        self.shared(&mut command);
        fails(&mut command, 1, words);
    }

    /// Copies the database and directories of the rig, all of one moment, or brings them back.
    pub(super) fn copy(&self, action: &str, directories: &[&str]) {
        self.act("postgres", "stop");
        self.act("postgres", action);
        for name in directories {
            let (there, saved) = (self.path(name), self.path(&format!("{name}.saved")));
            let (from, to) = match action {
                "save" => (there, saved),
                _ => (saved, there),
            };
            let _ = std::fs::remove_dir_all(&to);
            let copied = Command::new("cp").arg("-a").arg(from).arg(to).status();
            assert!(copied.unwrap().success());
        }
        self.act("postgres", "start");
    }

    /// Starts HAProxy before some replicas; gives its address.
    pub(super) fn balancer(&self, replicas: &[&Server]) -> Option<String> {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        drop(socket);
        let path = self.dir.path().display().to_string();
        let port = address.port().to_string();
        let mut args = vec!["haproxy".to_owned(), "start".into(), path, port];
        for replica in replicas {
            let check = replica.metrics.address.rsplit(':').next().unwrap();
            args.push(format!("{check}={}", replica.address));
        }
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        wanted(&script(&args))?;
        Some(address.to_string())
    }

    /// Runs `primer store`.
    pub(super) fn store(&self, action: &str) -> Value {
        let output = self.store_command(action).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Makes a `primer store` command.
    pub(super) fn store_command(&self, action: &str) -> Command {
        let mut command = primer();
        command.args(["store", action]);
        self.shared(&mut command);
        command
    }

    /// Runs some SQL.
    pub(super) fn sql(&self, sql: &str) -> String {
        let path = self.dir.path().display().to_string();
        wanted(&script(&["postgres", "sql", &path, sql])).unwrap()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let path = self.dir.path().display().to_string();
        script(&["down", &path]);
    }
}

/// Makes a client's command for an address.
pub(super) fn client(command: &str, address: &str, fingerprint: &str, state: &Path) -> Command {
    let mut client = primer();
    client.args([command, "--json", "--server", address]);
    client.args(["--trust-fingerprint", fingerprint, "--state"]);
    client.arg(state).stdin(Stdio::null());
    client
}
