//! The two processes of a measurement: starting them, and what they say.

use super::party::{Outcome, Ready};
use super::{Entrant, Request};
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
    fn start(arguments: &[String]) -> Result<Self> {
        let program = std::env::current_exe().context("finding this program")?;
        let child = Command::new(program)
            .arg("bench-party")
            .args(arguments)
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

/// Starts the two parties and waits for what they measured.
pub(super) fn pair(
    request: &Request,
    entrant: Entrant,
    prepared: Option<&Path>,
) -> Result<(Outcome, Outcome)> {
    let common = [
        "--scheme".into(),
        entrant.name().to_owned(),
        "--tokens".into(),
        request.tokens.to_string(),
        "--runs".into(),
        request.runs.to_string(),
        "--link".into(),
        request.link.name().to_owned(),
    ];
    let with = |role: &str, own: &[String]| {
        let mut all = vec![role.to_owned()];
        all.extend_from_slice(&common);
        all.extend_from_slice(own);
        all
    };
    let prepared = prepared.map(|path| ["--prepared".into(), path.display().to_string()]);
    let prepared = prepared.as_ref().map_or(&[][..], |pair| &pair[..]);
    let mut server = Party::start(&with("server", prepared))?;
    let mut from_server = server.output()?;
    let mut line = String::new();
    from_server.read_line(&mut line)?;
    let ready: Ready = match serde_json::from_str(&line) {
        Ok(ready) => ready,
        Err(_) => bail!("the server did not start: {}", server.0.wait()?),
    };
    eprintln!("primer: scheme {}: both parties run", entrant.name());
    let connect = [
        "--connect".into(),
        ready.address.to_string(),
        ready.fingerprint,
    ];
    let mut client = Party::start(&with("client", &connect))?;
    let mut found = String::new();
    client.output()?.read_to_string(&mut found)?;
    let client = client.end("client", &found)?;
    found.clear();
    from_server.read_to_string(&mut found)?;
    Ok((server.end("server", &found)?, client))
}
