//! What both parties do from moment to moment of an online phase.
//!
//! A channel's recorder ([`primer_wire::record`]) takes down when a party sends, receives and
//! waits, and the protocol's clock the steps in between. Here the two become one lane for each
//! party: pieces that follow each other without a gap, each of one step and of one way to spend it.
//! What is neither sending nor receiving nor waiting is computing, reading the bundle included.
//!
//! The parties are two processes of one machine, whose clocks are the same, so that the lanes can
//! be laid beside each other ([`Timeline`]). The picture is [`Timeline::svg`] in `draw`.

mod draw;

use anyhow::{Context, Result, ensure};
use primer_measure::bench::{Recorded, Table};
use primer_plan::graph::{Graph, Op, Step, StopFunction};
use primer_wire::record::{Doing, Span};
use std::time::Duration;

/// Kinds of steps, as the picture tells them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepKind {
    /// Products with weights, the input and the answer.
    Weights,
    /// Products of two secrets, and their requantising.
    Secrets,
    /// Requantising of what products with weights leave.
    Requantise,
    /// The powers of softmax and their sums.
    Powers,
    /// Reciprocals of softmax and roots of norms, and what else is a circuit.
    Circuits,
    /// The activation.
    Activation,
}

impl StepKind {
    /// All kinds, in the order of a layer.
    pub const ALL: [Self; 6] = [
        Self::Weights,
        Self::Requantise,
        Self::Secrets,
        Self::Powers,
        Self::Circuits,
        Self::Activation,
    ];

    /// Returns what a legend calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Weights => "products with weights",
            Self::Secrets => "products of secrets",
            Self::Requantise => "requantising",
            Self::Powers => "powers of softmax",
            Self::Circuits => "reciprocals and roots",
            Self::Activation => "activation",
        }
    }

    /// Returns the kind of a step.
    fn of(step: &Step) -> Self {
        match step.op {
            Op::Embed { .. } | Op::Linear { .. } | Op::Kept { .. } => Self::Weights,
            Op::Scores { .. }
            | Op::MergedScores { .. }
            | Op::Mix { .. }
            | Op::SquareSum { .. }
            | Op::ScaleRows { .. }
            | Op::Pool { .. } => Self::Secrets,
            Op::Exponents { .. } | Op::RowSum { .. } => Self::Powers,
            Op::Stop { function, .. } => match function {
                StopFunction::Requantise => Self::Requantise,
                StopFunction::Power => Self::Powers,
                StopFunction::Activation | StopFunction::Summary | StopFunction::Tanh => {
                    Self::Activation
                }
                StopFunction::Softmax
                | StopFunction::InverseRoot
                | StopFunction::CoarseMaximum
                | StopFunction::Reciprocal => Self::Circuits,
            },
        }
    }
}

/// How a party spends a piece of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Computing.
    Computing,
    /// Sending or receiving, encryption included.
    Talking,
    /// Waiting for the other party.
    Waiting,
}

/// A piece of a lane.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Piece {
    /// What it belongs to.
    pub kind: StepKind,
    /// In which layer, counted from 0, if it is in one.
    pub layer: Option<usize>,
    /// How it is spent.
    pub how: How,
    /// Its begin, in seconds.
    pub from: f64,
    /// Its end.
    pub to: f64,
}

impl Piece {
    fn looks_like(&self, other: &Self) -> bool {
        (self.kind, self.layer, self.how) == (other.kind, other.layer, other.how)
    }
}

/// One party's pieces, which follow each other without a gap.
pub type Lane = Vec<Piece>;

/// Makes a lane of what was taken down of one phase.
///
/// # Errors
/// If the record is not one of the graph's steps.
fn lane(spans: &[Span], graph: &Graph) -> Result<Lane> {
    // Spans come in the order of their ends: what is within one is already there.
    let mut lane = Lane::new();
    let mut open: Vec<Part> = Vec::new();
    for span in spans {
        let first = open.partition_point(|part| part.from < span.from);
        let within = open.split_off(first);
        let how = match span.doing {
            Doing::Step(_) => How::Computing,
            Doing::Sending | Doing::Receiving => How::Talking,
            Doing::Waiting => How::Waiting,
        };
        let parts = around(span, how, within)?;
        match span.doing {
            Doing::Step(number) => {
                let mut steps = graph.steps.iter();
                let step = steps.find(|step| step.output().index() as u32 == number);
                let step = step.with_context(|| format!("there is no step {number}"))?;
                parts.iter().for_each(|part| join(&mut lane, part, step));
                // What came before the first step belongs to none.
                open.clear();
            }
            _ => open.extend(parts),
        }
    }
    Ok(lane)
}

/// A piece whose step is not known yet.
struct Part {
    how: How,
    from: Duration,
    to: Duration,
}

/// Returns what is within a span, and what it is itself in between.
fn around(span: &Span, how: How, within: Vec<Part>) -> Result<Vec<Part>> {
    let mut parts = Vec::with_capacity(2 * within.len() + 1);
    let mut at = span.from;
    for part in within {
        ensure!(
            at <= part.from && part.to <= span.to,
            "a record has spans that overlap"
        );
        let (from, to) = (at, part.from);
        at = part.to;
        parts.extend([Part { how, from, to }, part]);
    }
    let (from, to) = (at, span.to);
    parts.push(Part { how, from, to });
    Ok(parts)
}

/// Adds a part of a step to a lane: to its last piece, if both look the same.
fn join(lane: &mut Lane, part: &Part, step: &Step) {
    if part.from == part.to {
        return;
    }
    let piece = Piece {
        kind: StepKind::of(step),
        layer: step.layer,
        how: part.how,
        from: part.from.as_secs_f64(),
        to: part.to.as_secs_f64(),
    };
    match lane.last_mut() {
        Some(last) if last.looks_like(&piece) => last.to = piece.to,
        _ => lane.push(piece),
    }
}

/// Refuses a lane whose pieces are not what a clock said, but for a thousandth of a second and a
/// fiftieth of it all.
///
/// # Errors
/// If they are not.
fn check_total(lane: &Lane, told: f64) -> Result<()> {
    let ends = lane.first().zip(lane.last());
    let recorded = ends.map_or(0.0, |(first, last)| last.to - first.from);
    ensure!(
        (recorded - told).abs() <= 0.001 + 0.02 * told,
        "an online phase took {told:.3} s, and its timeline has {recorded:.3} s"
    );
    Ok(())
}

/// Both parties' lanes of one online phase, from the client's begin, where seconds count from, to
/// its answer.
#[derive(Debug, Clone)]
pub struct Timeline {
    /// What was measured, and where: a line below the picture.
    pub about: String,
    /// The client's pieces.
    pub client: Lane,
    /// The server's.
    pub server: Lane,
}

impl Timeline {
    /// Makes one of what both parties took down.
    ///
    /// # Errors
    /// If that is not a record of the steps, or not as long as the client's clock says.
    pub(super) fn of(table: &Table, recorded: &Recorded) -> Result<Self> {
        let [client, server] = [&recorded.client, &recorded.server];
        let (client, server) = (
            lane(client, &recorded.graph)?,
            lane(server, &recorded.graph)?,
        );
        check_total(&client, recorded.online_s)?;
        let scheme = table.results.last().map_or("", |row| &row.scheme);
        let about = format!(
            "{}, {} of {} layers, {} tokens, scheme {scheme}, link {}",
            table.model,
            table.layers_measured,
            table.layers,
            table.tokens,
            table.link.name()
        );
        Self::new(about, &client, &server)
    }

    /// Lays two lanes beside each other.
    ///
    /// # Errors
    /// If one of them has nothing in this time.
    fn new(about: String, client: &Lane, server: &Lane) -> Result<Self> {
        let ends = client.first().zip(client.last());
        let (begin, end) = ends.map_or((0.0, 0.0), |(first, last)| (first.from, last.to));
        let moved = |lane: &Lane| -> Lane {
            let pieces = lane.iter().map(|piece| Piece {
                from: piece.from.max(begin) - begin,
                to: piece.to.min(end) - begin,
                ..*piece
            });
            pieces.filter(|piece| piece.from < piece.to).collect()
        };
        let (client, server) = (moved(client), moved(server));
        ensure!(!client.is_empty(), "the client has no timeline");
        ensure!(!server.is_empty(), "the server did nothing meanwhile");
        Ok(Self {
            about,
            client,
            server,
        })
    }

    /// Returns the seconds in which both parties are at work, only the client is, only the server
    /// is, and neither is.
    pub fn overlap(&self) -> [f64; 4] {
        let mut spent = [0.0; 4];
        let mut ends: Vec<f64> = (self.client.iter().chain(&self.server))
            .flat_map(|piece| [piece.from, piece.to])
            .collect();
        ends.sort_by(f64::total_cmp);
        let at_work = |lane: &Lane, at: f64| {
            let piece = lane.partition_point(|piece| piece.to <= at);
            lane.get(piece)
                .is_some_and(|piece| piece.from <= at && piece.how != How::Waiting)
        };
        for pair in ends.windows(2) {
            let works = [&self.client, &self.server].map(|lane| at_work(lane, pair[0]));
            let which = match works {
                [true, true] => 0,
                [true, false] => 1,
                [false, true] => 2,
                [false, false] => 3,
            };
            spent[which] += pair[1] - pair[0];
        }
        spent
    }
}

/// Returns the seconds that a lane spends in one way, on one kind of steps if one is named.
pub fn seconds(lane: &Lane, how: How, kind: Option<StepKind>) -> f64 {
    let chosen = lane.iter().filter(|piece| piece.how == how);
    let chosen = chosen.filter(|piece| kind.is_none_or(|kind| piece.kind == kind));
    chosen.map(|piece| piece.to - piece.from).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use primer_model::synthetic::bert_shape;

    fn graph() -> Graph {
        Graph::new(&bert_shape(2, 16, 2), 4)
    }

    fn span(doing: Doing, from: u64, to: u64) -> Span {
        let [from, to] = [from, to].map(Duration::from_millis);
        Span { doing, from, to }
    }

    fn step(graph: &Graph, wanted: impl Fn(&Step) -> bool) -> Doing {
        let step = graph.steps.iter().find(|step| wanted(step)).unwrap();
        Doing::Step(step.output().index() as u32)
    }

    /// Records the embedding, then the activation of layer 1: it sends, and waits while it
    /// receives.
    fn record(graph: &Graph) -> Vec<Span> {
        let embed = step(graph, |step| matches!(step.op, Op::Embed { .. }));
        let activation = step(graph, |step| {
            let is = StepKind::of(step) == StepKind::Activation;
            is && step.layer == Some(1)
        });
        vec![
            span(Doing::Waiting, 995, 998),
            span(embed, 1000, 1010),
            span(Doing::Sending, 1012, 1013),
            span(Doing::Waiting, 1015, 1018),
            span(Doing::Waiting, 1019, 1020),
            span(Doing::Receiving, 1014, 1021),
            span(activation, 1010, 1025),
            span(Doing::Receiving, 1026, 1027),
        ]
    }

    fn milliseconds(seconds: f64) -> u32 {
        (1000.0 * seconds).round() as u32
    }

    #[test]
    fn a_lane_has_its_steps_without_a_gap() {
        let graph = graph();
        let lane = lane(&record(&graph), &graph).unwrap();
        let told = lane.iter().map(|piece| {
            let ends = [piece.from, piece.to].map(milliseconds);
            (piece.kind, piece.layer, piece.how, ends)
        });
        let (of, layer) = (StepKind::Activation, Some(1));
        let expected = [
            (StepKind::Weights, None, How::Computing, [1000, 1010]),
            (of, layer, How::Computing, [1010, 1012]),
            (of, layer, How::Talking, [1012, 1013]),
            (of, layer, How::Computing, [1013, 1014]),
            (of, layer, How::Talking, [1014, 1015]),
            (of, layer, How::Waiting, [1015, 1018]),
            (of, layer, How::Talking, [1018, 1019]),
            (of, layer, How::Waiting, [1019, 1020]),
            (of, layer, How::Talking, [1020, 1021]),
            (of, layer, How::Computing, [1021, 1025]),
        ];
        assert_eq!(told.collect::<Vec<_>>(), expected);
        let all = [How::Computing, How::Talking, How::Waiting];
        let sums = all.map(|how| milliseconds(seconds(&lane, how, None)));
        assert_eq!(sums, [17, 4, 4]);
        assert_eq!(
            milliseconds(seconds(&lane, How::Computing, Some(of))),
            2 + 1 + 4
        );
    }

    #[test]
    fn records_that_are_none_of_the_graph_are_refused() {
        let graph = graph();
        let refused = |spans: &[Span]| lane(spans, &graph).unwrap_err().to_string();
        let error = refused(&[span(Doing::Step(9999), 0, 1)]);
        assert!(error.contains("no step 9999"), "{error}");
        let mut spans = record(&graph);
        spans[4].from = Duration::from_millis(1017);
        let error = refused(&spans);
        assert!(error.contains("overlap"), "{error}");
    }

    fn piece(how: How, from: f64, to: f64) -> Piece {
        Piece {
            kind: StepKind::Powers,
            layer: Some(0),
            how,
            from,
            to,
        }
    }

    /// Makes one whose server begins before the client and ends after it.
    fn timeline() -> Timeline {
        let client = vec![
            piece(How::Computing, 100.0, 103.0),
            piece(How::Waiting, 103.0, 107.0),
            piece(How::Talking, 107.0, 108.0),
        ];
        let server = vec![
            piece(How::Waiting, 99.0, 102.0),
            piece(How::Computing, 102.0, 105.0),
            piece(How::Waiting, 105.0, 109.0),
        ];
        let told = |lane: &Lane, seconds| check_total(lane, seconds).map(|()| lane.clone());
        assert!(told(&client, 8.1).is_ok() && told(&client, 8.0 - 0.005).is_ok());
        assert!(told(&client, 8.4).is_err() && told(&client, 7.7).is_err());
        Timeline::new("small, 4 tokens".into(), &client, &server).unwrap()
    }

    #[test]
    fn both_lanes_count_from_the_clients_begin() {
        let timeline = timeline();
        let ends = [&timeline.client, &timeline.server].map(|lane| (lane[0].from, lane[2].to));
        assert_eq!(ends, [(0.0, 8.0); 2]);
        // Both from 102 to 103; the client before and at the end, the server until 105.
        assert_eq!(timeline.overlap(), [1.0, 3.0, 2.0, 2.0]);
        let empty = |a: &[Piece], b: &[Piece]| {
            Timeline::new(String::new(), &a.to_vec(), &b.to_vec()).is_err()
        };
        let one = [piece(How::Computing, 0.0, 1.0)];
        let later = [piece(How::Computing, 1.0, 2.0)];
        assert!(empty(&[], &one) && empty(&one, &[]) && empty(&one, &later));
        assert!(!empty(&one, &one));
    }

    /// Checks that the figures of the picture are those of the lanes.
    #[test]
    fn a_picture_tells_the_seconds() {
        let svg = timeline().svg();
        for said in [
            "One online phase: 8.00 s",
            "small, 4 tokens",
            ">powers of softmax<",
            ">3.000<",
            ">4.000<",
            "neither for 2.000 s",
            ">layer 0<",
        ] {
            assert!(svg.contains(said), "{said}: {svg}");
        }
    }
}
