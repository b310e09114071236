//! The two processes of a measurement: starting them, and what they say.

use super::Request;
use super::entrant::Entrant;
use super::party::{Job, Outcome, Ready, Role};
use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A party that does not outlive the measurement.
struct Party(Child);

impl Drop for Party {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Party {
    fn start(job: &Job) -> Result<Self> {
        let program = std::env::current_exe().context("locating this program's executable")?;
        let child = Command::new(program)
            .arg("bench-party")
            .args(crate::notes::is_quiet().then_some("--quiet"))
            .arg(serde_json::to_string(job)?)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn();
        Ok(Self(child.context("starting a party")?))
    }

    fn output(&mut self) -> Result<BufReader<impl Read + use<>>> {
        let output = self.0.stdout.take();
        Ok(BufReader::new(output.context("a party has an output")?))
    }

    fn end(&mut self, who: &str, output: &str) -> Result<Outcome> {
        let status = self.0.wait()?;
        if !status.success() {
            bail!("the {who} failed: {status}");
        }
        serde_json::from_str(output).with_context(|| format!("reading what the {who} measured"))
    }
}

/// Starts the server's process and the client's, and returns what they measured.
///
/// # Errors
/// If either fails.
pub fn pair(
    request: &Request,
    entrant: &dyn Entrant,
    prepared: Option<&Path>,
) -> Result<(Outcome, Outcome)> {
    let job = |role| Job {
        role,
        entrant: entrant.name().to_owned(),
        tokens: request.tokens,
        runs: request.runs,
        bundles: entrant.bundles(request.bundles),
        threads: request.threads,
        record: request.record,
        link: request.link,
    };
    let prepared = prepared.map(Path::to_owned);
    let mut server = Party::start(&job(Role::Server { prepared }))?;
    let mut from_server = server.output()?;
    let mut line = String::new();
    from_server.read_line(&mut line)?;
    let ready: Ready = match serde_json::from_str(&line) {
        Ok(ready) => ready,
        Err(_) => bail!("the server did not start: {}", server.0.wait()?),
    };
    crate::note!("primer: scheme {}: both parties run", entrant.name());
    let mut client = Party::start(&job(Role::Client { server: ready }))?;
    let mut found = String::new();
    client.output()?.read_to_string(&mut found)?;
    let client = client.end("client", &found)?;
    found.clear();
    from_server.read_to_string(&mut found)?;
    Ok((server.end("server", &found)?, client))
}
