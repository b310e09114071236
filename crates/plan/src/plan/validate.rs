//! Checks that the numbers of a plan fit together: every engine relies on it, and none checks
//! again.

use super::{Plan, PlanError};
use crate::design::Design;
use crate::function::{Function, in_reach};
use crate::graph::{Op, StopFunction, Term, ValueId, WeightKind};
use crate::scales::{KEPT, MAX_VALUE_BITS, Scale, WEIGHT_BITS, WeightScale};
use primer_ring::fixed::exp2;
use primer_ring::modulus::K;
use primer_ring::truncate::Truncation;

impl Plan {
    /// Makes the error of scales that contradict each other around a value.
    pub fn conflict(&self, id: ValueId, reason: impl Into<String>) -> PlanError {
        PlanError::Scales {
            value: self.graph.value(id).name.clone(),
            reason: reason.into(),
        }
    }

    /// Checks that scales fit the graph and each other, and the design's own rules.
    pub(super) fn validate(&self, design: &dyn Design) -> Result<(), PlanError> {
        let Self { graph, scales } = self;
        for (what, found, expected) in [
            ("values", scales.values.len(), graph.values.len()),
            ("weights", scales.weights.len(), graph.weights.len()),
            ("steps", scales.functions.len(), graph.steps.len()),
        ] {
            if found != expected {
                return Err(PlanError::Count {
                    what,
                    found,
                    expected,
                });
            }
        }
        for id in graph.value_ids() {
            let scale = self.scale(id);
            if !in_reach(scale.fraction()) {
                return Err(self.conflict(id, format!("{} fractional bits", scale.fraction())));
            }
            if let Scale::Accumulator { ring_bits, .. } | Scale::Small { ring_bits, .. } = scale
                && scale.truncation().is_none()
            {
                return Err(self.conflict(id, format!("a ring of {ring_bits} bits")));
            }
            if scale
                .format()
                .is_some_and(|f| !(2..=MAX_VALUE_BITS).contains(&f.bits))
            {
                return Err(self.conflict(id, "a fixed value has 2 to 32 bits"));
            }
        }
        for weight in graph.weight_ids() {
            let fits = matches!(
                (graph.weight(weight).kind, self.weight_scale(weight)),
                (WeightKind::Dense, WeightScale::Dense { .. })
                    | (WeightKind::Diagonal, WeightScale::Diagonal { .. })
                    | (WeightKind::Bias, WeightScale::Bias)
            );
            let (first, second) = match self.weight_scale(weight) {
                WeightScale::Dense { fraction } => (fraction, fraction),
                WeightScale::Diagonal { gain, mean } => (gain, mean),
                WeightScale::Bias => (0, 0),
            };
            let reason = if !fits {
                "another kind of weight".to_owned()
            } else if !(in_reach(first / 4) && in_reach(second / 4)) {
                format!("{first} and {second} fractional bits")
            } else {
                continue;
            };
            return Err(PlanError::Scales {
                value: graph.weight(weight).name.clone(),
                reason,
            });
        }
        (0..graph.steps.len()).try_for_each(|index| {
            self.validate_step(index)?;
            design.check(self, index)
        })
    }

    fn validate_step(&self, index: usize) -> Result<(), PlanError> {
        let step = &self.graph.steps[index];
        let output = step.output();
        let function = self.function(index);
        if let Some(function) = function {
            function.validate()?;
        }
        // A linear step shifts its products left by an amount that exists.
        let shift = |fraction: i32| {
            let by = self.scale(output).fraction() - fraction;
            if (0..=K as i32).contains(&by) {
                Ok(())
            } else {
                Err(self.conflict(output, format!("a product is off by {by} bits")))
            }
        };
        let fixed = |id: ValueId| self.scale(id).format().map(|f| f.fraction);
        let read = |id: ValueId| fixed(id).ok_or_else(|| self.conflict(id, "it is not fixed"));
        match &step.op {
            Op::Stop {
                function: kind,
                input,
                ..
            } => {
                return self.validate_stop(*kind, function, *input, output);
            }
            Op::Embed { table, .. } => {
                let WeightScale::Dense { fraction } = self.weight_scale(*table) else {
                    return Err(self.conflict(output, "its table has no scale"));
                };
                shift(fraction)?;
            }
            Op::Linear { terms, .. } => {
                for term in terms {
                    self.validate_exact(term, output)?;
                    let (dense, mean) = self.term_fractions(term);
                    shift(dense)?;
                    shift(mean)?;
                }
            }
            Op::Scores { query, key, .. } => shift(read(*query)? + read(*key)?)?,
            Op::MergedScores { input, weight, .. } => {
                // Exact for any width: a requantised value has 23 bits at most.
                shift(self.merged_fraction(*input, *weight) + read(*input)?)?;
            }
            Op::Mix {
                probabilities,
                value,
                ..
            } => shift(read(*probabilities)? + read(*value)?)?,
            Op::SquareSum { input, .. } => shift(2 * read(*input)?)?,
            Op::ScaleRows { input, factor, .. } => shift(read(*input)? + read(*factor)?)?,
            Op::Exponents { scores, .. } => {
                shift(self.scale(*scores).fraction())?;
                self.validate_rest(*scores, output)?;
            }
            Op::RowSum { input, .. } => shift(read(*input)?)?,
            Op::Pool { input, kept, .. } => shift(read(*input)? + read(*kept)?)?,
            Op::Kept { .. } => {
                return match self.scale(output) {
                    KEPT if function.is_none() => Ok(()),
                    _ => Err(self.conflict(output, "it is one or zero")),
                };
            }
        }
        if self.scale(output).truncation().is_none() {
            return Err(self.conflict(output, "it is not an accumulator with a usable ring"));
        }
        // Only a sum of powers is known not to be negative.
        let summed = matches!(step.op, Op::RowSum { .. });
        if summed != matches!(self.scale(output), Scale::Small { .. }) {
            return Err(self.conflict(output, "sums of powers are kept whole, and nothing else"));
        }
        if function.is_some() {
            return Err(self.conflict(output, "a linear step has no function"));
        }
        Ok(())
    }

    /// Checks that scores reach the cells of their heads, and that what is left of measured ones
    /// fits the ring of the exponents for all scores.
    fn validate_rest(&self, scores: ValueId, output: ValueId) -> Result<(), PlanError> {
        let refuse = |reason: &str| Err(self.conflict(output, reason));
        let (Some(powers), Some(finest), Some(by)) = (
            self.powers(output),
            self.scale(output).ring_fraction(),
            self.scale(output).truncation(),
        ) else {
            return refuse("it is not what is left of scores");
        };
        powers.validate()?;
        powers.check_heads(self.graph.shape.heads)?;
        let shift = self.scale(output).fraction() - self.scale(scores).fraction();
        for class in &powers.classes {
            let coarser = finest - class.lookup.fraction;
            let reached = match class.measured {
                true => coarser == 0,
                false => (0..=shift).contains(&coarser),
            };
            if !reached {
                return refuse("its scores do not reach the cells of a head");
            }
        }
        match (powers.measured().is_empty(), self.coarse(scores)) {
            (true, None) => Ok(()),
            (false, Some(coarse)) => {
                let range = f64::from(coarse.far + 3) * exp2(-coarse.fraction);
                match range > exp2(by.ring_bits() as i32 - finest) {
                    true => refuse("its ring is too short for what is left of scores"),
                    false => Ok(()),
                }
            }
            _ => refuse("a coarse maximum is there for measured heads only"),
        }
    }

    /// Checks that a term's integer products are exact: they run in double precision, which is
    /// exact for sums below `2^53`.
    fn validate_exact(&self, term: &Term, output: ValueId) -> Result<(), PlanError> {
        let Some(format) = self.scale(term.input).format() else {
            return Err(self.conflict(term.input, "it is not fixed"));
        };
        let terms = self.graph.weight(term.weight).rows;
        let bits = format.bits - 1 + (WEIGHT_BITS - 1) + terms.next_power_of_two().ilog2();
        if bits > 52 {
            let reason = format!("sums of {terms} products take {bits} bits, 52 are exact");
            return Err(self.conflict(output, reason));
        }
        Ok(())
    }

    /// Tells whether a function is an activation, which a circuit may compute.
    const fn is_activation(kind: StopFunction) -> bool {
        matches!(kind, StopFunction::Activation | StopFunction::Summary)
    }

    fn validate_stop(
        &self,
        kind: StopFunction,
        function: Option<&Function>,
        input: ValueId,
        output: ValueId,
    ) -> Result<(), PlanError> {
        let (Some(ring_fraction), Some(ring_bits)) = (
            self.scale(input).ring_fraction(),
            self.scale(input).truncation().map(Truncation::ring_bits),
        ) else {
            return Err(self.conflict(input, "a stop reads an accumulator with a usable ring"));
        };
        let Some(format) = self.scale(output).format() else {
            return Err(self.conflict(output, "a stop leaves a fixed value"));
        };
        let (expected_ring, fraction_in, fraction_out) = match (kind, function) {
            (StopFunction::Requantise, None) => (ring_bits, ring_fraction, ring_fraction),
            (StopFunction::Softmax, Some(Function::Softmax(f))) => {
                (f.ring_bits, f.fraction as i32, f.output_fraction())
            }
            (StopFunction::Activation, Some(Function::Sorted(f))) => {
                let columns = self.graph.value(input).cols;
                if f.columns() != Some(columns) {
                    let reason = format!("its classes do not cover its {columns} columns");
                    return Err(self.conflict(input, reason));
                }
                let widest = f.widest();
                (
                    widest.index_bits,
                    widest.fraction,
                    widest.tables[0].output_fraction(),
                )
            }
            (kind, Some(Function::Gelu(f))) if Self::is_activation(kind) => {
                (f.ring_bits, f.fraction, f.output_fraction)
            }
            (
                kind,
                Some(Function::Relu {
                    ring_bits,
                    fraction,
                }),
            ) if Self::is_activation(kind) => (*ring_bits, *fraction, *fraction),
            (StopFunction::Power, Some(Function::Powers(f))) => {
                let ring_bits = function.map_or(0, Function::ring_bits);
                let results = f.classes[0].lookup.tables[0].output_fraction();
                (ring_bits, ring_fraction, results)
            }
            // No head is measured, so nothing is computed.
            (StopFunction::CoarseMaximum, None) => {
                return match self.scale(output) {
                    KEPT => Ok(()),
                    _ => Err(self.conflict(output, "there is nothing to measure")),
                };
            }
            (StopFunction::CoarseMaximum, Some(Function::CoarseMaximum(f))) => {
                (f.ring_bits, f.fraction, f.fraction)
            }
            (StopFunction::Reciprocal, Some(Function::Reciprocal(f))) => {
                (f.ring_bits, ring_fraction, f.output_fraction)
            }
            (StopFunction::InverseRoot, Some(Function::InverseRoot(f))) => {
                (f.ring_bits, ring_fraction, f.output_fraction)
            }
            (StopFunction::Tanh, Some(Function::Tanh(f))) => {
                (f.ring_bits, f.fraction, f.output_fraction())
            }
            _ => return Err(self.conflict(output, "the stop has another function")),
        };
        if expected_ring != ring_bits || fraction_in != ring_fraction {
            return Err(self.conflict(input, "the ring is not the function's"));
        }
        let bits_out = function.map_or(ring_bits - 1, Function::output_bits);
        if (bits_out, fraction_out) != (format.bits, format.fraction) {
            return Err(self.conflict(output, "the scale is not the function's"));
        }
        Ok(())
    }
}
