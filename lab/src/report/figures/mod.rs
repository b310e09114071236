//! The pictures of a report.

mod accuracy;
mod costs;
mod growth;
mod story;

use super::records::Records;
use super::subject;
use crate::bench::Entrant;
use crate::plot::PALETTE;
use crate::plot::bars::Series;
use costs::Phase;
use growth::Against;

/// A picture with a name for its file.
pub struct Figure {
    /// The file's name without its ending.
    pub name: String,
    /// What it shows, in a sentence.
    pub caption: String,
    /// The picture.
    pub svg: String,
}

/// Returns every picture that the records have figures for.
pub fn all(records: &Records) -> Vec<Figure> {
    let shown = subject::shown(records);
    let mut figures: Vec<Option<Figure>> = vec![story::story(records)];
    for (at, &subject) in shown.iter().enumerate() {
        // A picture compares; what stands alone is told by its tables.
        if at > 0 && records.rows(subject).count() < 2 {
            continue;
        }
        figures.push(costs::totals(records, subject));
        figures.push(costs::steps(records, subject, Phase::Offline));
        figures.push(costs::steps(records, subject, Phase::Online));
        if at == 0 {
            figures.push(costs::sizes(records));
        }
        figures.push(costs::traffic(records, subject));
    }
    figures.extend([
        growth::growth(records, Against::Layers),
        growth::growth(records, Against::Tokens),
        accuracy::accuracy(records),
    ]);
    let mut named: Vec<Figure> = Vec::new();
    for mut figure in figures.into_iter().flatten() {
        // Names of two models may differ in what a file's name cannot have.
        while named.iter().any(|known| known.name == figure.name) {
            figure.name += "-again";
        }
        named.push(figure);
    }
    named
}

/// Returns the colour of an entrant, the same in every picture. Schemes take theirs from the front
/// of the palette and comparators from its end, so that a new one changes no other.
fn color(entrant: Entrant) -> &'static str {
    let comparators = Entrant::COMPARATORS.into_iter().rev();
    let (first, last) = PALETTE.split_at(PALETTE.len() - comparators.len());
    let schemes = Entrant::all().filter(|e| !e.is_comparator());
    let all = schemes.zip(first).chain(comparators.zip(last));
    let mut found = all.filter(|(e, _)| *e == entrant).map(|(_, color)| *color);
    found
        .next()
        .expect("a colour for every entrant: a test counts")
}

/// Makes a series for each.
fn entrants(all: impl Iterator<Item = Entrant>) -> impl Iterator<Item = Series> {
    all.map(|entrant| Series {
        name: entrant.name().to_owned(),
        color: color(entrant),
    })
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{
        accuracy as eval, everything, grown, records, table, table_at, with,
    };
    use super::*;
    use crate::plot::{INK, PALE};

    #[test]
    fn there_is_a_picture_for_what_was_measured_only() {
        let nothing = all(&Records::default());
        assert!(nothing.is_empty());
        let found = all(&records(&[
            table("bert-base", &["f", "fp"], true, 40.0),
            eval("mnli", "secure"),
        ]));
        let names: Vec<&str> = found.iter().map(|f| f.name.as_str()).collect();
        let expected = [
            "story",
            "schemes",
            "steps-offline",
            "steps-online",
            "models",
            "bytes",
            "accuracy",
        ];
        assert_eq!(names, expected);
        assert!(found[1].svg.contains("40.0 (paper 405)"));
        assert!(found[1].svg.contains("extrapolated"));
    }

    #[test]
    fn every_subject_has_its_pictures() {
        let other = table_at("mini/lm", 64, "loopback", &["fp", "fpc"]);
        let own = ["schemes", "steps-offline", "steps-online", "bytes"];
        let own = own.map(|name| format!("{name}-mini-lm-64"));
        let found = all(&records(std::slice::from_ref(&other)));
        let names =
            |found: &[Figure]| -> Vec<String> { found.iter().map(|f| f.name.clone()).collect() };
        assert_eq!(names(&found), own);
        for figure in &found {
            assert!(figure.svg.contains("mini/lm, 64 tokens"), "{}", figure.name);
            assert!(!figure.svg.contains("paper"), "{}", figure.name);
            assert!(!figure.caption.contains("paper"), "{}", figure.caption);
        }
        let base = table("bert-base", &["fp"], false, 40.0);
        let twin = table_at("mini.lm", 64, "loopback", &["fp", "fpc"]);
        let alone = table_at("alone", 64, "loopback", &["fp"]);
        let found = names(&all(&records(&[alone.clone(), other, base, twin])));
        assert_eq!(found[..3], ["story", "schemes", "steps-offline"]);
        assert_eq!(found[6..10], own);
        assert_eq!(found[10], "schemes-mini-lm-64-again");
        assert_eq!(found.len(), 14, "nothing of what has nothing beside it");
        assert_eq!(
            all(&records(&[alone])).len(),
            4,
            "unless it is all there is"
        );
    }

    #[test]
    fn a_line_joins_points_of_one_scheme_and_model() {
        let found = all(&records(&[
            grown("bert-base", &["fp", "fpc"], 1.0),
            grown("bert-small", &["fp"], 3.0),
        ]));
        let figure = found.iter().find(|f| f.name == "growth-layers").unwrap();
        for name in ["fp, bert-base", "fpc, bert-base", "fp, bert-small"] {
            let count = figure.svg.matches(&format!(">{name}<")).count();
            assert_eq!(count, 4, "{name} in every panel");
        }
        assert_eq!(figure.svg.matches("stroke-width=\"2\"").count(), 12);
        assert!(figure.caption.contains("bert-base and bert-small"));
    }

    #[test]
    fn models_are_not_mixed() {
        let own = eval("sst2", "float");
        let found = all(&records(&[own.clone(), eval("mnli", "float")]));
        assert!(found[0].svg.contains(">sst2<"));
        let other = with(&own, "model", "other");
        let found = all(&records(&[own, other, eval("mnli", "float")]));
        for name in ["sst2, minilm", "sst2, other", "mnli"] {
            assert!(found[0].svg.contains(&format!(">{name}<")), "{name}");
        }
    }

    /// Tells whether a text of a picture names an entrant, alone or among other words.
    fn names(svg: &str, entrant: Entrant) -> bool {
        let texts = svg.split("</text>").filter_map(|t| t.rsplit('>').next());
        let mut words = texts.flat_map(|t| t.split([' ', ',', '(', ')']));
        words.any(|word| word == entrant.name())
    }

    #[test]
    fn every_entrant_is_in_every_picture() {
        let mut found = all(&records(&everything()));
        assert_eq!(found.remove(0).name, "story", "which has a few of them");
        let own = ["schemes", "steps-offline", "steps-online", "bytes"];
        assert_eq!(
            found.len(),
            2 * own.len() + ["models", "layers", "tokens", "accuracy"].len()
        );
        for figure in &found {
            for entrant in Entrant::all() {
                let name = entrant.name();
                assert!(names(&figure.svg, entrant), "{name} in {}", figure.name);
            }
        }
    }

    #[test]
    fn every_entrant_has_a_colour_of_its_own() {
        let mut seen = vec![INK, PALE];
        for entrant in Entrant::all() {
            assert!(!seen.contains(&color(entrant)), "{}", entrant.name());
            seen.push(color(entrant));
        }
    }

    #[test]
    fn a_colour_does_not_depend_on_the_others() {
        for entrant in Entrant::all() {
            let found = all(&records(&[grown("bert-base", &[entrant.name()], 1.0)]));
            let color = format!("=\"{}\"", color(entrant));
            for name in ["steps-offline", "steps-online", "growth-layers"] {
                let figure = found.iter().find(|f| f.name == name).unwrap();
                assert!(figure.svg.contains(&color), "{} in {name}", entrant.name());
            }
        }
    }
}
