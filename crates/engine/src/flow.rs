//! The order in which bundles are prepared, the same on both sides.
//!
//! What has to be done is a list of exchanges and a list of stops, segment by segment; and a list
//! of messages about masks, each of which is sent with the first exchanges of the segment that
//! reads its value, and is not answered. The client's masks depend on no answer,
//! answers depend on masks alone, and the stops of a segment need the answers of their own segment,
//! at the client. So exchanges run ahead of stops by one *group*: the masks of the next group are
//! with the server before the answers of this one leave it, and the server multiplies the next
//! group, in a thread of its own, while both parties prepare the stops of this segment, encrypt and
//! decrypt.
//!
//! ```text
//! client    masks 1, 2 │             masks 3 │ decrypts 2 │ stops 1 │ masks 4 │ decrypts 3 │ …
//! wire           ↑     │ answers 1 ↓     ↑   │ answers 2 ↓│   ↕     │    ↑    │
//! server    multiplies 1, then 2 ……………………………, then 3 …………, stops 1 beside it …………………………………
//! ```
//!
//! The order of messages is fixed by the program, so an observer learns nothing from it, and at any
//! moment one party sends and the other receives, so full buffers on both sides block neither. What
//! is in memory of exchanges is two groups: a group has [`GROUP_BYTES`] at most, or one exchange.

use crate::batch::Exchanges;
use crate::exchange::Exchange;
use crate::hints::Hints;
use std::ops::Range;

/// Masks and answers of exchanges that are under way together, in bytes: a layer of BERT-base with
/// 30 tokens has half of it.
const GROUP_BYTES: u64 = 128 << 20;

/// Something that both parties do together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Act {
    /// The messages of some values go up, by their entries among the hints.
    Messages(Range<usize>),
    /// The masks of some exchanges go up.
    Offer(Range<usize>),
    /// The answers of some exchanges come down.
    Answer(Range<usize>),
    /// The stops of these steps are prepared.
    Stops(Range<usize>),
}

/// One exchange: what it is for, and its place among those of the same step.
#[derive(Clone, Copy)]
pub(crate) struct Planned<'a> {
    pub(crate) index: usize,
    pub(crate) part: usize,
    pub(crate) exchange: &'a Exchange,
    /// Whether it is the last of its step.
    pub(crate) last: bool,
}

/// Everything that prepares some segments, in order.
pub(crate) struct Flow<'a> {
    exchanges: Vec<Planned<'a>>,
    acts: Vec<Act>,
}

impl<'a> Flow<'a> {
    /// Orders what prepares some segments.
    pub(crate) fn new(exchanges: &'a Exchanges, hints: &Hints, segments: &[Range<usize>]) -> Self {
        let (mut all, mut groups, mut of_segments) = (Vec::new(), Vec::new(), Vec::new());
        for steps in segments {
            let (first, before) = (all.len(), groups.len());
            all.extend(exchanges.of(steps));
            let bytes: Vec<u64> = all[first..].iter().map(|p| p.exchange.bytes()).collect();
            let cut = grouped(&bytes, GROUP_BYTES).into_iter();
            groups.extend(cut.map(|group| first + group.start..first + group.end));
            of_segments.push((before..groups.len(), steps));
        }
        let (mut acts, mut offered, mut told) = (Vec::new(), 0, 0);
        // The messages of all segments up to one, unless they have gone up.
        let mut tell = |segment: usize, acts: &mut Vec<Act>| {
            for steps in &segments[told..(segment + 1).max(told)] {
                let entries = hints.first_read(steps);
                if !entries.is_empty() {
                    acts.push(Act::Messages(entries));
                }
            }
            told = told.max(segment + 1);
        };
        let of_group = |group: usize| {
            let mut segments = of_segments.iter();
            let found =
                segments.position(|(groups, _): &(Range<usize>, _)| groups.contains(&group));
            found.expect("a group belongs to a segment")
        };
        for (segment, (of_segment, steps)) in of_segments.iter().enumerate() {
            for at in of_segment.clone() {
                // One group ahead.
                while offered < (at + 2).min(groups.len()) {
                    tell(of_group(offered), &mut acts);
                    acts.push(Act::Offer(groups[offered].clone()));
                    offered += 1;
                }
                acts.push(Act::Answer(groups[at].clone()));
            }
            tell(segment, &mut acts);
            acts.push(Act::Stops((*steps).clone()));
        }
        Self {
            exchanges: all,
            acts,
        }
    }

    /// Returns what is done, in order.
    pub(crate) fn acts(&self) -> &[Act] {
        &self.acts
    }

    /// Returns some of its exchanges.
    pub(crate) fn exchanges(&self, range: &Range<usize>) -> &[Planned<'a>] {
        &self.exchanges[range.clone()]
    }
}

/// Groups neighbours that have at most `most` bytes together, or one alone.
fn grouped(bytes: &[u64], most: u64) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    let mut held = 0;
    for (at, &more) in bytes.iter().enumerate() {
        match groups.last_mut() {
            Some(last) if held + more <= most => last.end = at + 1,
            _ => {
                groups.push(at..at + 1);
                held = 0;
            }
        }
        held += more;
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::masks::tests::program;
    use std::collections::HashSet;

    #[test]
    fn groups_are_as_large_as_may_be() {
        assert_eq!(grouped(&[], 10), Vec::<Range<usize>>::new());
        assert_eq!(grouped(&[4, 6, 1, 12, 3, 3], 10), [0..2, 2..3, 3..4, 4..6]);
        assert_eq!(grouped(&[1, 1], 0), [0..1, 1..2]);
    }

    /// Masks before answers, answers before the stops of their segment, never more than two groups
    /// under way, and everything once.
    #[test]
    fn everything_is_done_once_and_in_time() {
        let program = program();
        let (hints, segments) = (program.hints(), program.segments());
        let flow = Flow::new(program.exchanges(), hints, segments);
        let mut told = 0..0;
        let (mut offered, mut answered) = (HashSet::new(), HashSet::new());
        let (mut under_way, mut most, mut stops) = (0, 0, Vec::new());
        for act in flow.acts() {
            match act {
                Act::Messages(entries) => {
                    assert_eq!(told.end, entries.start, "each once, and in order");
                    told.end = entries.end;
                }
                Act::Offer(range) => {
                    under_way += 1;
                    most = most.max(under_way);
                    assert!(range.clone().all(|at| offered.insert(at)));
                }
                Act::Answer(range) => {
                    under_way -= 1;
                    assert!(range.clone().all(|at| offered.contains(&at)));
                    assert!(range.clone().all(|at| answered.insert(at)));
                }
                Act::Stops(steps) => {
                    let of = flow.exchanges.iter().enumerate();
                    let mut needed = of.filter(|(_, planned)| planned.index < steps.end);
                    assert!(needed.all(|(at, _)| answered.contains(&at)));
                    let read = hints.first_read(steps).end;
                    assert!(told.end >= read);
                    stops.push(steps.clone());
                }
            }
        }
        let all = hints.readers().len();
        assert_eq!(told.end, all);
        assert!(all > 0);
        assert_eq!(stops, program.segments());
        assert_eq!(answered.len(), flow.exchanges.len());
        assert_eq!(offered.len(), flow.exchanges.len());
        assert_eq!(most, 2);
    }
}
