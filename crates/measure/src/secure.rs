//! Both parties in this process: private inference for measurements of accuracy.
//!
//! Two threads with a TLS connection between them run the protocol as two machines would. The
//! client's side sees the inputs and the answers only, the server's side the weights only; that
//! they share a process is for convenience.

use crate::hinted::Hinted;
use crate::scheme::{BundleReader, ClientEnd, Scheme, SchemeAnswer, ServerEnd};
use anyhow::Result;
use primer_model::quantise::IntModel;
use primer_net::pair::{Medium, run_pair_over};
use primer_text::Input;
use primer_wire::{Channel, Options};
use std::io::{BufReader, Seek};
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
    scheme: &dyn Scheme,
    hinted: Option<&Hinted>,
    inputs: &[&Input],
    mut each: impl FnMut(usize, &SchemeAnswer) -> Result<()> + Send,
) -> Result<()> {
    let Some(tokens) = inputs.first().map(|input| input.tokens()) else {
        return Ok(());
    };
    let weights = scheme.server(Arc::clone(model), tokens, hinted)?;
    let options = Options {
        timeout: Some(PATIENCE),
        ..Options::default()
    };
    // What the receiver of the answers said, if it was not satisfied.
    let mut unhappy = None;
    let result = run_pair_over::<_, _, anyhow::Error>(
        Medium::Tls,
        &options,
        |channel| {
            let hint = hinted.map(|hinted| Arc::clone(&hinted.hint));
            let mut session = scheme.client(channel, tokens, hint)?;
            for (at, input) in inputs.iter().enumerate() {
                let answer = client(&mut *session, channel, input)?;
                if let Err(error) = each(at, &answer) {
                    unhappy = Some(error);
                    break;
                }
            }
            Ok(())
        },
        |channel| {
            let mut session = weights.accept(channel)?;
            inputs
                .iter()
                .try_for_each(|_| server(&mut *session, channel))
        },
    );
    match unhappy {
        Some(error) => Err(error),
        None => result.map(|_| ()),
    }
}

/// Turns a bundle that was written into a file without a name into one to be read.
fn rewound(mut file: std::fs::File) -> std::io::Result<BundleReader> {
    file.rewind()?;
    Ok(Box::new(BufReader::with_capacity(1 << 20, file)))
}

fn client(
    session: &mut dyn ClientEnd,
    channel: &mut Channel,
    input: &Input,
) -> Result<SchemeAnswer> {
    let mut file = tempfile::tempfile()?;
    session.prepare(channel, &mut [&mut file])?;
    session.infer(channel, rewound(file)?, input)
}

fn server(session: &mut dyn ServerEnd, channel: &mut Channel) -> Result<()> {
    let mut file = tempfile::tempfile()?;
    session.prepare(channel, &mut [&mut file])?;
    session.infer(channel, rewound(file)?)
}
