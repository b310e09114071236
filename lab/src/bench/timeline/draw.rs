//! The picture of a timeline.

use super::{How, Lane, Piece, StepKind, Timeline, seconds};
use crate::plot::PALETTE;
use crate::plot::lanes::{Look, Panel, Picture, Row, Stretch};

impl Timeline {
    /// Draws the whole phase, one layer of it, and where the seconds go.
    pub fn svg(&self) -> String {
        let end = self.end();
        let mut panels = vec![self.panel("the whole phase, by layers".into(), (0.0, end))];
        let layers = self.layers();
        if let Some((layer, from, to)) = layers.get(layers.len() / 2) {
            panels.push(self.panel(format!("layer {layer}"), (*from, *to)));
        }
        let [both, client, server, neither] = self.overlap();
        Picture {
            title: format!("One online phase: {end:.2} s"),
            about: self.about.clone(),
            panels,
            columns: COLUMNS.map(Into::into).into(),
            rows: self.rows(),
            notes: vec![
                "Pale: sending and receiving, encryption included. Blank: waiting for the other \
                 party."
                    .into(),
                format!(
                    "Both are at work for {both:.3} s, the client alone for {client:.3} s, the \
                     server alone for {server:.3} s, neither for {neither:.3} s."
                ),
            ],
        }
        .svg()
    }

    /// Returns when the client has its answer.
    fn end(&self) -> f64 {
        self.client.last().map_or(0.0, |piece| piece.to)
    }

    /// Lists layers, and from when to when the server is in each.
    fn layers(&self) -> Vec<(usize, f64, f64)> {
        let mut layers: Vec<(usize, f64, f64)> = Vec::new();
        for piece in &self.server {
            let Some(layer) = piece.layer else { continue };
            match layers.iter_mut().find(|(known, ..)| *known == layer) {
                Some((.., to)) => *to = piece.to,
                None => layers.push((layer, piece.from, piece.to)),
            }
        }
        layers
    }

    fn panel(&self, title: String, ends: (f64, f64)) -> Panel {
        let layers = self.layers().into_iter();
        let within = layers.filter(|(_, from, to)| *to > ends.0 && *from < ends.1);
        Panel {
            title,
            ends,
            lanes: vec![
                ("client".into(), stretches(&self.client)),
                ("server".into(), stretches(&self.server)),
            ],
            sections: within
                .map(|(layer, from, to)| (from.max(ends.0), to.min(ends.1), layer.to_string()))
                .collect(),
        }
    }

    /// Returns the table: seconds of each kind, and of waiting.
    fn rows(&self) -> Vec<Row> {
        let lanes = [&self.client, &self.server];
        let told = |seconds: f64| format!("{seconds:.3}");
        let row = |kind: StepKind| {
            let figures = lanes.iter().flat_map(|lane| {
                [How::Computing, How::Talking].map(|how| told(seconds(lane, how, Some(kind))))
            });
            Row {
                looks: [false, true].map(|pale| look(kind, pale)).into(),
                name: kind.name().into(),
                figures: figures.collect(),
            }
        };
        let mut rows: Vec<Row> = StepKind::ALL.into_iter().map(row).collect();
        let all = lanes.iter().flat_map(|lane| {
            [How::Computing, How::Talking].map(|how| told(seconds(lane, how, None)))
        });
        rows.push(Row {
            looks: Vec::new(),
            name: "together".into(),
            figures: all.collect(),
        });
        let waiting = lanes.iter().flat_map(|lane| {
            let waiting = told(seconds(lane, How::Waiting, None));
            [waiting, String::new()]
        });
        rows.push(Row {
            looks: Vec::new(),
            name: "waiting".into(),
            figures: waiting.collect(),
        });
        rows
    }
}

const COLUMNS: [&str; 4] = [
    "client computes, s",
    "sends, receives",
    "server computes, s",
    "sends, receives",
];

/// Returns what a kind looks like.
fn look(kind: StepKind, pale: bool) -> Look {
    let place = StepKind::ALL.iter().position(|other| *other == kind);
    Look {
        color: PALETTE[place.expect("all kinds are listed")],
        pale,
    }
}

/// Returns what is drawn of a lane: all but waiting.
fn stretches(lane: &Lane) -> Vec<Stretch> {
    let busy = lane.iter().filter(|piece| piece.how != How::Waiting);
    let stretch = |piece: &Piece| Stretch {
        from: piece.from,
        to: piece.to,
        look: look(piece.kind, piece.how == How::Talking),
    };
    busy.map(stretch).collect()
}
