//! Circuits run over many instances, alone or as a chain.

use crate::error::Result;
use crate::garbled_step::{Circuits, Use};
use crate::products::Products;
use crate::role::Role;
use crate::spec::{Spec, TERMS};
use primer_garble::Label;
use primer_garble::circuit::{Circuit, LANES};
use std::ops::Range;
use std::sync::Arc;
use zeroize::Zeroizing;

/// The instances of a batch in one circuit: their labels in, what they keep out.
struct Batch {
    inputs: Zeroizing<Vec<Label>>,
    kept: Zeroizing<Vec<Label>>,
}

impl Batch {
    fn new() -> Self {
        Self {
            inputs: Zeroizing::new(Vec::new()),
            kept: Zeroizing::new(Vec::new()),
        }
    }

    /// Runs `lanes` instances; `fill` adds the labels of one behind its zero wire, and may read
    /// what was kept before.
    fn run<R: Role>(
        &mut self,
        role: &mut R,
        (circuit, run): (&Circuit, &mut R::Run<'_>),
        lanes: usize,
        fill: impl Fn(usize, &[Label], &mut Vec<Label>),
    ) -> Result<()> {
        self.inputs.clear();
        let before = self.kept.len() / lanes;
        for lane in 0..lanes {
            self.inputs.push(role.zero());
            let kept = &self.kept[lane * before..(lane + 1) * before];
            fill(lane, kept, &mut self.inputs);
        }
        self.kept.clear();
        self.kept.resize(lanes * circuit.cost().kept, 0);
        role.batch(run, &self.inputs, &mut self.kept)
    }
}

/// Runs all instances of a circuit; `fill` adds the labels of one.
pub(crate) fn run_all<R: Role>(
    role: &mut R,
    circuit: &Circuit,
    instances: usize,
    fill: impl Fn(usize, &mut Vec<Label>),
) -> Result<Zeroizing<Vec<Label>>> {
    let mut run = role.open(circuit);
    let mut batch = Batch::new();
    let mut all = Zeroizing::new(Vec::with_capacity(instances * circuit.cost().kept));
    for first in (0..instances).step_by(LANES) {
        let lanes = LANES.min(instances - first);
        batch.kept.clear();
        batch.run(role, (circuit, &mut run), lanes, |lane, _, inputs| {
            fill(first + lane, inputs);
        })?;
        all.extend_from_slice(&batch.kept);
    }
    Ok(all)
}

/// Circuits of [`TERMS`] terms each, and one with the rest: a sum of any number of terms.
pub(crate) struct Links {
    terms: usize,
    full: Option<Arc<Circuit>>,
    rest: Option<Arc<Circuit>>,
}

impl Links {
    /// Builds the circuits for `terms` terms.
    pub(crate) fn new(
        circuits: &mut Circuits,
        terms: usize,
        spec: impl Fn(usize) -> Spec,
    ) -> Result<Self> {
        let mut of = |n: usize, wanted: bool| match wanted {
            true => circuits.get(spec(n)).map(Some),
            false => Ok(None),
        };
        Ok(Self {
            terms,
            full: of(TERMS, terms >= TERMS)?,
            rest: of(terms % TERMS, !terms.is_multiple_of(TERMS))?,
        })
    }

    /// Returns what `instances` of them cost.
    pub(crate) fn uses(&self, instances: usize) -> Vec<Use<'_>> {
        let full = self.full.iter().map(|c| (c, self.terms / TERMS));
        let all = full.chain(self.rest.iter().map(|c| (c, 1)));
        all.map(|(circuit, links)| Use {
            circuit,
            instances,
            links,
        })
        .collect()
    }

    /// Returns the ranges of terms, each with whether it is a full one.
    fn ranges(&self) -> impl Iterator<Item = (Range<usize>, bool)> {
        let terms = self.terms;
        (0..terms).step_by(TERMS).map(move |first| {
            let end = terms.min(first + TERMS);
            (first..end, end - first == TERMS)
        })
    }

    /// Sums up choices: the results of the links are added, which is free.
    pub(crate) fn select<R: Role>(
        &self,
        role: &mut R,
        instances: usize,
        fill: impl Fn(usize, Range<usize>, &mut Vec<Label>),
    ) -> Result<Zeroizing<Vec<Label>>> {
        let mut runs = [&self.full, &self.rest].map(|c| c.as_ref().map(|c| (c, role.open(c))));
        let mut batch = Batch::new();
        let mut all = Zeroizing::new(Vec::new());
        for first in (0..instances).step_by(LANES) {
            let lanes = LANES.min(instances - first);
            let start = all.len();
            for (terms, full) in self.ranges() {
                let (circuit, run) = present(&mut runs[usize::from(!full)]);
                batch.kept.clear();
                batch.run(role, (circuit, run), lanes, |lane, _, inputs| {
                    fill(first + lane, terms.clone(), inputs);
                })?;
                all.resize(start + batch.kept.len(), 0);
                for (sum, label) in all[start..].iter_mut().zip(batch.kept.iter()) {
                    *sum ^= label;
                }
            }
        }
        Ok(all)
    }
}

fn present<T>(run: &mut Option<T>) -> &mut T {
    run.as_mut().expect("a link has the circuit of its terms")
}

/// A sum of products that begins with two numbers and ends in a circuit that reads it.
pub(crate) struct Chain {
    pub(crate) links: Links,
    /// A circuit in front, which begins with the two numbers instead.
    pub(crate) head: Option<Arc<Circuit>>,
    pub(crate) tail: Arc<Circuit>,
}

/// Where the labels of a chain come from, by instance.
pub(crate) struct Feed<S, T, E> {
    /// The two numbers, and what else the head takes.
    pub(crate) start: S,
    /// The factors of some terms, `x` first.
    pub(crate) terms: T,
    /// What the tail takes behind the two numbers.
    pub(crate) end: E,
}

impl Chain {
    /// Makes a chain for products.
    pub(crate) fn new(
        circuits: &mut Circuits,
        (of, terms, square): (Products, usize, bool),
        head: Option<Spec>,
        tail: Spec,
    ) -> Result<Self> {
        let spec = |terms| Spec::Products { of, terms, square };
        Ok(Self {
            links: Links::new(circuits, terms, spec)?,
            head: head.map(|spec| circuits.get(spec)).transpose()?,
            tail: circuits.get(tail)?,
        })
    }

    /// Returns what `instances` of it cost.
    pub(crate) fn uses(&self, instances: usize) -> Vec<Use<'_>> {
        let mut uses = self.links.uses(instances);
        let ends = self.head.iter().chain([&self.tail]);
        uses.extend(ends.map(|circuit| Use::once(circuit, instances)));
        uses
    }

    /// Runs all instances and returns what the tail keeps.
    pub(crate) fn run<R: Role, S, T, E>(
        &self,
        role: &mut R,
        instances: usize,
        feed: &Feed<S, T, E>,
    ) -> Result<Zeroizing<Vec<Label>>>
    where
        S: Fn(usize, &mut Vec<Label>),
        T: Fn(usize, Range<usize>, &mut Vec<Label>),
        E: Fn(usize, &mut Vec<Label>),
    {
        let Links { full, rest, .. } = &self.links;
        let mut head = self.head.as_ref().map(|c| (c, role.open(c)));
        let mut runs = [full, rest].map(|c| c.as_ref().map(|c| (c, role.open(c))));
        let mut tail = role.open(&self.tail);
        let mut batch = Batch::new();
        let mut all = Zeroizing::new(Vec::with_capacity(instances * self.tail.cost().kept));
        for first in (0..instances).step_by(LANES) {
            let lanes = LANES.min(instances - first);
            batch.kept.clear();
            match &mut head {
                Some((circuit, run)) => {
                    batch.run(role, (circuit, run), lanes, |lane, _, inputs| {
                        (feed.start)(first + lane, inputs);
                    })?;
                }
                None => (0..lanes).for_each(|lane| (feed.start)(first + lane, &mut batch.kept)),
            }
            for (terms, full) in self.links.ranges() {
                let (circuit, run) = present(&mut runs[usize::from(!full)]);
                batch.run(role, (circuit, run), lanes, |lane, two, inputs| {
                    inputs.extend_from_slice(two);
                    (feed.terms)(first + lane, terms.clone(), inputs);
                })?;
            }
            batch.run(role, (&self.tail, &mut tail), lanes, |lane, two, inputs| {
                inputs.extend_from_slice(two);
                (feed.end)(first + lane, inputs);
            })?;
            all.extend_from_slice(&batch.kept);
        }
        Ok(all)
    }
}
