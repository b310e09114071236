//! The results in the documentation are those of the data beside them.

use primer_lab::report::{Records, figures, page, tables};
use std::path::Path;

#[test]
fn tables_and_pictures_are_made_from_the_data() {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/results");
    let records = Records::read(&[results.join("data")]).unwrap();
    let read = |name: &str| std::fs::read_to_string(results.join(name)).unwrap();
    let again = "run lab/scripts/measure-results report";
    assert!(
        read("tables.md") == page::markdown(&records),
        "tables.md is stale: {again}"
    );
    assert!(
        read("report.html") == page::html(&records),
        "report.html is stale: {again}"
    );
    for figure in figures::all(&records) {
        let name = format!("{}.svg", figure.name);
        assert!(read(&name) == figure.svg, "{name} is stale: {again}");
    }
}

#[test]
fn the_first_page_has_the_first_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let records = Records::read(&[root.join("docs/results/data")]).unwrap();
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let summary = &tables::all(&records)[0];
    assert!(summary.title.starts_with("One private answer"));
    for line in summary.markdown().lines().filter(|l| l.starts_with('|')) {
        assert!(readme.contains(line), "README.md lacks {line}");
    }
}
