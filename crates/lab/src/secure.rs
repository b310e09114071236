//! Both parties in this process: private inference for measurements of accuracy.
//!
//! Two threads with a TLS connection between them run the protocol as two machines would. The
//! client's side sees the inputs and the answers only, the server's side the weights only; that
//! they share a process is for convenience.

use crate::hinted::Hinted;
use anyhow::{Context, Result};
use primer_model::quantise::IntModel;
use primer_net::pair::{Transport, run_pair_over};
use primer_net::{Channel, Options};
use primer_protocol::client::{self, Answer};
use primer_protocol::server::{self, ServerModel};
use primer_protocol::session::{ClientSession, ServerSession};
use primer_protocol::{Program, ProtocolError, Reveal, Scheme};
use primer_ring::prg::Prg;
use primer_text::Input;
use std::io::{BufReader, Read, Seek};
use std::sync::Arc;
use std::time::Duration;

/// One party may compute for long before it says something.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Runs inputs of one padded length privately, one after the other, and hands over each answer as
/// it comes.
///
/// # Errors
/// If a party fails, or what the answer is handed to does.
pub(crate) fn run(
    model: &Arc<IntModel>,
    scheme: Scheme,
    hinted: Option<&Hinted>,
    inputs: &[&Input],
    mut each: impl FnMut(usize, &Answer) -> Result<()> + Send,
) -> Result<()> {
    let Some(tokens) = inputs.first().map(|input| input.tokens()) else {
        return Ok(());
    };
    let program = Program::of(model, scheme, tokens, Reveal::Outputs)?;
    let program = program.with_hint(hinted.map(|hinted| hinted.hint.identity()))?;
    let multipliers = hinted.map(|hinted| Arc::clone(&hinted.multipliers));
    let encoded = ServerModel::new(Arc::clone(model), &program, multipliers);
    let encoded = encoded.context("encoding the weights")?;
    let options = Options {
        timeout: Some(PATIENCE),
        ..Options::default()
    };
    // What the receiver of the answers said, if it was not satisfied.
    let mut unhappy = None;
    let result = run_pair_over::<_, _, ProtocolError>(
        Transport::Tls,
        &options,
        |channel| {
            let hint = hinted.map(|hinted| Arc::clone(&hinted.hint));
            let mut session = ClientSession::open(channel, scheme, tokens, hint, Prg::from_os())?;
            for (at, input) in inputs.iter().enumerate() {
                let answer = client(&mut session, channel, input)?;
                if let Err(error) = each(at, &answer) {
                    unhappy = Some(error);
                    break;
                }
            }
            Ok(())
        },
        |channel| {
            let offer = |_, _| Ok(program.clone());
            let mut session = ServerSession::accept(channel, offer, Prg::from_os())?;
            inputs
                .iter()
                .try_for_each(|_| server(&mut session, channel, &encoded))
        },
    );
    match unhappy {
        Some(error) => Err(error),
        None => Ok(result.map(|_| ())?),
    }
}

/// A bundle between offline and online, in a file that has no name.
fn rewound(mut file: std::fs::File) -> std::io::Result<impl Read + Send> {
    file.rewind()?;
    Ok(BufReader::with_capacity(1 << 20, file))
}

fn client(
    session: &mut ClientSession,
    channel: &mut Channel,
    input: &Input,
) -> Result<Answer, ProtocolError> {
    let mut file = tempfile::tempfile()?;
    session.prepare(channel, &mut file)?;
    session.infer(channel, client::Bundle::new(rewound(file)?), input)
}

fn server(
    session: &mut ServerSession,
    channel: &mut Channel,
    model: &ServerModel,
) -> Result<(), ProtocolError> {
    let mut file = tempfile::tempfile()?;
    session.prepare(channel, model, &mut file)?;
    session.infer(channel, model, server::Bundle::new(rewound(file)?))?;
    Ok(())
}
