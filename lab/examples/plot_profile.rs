//! Draws where the seconds of an inference go, from what `lab/scripts/profile` found:
//! `cargo run --release -p primer-lab --example plot_profile -- PROFILE.json PICTURE.svg`.

use primer_lab::plot::bars::{self, Bar, Chart, Group, Scale, Series};
use serde_json::Value;
use std::error::Error;

/// Less than this share of a phase at both parties is not shown.
const LEAST: f64 = 0.004;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(profile), Some(picture)) = (arguments.next(), arguments.next()) else {
        return Err("the profile that was measured and the picture to draw, please".into());
    };
    let profile: Value = serde_json::from_str(&std::fs::read_to_string(profile)?)?;
    let phases = profile["phases"].as_array().ok_or("no phases")?;
    let charts: Option<Vec<Chart>> = phases.iter().map(chart).collect();
    let charts = charts.ok_or("a phase lacks its seconds or a party")?;
    std::fs::write(picture, bars::stacked("Where the seconds go", &charts))?;
    Ok(())
}

/// Returns what both parties did in one phase, as bars.
fn chart(phase: &Value) -> Option<Chart> {
    let (name, whole) = (phase["phase"].as_str()?, phase["seconds"].as_f64()?);
    let (client, server) = (phase["client"].as_object()?, phase["server"].as_object()?);
    let mut groups = Vec::new();
    for (kind, client) in client {
        let seconds = [client.as_f64()?, server.get(kind)?.as_f64()?];
        if seconds.iter().any(|s| *s > LEAST * whole) {
            let bar = |value: f64| Bar {
                value: (value > 0.0).then_some(value),
                label: format!("{value:.2}"),
                ..Bar::default()
            };
            groups.push((seconds, kind, seconds.map(bar).to_vec()));
        }
    }
    // What took longest first, waiting last.
    let order = |(seconds, kind, _): &([f64; 2], &String, Vec<Bar>)| {
        (*kind == "waiting", -seconds[0].max(seconds[1]))
    };
    groups.sort_by(|a, b| {
        order(a)
            .partial_cmp(&order(b))
            .expect("seconds are numbers")
    });
    let most = groups.iter().flat_map(|g| g.0).fold(0.0, f64::max);
    let groups = groups.into_iter().map(|(_, name, bars)| Group {
        name: name.clone(),
        bars,
    });
    Some(Chart {
        title: format!("{name}: {whole:.2} s"),
        unit: "seconds of one core".into(),
        series: Series::list(&["client", "server"]),
        groups: groups.collect(),
        scale: Scale::UpTo(most * 1.05),
        mark: None,
    })
}
