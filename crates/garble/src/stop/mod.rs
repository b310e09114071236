//! Stops: where an inference leaves linear algebra for a garbled circuit.
//!
//! A stop takes every element as two shares of a ring `Z_2^m`, `x = server + client mod 2^m`, and
//! gives the evaluator `f(x) + A mod p`, where only the garbler knows `A`. The circuit adds the
//! shares, computes the function exactly as [`primer_plan::function`] defines it, and lets the
//! result's bits leave through projection gates. The server's shares are the inputs of
//! [`Party::Garbler`] and the client's those of [`Party::Evaluator`], also where the client
//! garbles: no gate depends on which of the two knows its inputs.
//!
//! Where everything stays in one garbled circuit there are no shares: [`in_bits`] builds the same
//! functions from bits to bits.
//!
//! An *instance* is what one circuit computes: one element for GELU, ReLU, tanh, the root and the
//! reciprocal, one whole row for softmax, the coarse maximum and argmax.

mod argmax;
mod coarse;
mod equality;
mod gelu;
mod inverse_root;
mod reciprocal;
mod softmax;
mod tanh;

use crate::circuit::{Bit, Builder, Circuit, Modulus, Party};
use primer_plan::function::{Function, FunctionError, Softmax};
use primer_ring::truncate::Truncation;
use thiserror::Error;

/// The longest row of a stop.
pub const MAX_ROW: usize = 512;

/// The reason why there is no such stop.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum CircuitError {
    /// The function itself is not usable.
    #[error(transparent)]
    Function(#[from] FunctionError),
    /// A row of this length cannot be built.
    #[error("a row has 1 to {MAX_ROW} elements, not {0}")]
    Row(usize),
    /// The function works on single elements.
    #[error("{function} is computed element by element, not on rows of {row}")]
    Elementwise {
        /// Which function.
        function: &'static str,
        /// The row length asked for.
        row: usize,
    },
    /// The function is not computed by such a circuit.
    #[error("there is no such circuit for {0}")]
    NoCircuit(&'static str),
    /// A ring of this size cannot be used.
    #[error(
        "a stop takes rings of {least} to {most} bits, not {0}",
        least = Truncation::MIN_RING_BITS,
        most = Truncation::MAX_RING_BITS
    )]
    Ring(u32),
}

/// A circuit with the shape of its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopCircuit {
    name: &'static str,
    circuit: Circuit,
    ring_bits: u32,
    row: usize,
    flagged: bool,
}

impl StopCircuit {
    /// Makes the stop of a plan's function. `row` is the number of elements that one instance takes
    /// together: the row length of a softmax or of a coarse maximum, 1 for everything else.
    ///
    /// # Errors
    /// [`CircuitError`] if the function or the row length is not usable.
    pub fn new(function: &Function, row: usize) -> Result<Self, CircuitError> {
        let name = check_row(function, row)?;
        let circuit = match function {
            Function::Gelu(f) => gelu::circuit(f),
            Function::Relu { ring_bits, .. } => gelu::relu(*ring_bits),
            Function::InverseRoot(f) => inverse_root::circuit(f),
            Function::Tanh(f) => tanh::circuit(f),
            Function::Softmax(f) => softmax::circuit(f, row),
            Function::CoarseMaximum(f) => coarse::circuit(f, row),
            Function::Reciprocal(f) => reciprocal::circuit(f),
            Function::Lookup(_) | Function::Powers(_) | Function::Sorted(_) => {
                return Err(CircuitError::NoCircuit(name));
            }
        };
        Ok(Self {
            name,
            circuit,
            ring_bits: function.ring_bits(),
            row,
            flagged: matches!(function, Function::Reciprocal(_)),
        })
    }

    /// Makes the stop that shows the evaluator the position of the largest of `row` ring values; of
    /// equal values, the first.
    ///
    /// # Errors
    /// [`CircuitError`] if the ring or the row length is not usable.
    pub fn argmax(ring_bits: u32, row: usize) -> Result<Self, CircuitError> {
        if Truncation::to_ring(ring_bits).is_none() {
            return Err(CircuitError::Ring(ring_bits));
        }
        if row == 0 || row > MAX_ROW {
            return Err(CircuitError::Row(row));
        }
        Ok(Self {
            name: "argmax",
            circuit: argmax::circuit(ring_bits, row),
            ring_bits,
            row,
            flagged: false,
        })
    }

    /// Makes the comparison of two strings of bits, one of each party: the evaluator is shown
    /// whether they are equal. The strings are not shares of anything.
    pub fn equality(bits: u32) -> Self {
        Self {
            name: "the comparison of range flags",
            circuit: equality::circuit(bits),
            ring_bits: bits,
            row: 1,
            flagged: false,
        }
    }

    /// Returns its name, for messages.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the circuit of one instance.
    pub const fn circuit(&self) -> &Circuit {
        &self.circuit
    }

    /// Returns the bit width of the input ring.
    pub const fn ring_bits(&self) -> u32 {
        self.ring_bits
    }

    /// Tells whether the last output of an instance is a range flag: one or zero, plus the
    /// garbler's mask. The lowest bits of both are shares of it, as long as adding one does not
    /// wrap around, which one mask in p does.
    pub const fn is_flagged(&self) -> bool {
        self.flagged
    }

    /// Returns the number of elements that one instance takes.
    pub const fn row(&self) -> usize {
        self.row
    }

    /// Returns the position shown to the evaluator, from an instance's revealed bits.
    pub fn position(revealed: &[bool]) -> usize {
        let bits = revealed.iter().enumerate();
        bits.fold(0, |n, (i, &b)| n | usize::from(b) << i)
    }
}

/// Builds a plan's function from bits to bits: the middle of its stop, without shares in front of
/// it and projections behind.
///
/// `row` holds the signed ring values of one instance, [`Function::ring_bits`] bits each. The
/// results are signed numbers of [`Function::output_bits`] bits, except those of softmax, of the
/// reciprocal and of the reciprocal root: these are never negative and come without their sign,
/// with one bit fewer.
///
/// # Errors
/// [`CircuitError`] if the function or the row length is not usable.
///
/// # Panics
/// If a value does not have the bits of the ring.
pub fn in_bits(
    builder: &mut Builder,
    function: &Function,
    row: Vec<Vec<Bit>>,
) -> Result<Vec<Vec<Bit>>, CircuitError> {
    let name = check_row(function, row.len())?;
    let bits = function.ring_bits() as usize;
    assert!(
        row.iter().all(|x| x.len() == bits),
        "a function takes values of {bits} bits"
    );
    Ok(match function {
        Function::Gelu(f) => vec![gelu::bits(builder, f, &row[0])],
        Function::Relu { .. } => vec![gelu::relu_bits(builder, &row[0])],
        Function::InverseRoot(f) => vec![inverse_root::bits(builder, f, &row[0])],
        Function::Tanh(f) => vec![tanh::bits(builder, f, &row[0])],
        Function::Softmax(f) => {
            let mut all = Vec::with_capacity(row.len());
            softmax::probabilities(builder, f, row, |_, p| all.push(p));
            all
        }
        Function::Reciprocal(f) => vec![reciprocal::bits(builder, f, &row[0])],
        Function::CoarseMaximum(_)
        | Function::Lookup(_)
        | Function::Powers(_)
        | Function::Sorted(_) => {
            return Err(CircuitError::NoCircuit(name));
        }
    })
}

/// Returns the name of a function, if it can be computed on rows of this length.
fn check_row(function: &Function, row: usize) -> Result<&'static str, CircuitError> {
    function.validate()?;
    let name = match function {
        Function::Gelu(_) => "GELU",
        Function::Relu { .. } => "ReLU",
        Function::InverseRoot(_) => "the reciprocal square root",
        Function::Tanh(_) => "tanh",
        Function::Lookup(_) => "look-up",
        Function::Powers(_) => "powers of scores",
        Function::Sorted(_) => "sorted look-up",
        Function::Reciprocal(_) => "the reciprocal",
        Function::Softmax(_) => "softmax",
        Function::CoarseMaximum(_) => "the coarse maximum",
    };
    if function.takes_rows() {
        return match row {
            1..=MAX_ROW => Ok(name),
            _ => Err(CircuitError::Row(row)),
        };
    }
    if row == 1 {
        return Ok(name);
    }
    Err(CircuitError::Elementwise {
        function: name,
        row,
    })
}

/// Adds the two parties' shares of every element of a row.
///
/// Inputs are element by element, least significant bit first. The sums take one AND gate for each
/// bit except the top one.
fn shared_row(builder: &mut Builder, ring_bits: u32, row: usize) -> Vec<Vec<Bit>> {
    (0..row)
        .map(|_| {
            let server = builder.inputs(Party::Garbler, ring_bits);
            let client = builder.inputs(Party::Evaluator, ring_bits);
            builder.add(&server, &client)
        })
        .collect()
}

fn shared_element(builder: &mut Builder, ring_bits: u32) -> Vec<Bit> {
    shared_row(builder, ring_bits, 1).remove(0)
}

/// Returns the sign and the one's complement magnitude, free.
fn magnitude(builder: &mut Builder, x: &[Bit]) -> (Bit, Vec<Bit>) {
    let (&sign, low) = x.split_last().expect("rings have at least two bits");
    (sign, low.iter().map(|&b| builder.xor(b, sign)).collect())
}

const SHARES: Modulus = Modulus::Prime;

/// Counts the AND gates of one power of two with its saturation, alone.
pub(crate) fn power_and_gates(softmax: &Softmax) -> usize {
    let mut b = Builder::new(SHARES);
    let z = b.inputs(Party::Garbler, softmax.ring_bits);
    let (near, high) = z.split_at((softmax.fraction + softmax.shift_bits()) as usize);
    let far = b.any(high);
    let e = softmax::power(&mut b, softmax, near, far);
    let out = b.output();
    b.project_number(out, &e, 1);
    b.finish().cost().and_gates
}
