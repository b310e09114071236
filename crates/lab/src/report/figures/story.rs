//! One picture before all others: what one private answer takes, here and elsewhere.
//!
//! Bars are in proportion: that some can hardly be seen is what the picture says.

use super::super::paper;
use super::super::records::{Records, TOKENS};
use super::super::subject::Subject;
use super::super::tables::{bytes, of_peers, seconds};
use super::Figure;
use crate::bench::table::Row;
use crate::plot::bars::{Bar, Chart, Group, Scale, Series, stacked};
use primer_protocol::Scheme;

/// The scheme of the paper whose figures stand for it.
const PAPERS: &str = "fpc";
/// The paper's protocol as it is built here, and what goes beyond it.
const OURS: [Scheme; 2] = [Scheme::Fp, Scheme::Lean];

/// A system with the seconds and bytes of one answer.
struct Answer {
    name: String,
    is_ours: bool,
    seconds: f64,
    bytes: f64,
    extrapolated: bool,
}

impl Answer {
    fn of(name: String, is_ours: bool, row: &Row) -> Self {
        Self {
            name,
            is_ours,
            seconds: row.offline_s + row.online_s,
            bytes: row.bytes.total() as f64,
            extrapolated: row.extrapolated,
        }
    }
}

/// What is shown, if a scheme of ours was measured at the paper's size.
pub(super) fn story(records: &Records) -> Option<Figure> {
    let subject = Subject::main();
    let answers = answers(records, subject)?;
    let chart = |title: &str, unit: &str, value: fn(&Answer) -> f64, label: fn(f64) -> String| {
        let bar = |answer: &Answer| Bar {
            value: Some(value(answer)),
            label: label(value(answer)),
            mark: None,
            hatched: answer.extrapolated,
        };
        let group = |answer: &Answer| Group {
            name: answer.name.clone(),
            bars: match answer.is_ours {
                true => vec![Bar::default(), bar(answer)],
                false => vec![bar(answer)],
            },
        };
        Chart {
            title: title.into(),
            unit: unit.into(),
            series: Series::list(&["elsewhere", "here"]),
            groups: answers.iter().map(group).collect(),
            scale: Scale::UpTo(answers.iter().map(value).fold(0.0, f64::max)),
            mark: None,
        }
    };
    let title = format!("One private answer: {}", subject.title());
    let time = chart(
        "Seconds of one answer, both phases",
        "seconds",
        |a| a.seconds,
        seconds,
    );
    let size = chart(
        "Bytes of one answer, both phases",
        "gigabytes",
        |a| a.bytes / 1e9,
        |gigabytes| match gigabytes {
            0.0 => "none".into(),
            some => bytes((some * 1e9) as u64),
        },
    );
    Some(Figure {
        name: "story".into(),
        caption: format!(
            "What one private answer of {} takes, the paper's with four threads a party, all \
             others with one.",
            subject.title()
        ),
        svg: stacked(&title, &[time, size]),
    })
}

fn answers(records: &Records, subject: Subject<'_>) -> Option<Vec<Answer>> {
    let mut answers = Vec::new();
    let size = paper::SIZES.iter().find(|s| s.model == subject.model);
    let totals = paper::totals(PAPERS).filter(|_| subject.tokens == TOKENS);
    if let (Some(size), Some((offline, online))) = (size, totals) {
        answers.push(Answer {
            name: "the paper".into(),
            is_ours: false,
            seconds: offline.unwrap_or_default() + online,
            bytes: size.messages * 1e9,
            extrapolated: false,
        });
    }
    for (name, _, row) in of_peers(records, subject) {
        answers.push(Answer::of(name.to_owned(), false, row));
    }
    let mut plain = None;
    for scheme in OURS {
        let entrant = crate::bench::Entrant::Scheme(scheme);
        let Some((_, row)) = records.row(subject, entrant) else {
            continue;
        };
        plain = Some(row.plaintext_s);
        answers.push(Answer::of(scheme.name().to_owned(), true, row));
        let together = records.together(subject).into_iter();
        let together = together.filter(|(e, _, row)| *e == entrant && row.bundles > 1);
        for (_, _, row) in together {
            let name = format!("{}, one of {}", scheme.name(), row.bundles);
            answers.push(Answer::of(name, true, row));
        }
    }
    answers.push(Answer {
        name: "float, nothing private".into(),
        is_ours: true,
        seconds: plain?,
        bytes: 0.0,
        extrapolated: false,
    });
    Some(answers)
}

#[cfg(test)]
mod tests {
    use super::super::super::fixtures::{records, table, with};
    use super::*;

    #[test]
    fn everybody_has_a_bar_of_seconds_and_one_of_bytes() {
        let eight = with(
            &table("bert-base", &["lean"], false, 9.0),
            "results.bundles",
            8,
        );
        let figure = story(&records(&[
            table("bert-base", &["fp", "lean"], false, 40.0),
            eight,
            table("bert-base", &["spu"], true, 0.0),
        ]));
        let svg = figure.unwrap().svg;
        for name in [
            "the paper",
            "SPU (Cheetah)",
            "fp",
            "lean",
            "lean, one of 8",
            "float, nothing private",
        ] {
            assert_eq!(svg.matches(&format!(">{name}<")).count(), 2, "{name}");
        }
        assert!(svg.contains(">435<") && svg.contains(">3.60 GB<"), "{svg}");
        assert!(svg.contains(">extrapolated<"));
        assert!(story(&records(&[table("bert-tiny", &["lean"], false, 1.0)])).is_none());
    }
}
