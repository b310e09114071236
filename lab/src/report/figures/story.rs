//! One picture before all others: what one private answer takes, here and elsewhere.
//!
//! Bars are in proportion: that some can hardly be seen is what the picture says.

use super::super::answer::{AnswerCost, answers};
use super::super::records::Records;
use super::super::subject::Subject;
use super::super::tables::{bytes, seconds};
use super::Figure;
use crate::plot::bars::{Bar, Chart, Group, Scale, Series, stacked};

/// Returns what is shown, if a scheme of ours was measured at the paper's size.
pub(super) fn story(records: &Records) -> Option<Figure> {
    let subject = Subject::main().title();
    let answers = answers(records);
    if answers.is_empty() {
        return None;
    }
    let time = chart(
        &answers,
        ["Seconds of one answer, both phases", "seconds"],
        |a| a.seconds(),
        |a| match a.offline_s {
            Some(_) => format!("{} ({} online)", seconds(a.seconds()), seconds(a.online_s)),
            None => seconds(a.seconds()),
        },
    );
    let size = chart(
        &answers,
        ["Bytes of one answer, both phases", "gigabytes"],
        |a| a.bytes as f64 / 1e9,
        |a| match a.bytes {
            0 => "none".into(),
            some => bytes(some),
        },
    );
    Some(Figure {
        name: "story".into(),
        caption: format!(
            "What one private answer of {subject} takes: the paper's with four threads a party and \
             a link between two machines, all others with one thread on this machine. Online is \
             what is left once the question is there."
        ),
        svg: stacked(&format!("One private answer: {subject}"), &[time, size]),
    })
}

fn chart(
    answers: &[AnswerCost<'_>],
    [title, unit]: [&str; 2],
    value: impl Fn(&AnswerCost<'_>) -> f64,
    label: impl Fn(&AnswerCost<'_>) -> String,
) -> Chart {
    let bar = |answer: &AnswerCost<'_>| Bar {
        value: Some(value(answer)),
        label: label(answer),
        mark: None,
        hatched: answer.extrapolated,
    };
    let group = |answer: &AnswerCost<'_>| Group {
        name: answer.name.clone(),
        bars: match answer.is_ours {
            true => vec![Bar::default(), bar(answer)],
            false => vec![bar(answer)],
        },
    };
    Chart {
        title: title.into(),
        unit: unit.into(),
        series: Series::list(&["other systems", "Primer as it is here"]),
        groups: answers.iter().map(group).collect(),
        scale: Scale::UpTo(answers.iter().map(&value).fold(0.0, f64::max)),
        mark: None,
    }
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
        for label in ["435 (35.4 online)", "3.60 GB", "12.0 (3.00 online)"] {
            assert!(svg.contains(&format!(">{label}<")), "{label} in {svg}");
        }
        assert!(svg.contains(">extrapolated<"));
        assert!(story(&records(&[table("bert-tiny", &["lean"], false, 1.0)])).is_none());
    }
}
