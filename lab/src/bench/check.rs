//! What cannot be measured, refused before the first of many long runs.

use super::{Extras, Scheme, growth};
use anyhow::Result;
use primer_measure::bench::Request;
use primer_measure::ensure_usage;
use primer_net::Link;

/// Checks what is measured besides rows.
pub(super) fn extras(request: &Request, extras: Extras) -> Result<()> {
    if extras.timeline {
        let scheme = match request.entrants[..] {
            [one] => one.name().parse::<Scheme>().ok(),
            _ => None,
        };
        ensure_usage!(
            scheme.is_some(),
            "a timeline is of one scheme of the protocol: name one with --schemes"
        );
    }
    if extras.growth {
        growth::check(request)?;
    }
    Ok(())
}

/// Checks that a comparator, which is run on a small shape, is not measured over a slow link.
pub(super) fn link(name: &str, request: &Request) -> Result<()> {
    ensure_usage!(
        request.link == Link::Loopback,
        "scheme {name} is extrapolated from the time of a small shape, and what the link {} adds \
         does not grow as that does: measure it with --link loopback, and add the link's time for \
         its bytes and round trips",
        request.link.name()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::Entrant;
    use primer_measure::bench::Subject;
    use primer_model::synthetic;
    use primer_plan::shape::{Head, Shape};

    fn asks(entrants: &[Entrant]) -> Request {
        Request {
            model: "minilm".to_owned(),
            layers: None,
            tokens: 8,
            entrants: entrants.iter().map(|entrant| entrant.measured()).collect(),
            link: Link::Loopback,
            runs: 1,
            bundles: 1,
            threads: 1,
            record: false,
        }
    }

    /// Checks a request before there is a model, as a measurement does.
    fn checked(request: &Request, extras: Extras) -> Result<()> {
        super::extras(request, extras)?;
        let entrants = &request.entrants;
        entrants
            .iter()
            .try_for_each(|one| one.check_request(request))
    }

    #[test]
    fn comparators_take_no_slow_link_and_do_not_grow() {
        let growth = Extras {
            growth: true,
            timeline: false,
        };
        for entrant in [Entrant::Gc, Entrant::Fhe] {
            let mut asked = asks(&[Entrant::Scheme(Scheme::Fp), entrant]);
            assert!(checked(&asked, Extras::default()).is_ok());
            let error = checked(&asked, growth).unwrap_err().to_string();
            assert!(error.contains(entrant.name()), "{error}");
            asked.link = Link::Wan;
            let error = checked(&asked, Extras::default()).unwrap_err().to_string();
            let named = [entrant.name(), "link wan", "--link loopback"];
            assert!(named.iter().all(|n| error.contains(n)), "{error}");
        }
        let mut asked = asks(&[Entrant::Scheme(Scheme::Fp), Entrant::Scheme(Scheme::Base)]);
        asked.link = Link::Wan;
        assert!(checked(&asked, growth).is_ok());
        asked.runs = 0;
        assert!(primer_measure::bench::measure(&asked).is_err());
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
            let timeline = Extras {
                growth: false,
                timeline: true,
            };
            let checked = checked(&asks(&entrants), timeline);
            assert_eq!(checked.is_ok(), fine, "{entrants:?}: {checked:?}");
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
            let entrant = entrant.measured();
            entrant
                .check_subject(&asks(&[]), &subject)
                .map_err(|e| format!("{e:#}"))
        };
        assert_eq!(check(labels(2), Entrant::Fhe), Ok(()));
        assert_eq!(check(Head::Span, Entrant::Gc), Ok(()));
        let error = check(Head::Span, Entrant::Fhe).unwrap_err();
        let named = ["small", "fhe", "classifiers"];
        assert!(named.iter().all(|n| error.contains(n)), "{error}");
    }
}
