//! The comparator `fhe` as an engine of evaluations: what polynomials in place of the non-linear
//! functions do to the answers, computed in the clear.

use anyhow::Result;
use primer::source::Model;
use primer_measure::Progress;
use primer_measure::choice::Choice;
use primer_measure::eval::{self, Comparator, Fitted};
use primer_model::fixed::OutOfRange;
use primer_model::float;
use primer_model::fold::FloatWeights;
use primer_paper_fhe::fit::fit;
use primer_paper_fhe::polynomials::{Degrees as PolynomialDegrees, Polynomials};
use primer_paper_fhe::watch::{Outside, Watch};
use primer_paper_plan::Form;
use primer_text::Input;
use serde_json::{Map, Value};

/// What computes the answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// Single precision.
    Float,
    /// The protocol's integers, in the clear.
    Fixed,
    /// The private protocol itself, both parties in this process.
    Secure,
    /// Comparator: polynomials in place of the non-linear functions, computed in the clear.
    Fhe,
}

impl Engine {
    /// Returns what computes, with polynomials of some degrees if it is the comparator.
    pub const fn of_degrees(self, degrees: Degrees) -> eval::Engine {
        match self {
            Self::Float => eval::Engine::Float,
            Self::Fixed => eval::Engine::Fixed,
            Self::Secure => eval::Engine::Secure,
            Self::Fhe => eval::Engine::Comparator(match degrees {
                Degrees::Low => &Fhe(Degrees::Low),
                Degrees::Middle => &Fhe(Degrees::Middle),
                Degrees::High => &Fhe(Degrees::High),
            }),
        }
    }
}

impl Choice for Engine {
    const ALL: &'static [Self] = &[Self::Float, Self::Fixed, Self::Secure, Self::Fhe];

    fn name(self) -> &'static str {
        self.of_degrees(Degrees::Middle).name()
    }

    fn about(self) -> &'static str {
        self.of_degrees(Degrees::Middle).about()
    }
}

/// How good the comparator's polynomials are, and so how deep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Degrees {
    /// What a shallow circuit allows.
    Low,
    /// The comparator's default.
    Middle,
    /// Twice the degrees of the default.
    High,
}

impl Degrees {
    const fn polynomials(self) -> PolynomialDegrees {
        match self {
            Self::Low => PolynomialDegrees::LOW,
            Self::Middle => PolynomialDegrees::MIDDLE,
            Self::High => PolynomialDegrees::HIGH,
        }
    }
}

impl Choice for Degrees {
    const ALL: &'static [Self] = &[Self::Low, Self::Middle, Self::High];

    fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Middle => "middle",
            Self::High => "high",
        }
    }

    fn about(self) -> &'static str {
        match self {
            Self::Low => "What a shallow circuit allows",
            Self::Middle => "The comparator's default",
            Self::High => "Twice the degrees of the default",
        }
    }
}

/// The comparator, by its degrees.
struct Fhe(Degrees);

impl Comparator for Fhe {
    fn name(&self) -> &'static str {
        "fhe"
    }

    fn about(&self) -> &'static str {
        "Comparator: polynomials in place of the non-linear functions, computed in the clear"
    }

    fn settings(&self) -> Map<String, Value> {
        Map::from_iter([("degrees".to_owned(), self.0.name().into())])
    }

    fn fit(
        &self,
        model: &Model,
        inputs: &[Input],
        progress: Progress<'_>,
    ) -> Result<Box<dyn Fitted>> {
        let tell = |done, total| progress("fitting polynomials", done, total);
        let degrees = self.0.polynomials();
        let weights = Form::Separate.weights(&model.weights);
        let polynomials = fit(&weights, inputs, &degrees, tell);
        Ok(Box::new(Replaced {
            weights,
            polynomials,
        }))
    }
}

/// Polynomials in place of a model's functions.
struct Replaced {
    weights: FloatWeights,
    polynomials: Polynomials,
}

impl Fitted for Replaced {
    fn run(&self, input: &Input) -> (Vec<Vec<f64>>, Vec<OutOfRange>) {
        let Self {
            weights,
            polynomials,
        } = self;
        let graph = weights.graph(input.tokens());
        let mut watch = Watch::new(polynomials, input);
        let outputs = float::run_with(&graph, weights, input, polynomials, &mut watch);
        let outside = |(value, outside): (usize, Outside)| OutOfRange {
            value: graph.values[value].name.clone(),
            count: outside.count,
            worst: outside.worst,
            limit: outside.limit,
        };
        let found = watch.found.into_iter().map(outside).collect();
        (eval::reals(&outputs), found)
    }
}
