//! A report as one HTML file: no script, no network, every picture inside.
//!
//! The picture that tells the story comes first, then every table with the pictures that belong to
//! it, then the commands.

use super::figures::Figure;
use super::{Records, figures, tables};
use crate::plot::escape;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;color:#222;background:#fff;\
max-width:60rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.7rem}\
h2{font-size:1.25rem;margin-top:2.4rem;border-bottom:1px solid #ddd;padding-bottom:.3rem}\
figure{margin:1.2rem 0}.scroll svg{width:100%;min-width:30rem;height:auto;\
box-sizing:border-box;border:1px solid #eee}\
figcaption,.note{color:#555;font-size:.9rem}\
.scroll{overflow-x:auto}table{border-collapse:collapse;font-size:.85rem;white-space:nowrap}\
th,td{padding:.25rem .6rem;border-bottom:1px solid #e4e4e4;text-align:right}\
th:first-child,td:first-child{text-align:left}\
th{background:#f6f6f6;white-space:normal;vertical-align:bottom}\
code{font:.85rem ui-monospace,monospace;background:#f6f6f6;padding:.1rem .3rem;\
overflow-wrap:anywhere}\
dt{font-weight:600;margin-top:.6rem}dd{margin:0}";

/// Returns the page.
pub fn html(records: &Records) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Primer: measured</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <h1>Primer, measured</h1>\n\
         <p>Private BERT inference: what one inference costs and how right it is, beside the \
         figures of the paper <em>Primer: Fast Private Transformer Inference on Encrypted \
         Data</em>. Ours: both parties on one machine, one thread and where possible one core \
         each, TLS between them. The paper's: two machines, four threads a party, 2.3 ms and \
         100 MB/s between them. A hatched bar or a * is a figure that was not run whole but \
         extrapolated from a part.</p>\n"
    );
    let mut figures = figures::all(records);
    out += &taken(&mut figures, "story");
    for grid in tables::all(records) {
        // Names of schemes are set in Markdown's quotes.
        let table = grid.html().replace('`', "");
        out += &format!("<h2>{}</h2>\n{table}", escape(&grid.title));
        for name in &grid.pictures {
            out += &taken(&mut figures, name);
        }
    }
    out.extend(figures.iter().map(shown));
    out += "<h2>Where the figures come from</h2>\n<dl>\n";
    for (at, one) in records.provenance().into_iter().enumerate() {
        out += &format!(
            "<dt>[{}] <code>{}</code></dt><dd>commit {}; {}</dd>\n",
            at + 1,
            escape(&one.command),
            escape(&one.commit),
            escape(&one.machine)
        );
    }
    out + "</dl>\n</body>\n</html>\n"
}

/// Takes a picture by its name, which is then taken out; nothing if it is not there.
fn taken(figures: &mut Vec<Figure>, name: &str) -> String {
    let at = figures.iter().position(|figure| figure.name == name);
    at.map_or(String::new(), |at| shown(&figures.remove(at)))
}

fn shown(figure: &Figure) -> String {
    format!(
        "<figure id=\"{}\">\n<div class=\"scroll\">{}</div><figcaption>{}</figcaption>\n\
         </figure>\n",
        figure.name,
        figure.svg,
        escape(&figure.caption)
    )
}

/// Returns the tables as a document.
pub fn markdown(records: &Records) -> String {
    let mut out = String::from(
        "# Tables\n\nMade by `primer-lab report` from the results named at the end.\n",
    );
    for grid in tables::all(records) {
        out += &format!("\n{}", grid.markdown());
    }
    out += "\n## Where the figures come from\n\n";
    out += "| number | command | commit | machine |\n|---|---|---|---|\n";
    for (at, one) in records.provenance().into_iter().enumerate() {
        // A bar in a command would end its cell.
        let cells = [&one.command, &one.commit, &one.machine].map(|c| c.replace('|', "\\|"));
        let [command, commit, machine] = cells;
        out += &format!("| [{}] | `{command}` | {commit} | {machine} |\n", at + 1);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{accuracy, everything, records, table};

    #[test]
    fn a_page_needs_nothing_from_elsewhere() {
        let page = super::html(&records(&[
            table("bert-base", &["fp", "fpc"], false, 40.0),
            accuracy("sst2", "secure"),
        ]));
        for outside in ["src=", "href=", "@import", "url(http", "<script"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert_eq!(
            page.matches("<figure").count(),
            page.matches("</figure>").count()
        );
        assert!(page.contains("primer bench") && page.contains("commit abc"));
        assert!(page.ends_with("</html>\n"));
    }

    #[test]
    fn every_picture_stands_once_and_after_its_table() {
        let records = records(&everything());
        let page = super::html(&records);
        let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}"));
        for figure in super::figures::all(&records) {
            let id = format!("id=\"{}\"", figure.name);
            assert_eq!(page.matches(&id).count(), 1, "{id}");
        }
        let story = at("id=\"story\"");
        let table = at("<h2>Table 1");
        let schemes = at("id=\"schemes\"");
        let next = at("<h2>Table 2");
        assert!(story < table && table < schemes && schemes < next);
        assert!(at("<h2>Accuracy by engine") < at("id=\"accuracy\""));
    }

    #[test]
    fn a_row_says_which_command_it_came_from() {
        let records = records(&[
            table("bert-tiny", &["fp"], false, 4.0),
            table("bert-base", &["fp"], false, 40.0),
        ]);
        let text = super::markdown(&records);
        assert!(!text.contains("docs/results"), "{text}");
        assert!(text.contains("| bert-tiny | 3, 768, 12 | `fp` | 4.00 |"));
        for (number, model) in [(1, "bert-tiny"), (2, "bert-base")] {
            let rows = format!("whole [{number}] |");
            assert!(text.contains(&rows), "{rows}: {text}");
            let line = format!("| [{number}] | `primer bench --model {model}` | abc |");
            assert!(text.contains(&line), "{line}: {text}");
        }
        let page = super::html(&records);
        assert!(page.contains("<dt>[2] <code>primer bench --model bert-base</code>"));
    }
}
