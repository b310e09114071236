//! Many texts in one call: lines of standard input, a result for each.
//!
//! One line in is one line out, in order and under its number, whatever becomes of it: a blank line
//! and a line that is not text are lines whose result is an error. Work goes on after an error, and
//! every result is written when it is there, so that nothing that was paid for with a bundle is
//! lost to a later line. In the end the exit code tells whether all went well.

use super::remote::merged;
use anyhow::{Context, Result, bail};
use primer_measure::console::failure::{AlreadyReported, sentence};
use primer_measure::console::output;
use primer_measure::warning;
use serde_json::{Value, json};
use std::io::BufRead;

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As Hugging Face's pipelines print them, a line each.
    Pipeline,
    /// One object in the end.
    Json,
    /// An object a line.
    Jsonl,
}

/// Calls a function with the number and the text of every line, from 1; ends with an error if the
/// input cannot be read.
pub(super) fn each_line(
    mut input: impl BufRead,
    mut one: impl FnMut(u64, Result<&str>) -> Result<()>,
) -> Result<()> {
    let mut bytes = Vec::new();
    for number in 1.. {
        bytes.clear();
        let read = input.read_until(b'\n', &mut bytes);
        if read.context("reading standard input")? == 0 {
            break;
        }
        let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        one(
            number,
            std::str::from_utf8(line).context("this is not text in UTF-8"),
        )?;
    }
    Ok(())
}

/// The results of a call, written as they come.
pub(super) struct Results {
    form: Form,
    /// Those that are written in the end.
    kept: Vec<Value>,
    lines: u64,
    /// How many failed, and what was wrong with the first.
    failed: u64,
    first: String,
}

impl Results {
    pub(super) fn new(form: Form) -> Self {
        Self {
            form,
            kept: Vec::new(),
            lines: 0,
            failed: 0,
            first: String::new(),
        }
    }

    /// Takes what came of a line: an object, and the same as a pipeline prints it.
    pub(super) fn add(&mut self, number: u64, found: Result<(Value, String)>) -> Result<()> {
        self.lines += 1;
        let (object, pipeline) = match found {
            Ok(found) => found,
            Err(error) => {
                let error = sentence(&error);
                if self.failed == 0 {
                    self.first = format!("line {number} of standard input: {error}");
                }
                self.failed += 1;
                let object = json!({ "error": error });
                let pipeline = json!([object]).to_string();
                (object, pipeline)
            }
        };
        let object = merged(json!({ "line": number }), object);
        match self.form {
            Form::Pipeline => output::line(pipeline),
            Form::Jsonl => output::line(object),
            Form::Json => {
                self.kept.push(object);
                Ok(())
            }
        }
    }

    /// Writes what is left to write.
    pub(super) fn end(self) -> Result<()> {
        if self.lines == 0 {
            bail!("there is no text: give one as an argument or as lines of standard input");
        }
        if let Some(object) = combined(self.kept) {
            output::line(object)?;
        }
        if self.failed > 0 {
            let (failed, lines, first) = (self.failed, self.lines, self.first);
            warning!("primer: {first}; {failed} of {lines} lines failed");
            return Err(AlreadyReported { code: 1 }.into());
        }
        Ok(())
    }
}

/// Returns one object for one text; the first with all of them for several.
pub(super) fn combined(mut results: Vec<Value>) -> Option<Value> {
    match results.len() {
        0 => None,
        1 => results.pop(),
        _ => {
            let first = results[0].clone();
            Some(merged(first, json!({ "results": results })))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_line() {
        let input = b"one\r\n\n\xff\xfe\nlast" as &[u8];
        let mut seen = Vec::new();
        each_line(input, |number, text| {
            seen.push((number, text.ok().map(str::to_owned)));
            Ok(())
        })
        .unwrap();
        let text = |text: &str| Some(text.to_owned());
        let expected = [
            (1, text("one")),
            (2, text("")),
            (3, None),
            (4, text("last")),
        ];
        assert_eq!(seen, expected);
    }
}
