//! What cannot be measured, refused before the first of many long runs.

use super::subject::Subject;
use super::{Entrant, Request, fhe, growth};
use crate::usage::ensure_usage;
use anyhow::Result;
use primer_net::Link;

/// What does not need the model.
pub(super) fn request(request: &Request) -> Result<()> {
    ensure_usage!(request.runs > 0, "at least one run is needed");
    for entrant in &request.entrants {
        ensure_usage!(
            !entrant.is_comparator() || request.link == Link::Loopback,
            "scheme {} is extrapolated from the time of a small shape, and what the link {} adds \
             does not grow as that does: measure it with --link loopback, and add the link's time \
             for its bytes and round trips",
            entrant.name(),
            request.link.name()
        );
    }
    if request.timeline {
        ensure_usage!(
            matches!(request.entrants[..], [Entrant::Scheme(_)]),
            "a timeline is of one scheme of the protocol: name one with --schemes"
        );
    }
    if request.growth {
        growth::check(request)?;
    }
    Ok(())
}

/// What does.
pub(super) fn subject(request: &Request, subject: &Subject) -> Result<()> {
    for entrant in &request.entrants {
        match entrant {
            // Any model has a program, and a circuit that can be counted.
            Entrant::Scheme(_) | Entrant::Gc => {}
            Entrant::Fhe => fhe::check(request, subject)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use primer_model::synthetic;
    use primer_plan::shape::{Head, Shape};
    use primer_protocol::Scheme;

    fn asks(entrant: Entrant) -> Request {
        Request {
            model: "minilm".to_owned(),
            layers: None,
            tokens: 8,
            entrants: vec![Entrant::Scheme(Scheme::Fp), entrant],
            link: Link::Loopback,
            runs: 1,
            bundles: 1,
            threads: 1,
            growth: false,
            timeline: false,
        }
    }

    #[test]
    fn comparators_take_no_slow_link_and_do_not_grow() {
        for entrant in [Entrant::Gc, Entrant::Fhe] {
            let mut asked = asks(entrant);
            assert!(super::request(&asked).is_ok());
            asked.link = Link::Wan;
            let error = super::request(&asked).unwrap_err().to_string();
            let named = [entrant.name(), "link wan", "--link loopback"];
            assert!(named.iter().all(|n| error.contains(n)), "{error}");
            asked = asks(entrant);
            asked.growth = true;
            let error = super::request(&asked).unwrap_err().to_string();
            assert!(error.contains(entrant.name()), "{error}");
        }
        let mut asked = asks(Entrant::Scheme(Scheme::Base));
        asked.link = Link::Wan;
        assert!(super::request(&asked).is_ok());
        asked.runs = 0;
        assert!(super::request(&asked).is_err());
    }

    #[test]
    fn a_timeline_is_of_one_scheme() {
        let scheme = Entrant::Scheme(Scheme::Fp);
        for (entrants, fine) in [
            (vec![scheme], true),
            (vec![scheme, Entrant::Scheme(Scheme::Base)], false),
            (vec![Entrant::Gc], false),
            (vec![Entrant::Fhe], false),
        ] {
            let mut asked = asks(scheme);
            (asked.entrants, asked.timeline) = (entrants, true);
            let checked = super::request(&asked);
            assert_eq!(checked.is_ok(), fine, "{:?}: {checked:?}", asked.entrants);
        }
    }

    #[test]
    fn fhe_takes_classifiers_only() {
        let shape = |head: Head| Shape {
            head,
            vocab: 126,
            positions: 16,
            ..synthetic::bert_shape(1, 32, 2)
        };
        let labels = |n: usize| Head::classify((0..n).map(|i| i.to_string()).collect());
        let check = |head: Head, entrant: Entrant| {
            let subject = Subject::synthetic("small", &shape(head)).unwrap();
            super::subject(&asks(entrant), &subject).map_err(|e| format!("{e:#}"))
        };
        assert_eq!(check(labels(2), Entrant::Fhe), Ok(()));
        assert_eq!(check(Head::Span, Entrant::Gc), Ok(()));
        let error = check(Head::Span, Entrant::Fhe).unwrap_err();
        let named = ["small", "fhe", "classifiers"];
        assert!(named.iter().all(|n| error.contains(n)), "{error}");
    }
}
