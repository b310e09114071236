//! A table of text, as a page shows it and as Markdown.

use crate::plot::escape;

/// Lines of figures under a title.
#[derive(Debug, Clone, Default)]
pub struct Grid {
    /// What is shown.
    pub title: String,
    /// What has to be said of it.
    pub note: String,
    /// Names of the columns.
    pub head: Vec<String>,
    /// The lines; each has a cell for every column.
    pub rows: Vec<Vec<String>>,
    /// Names of the pictures that show the same, if there are such pictures.
    pub pictures: Vec<String>,
}

impl Grid {
    /// Makes an empty table.
    pub fn new(title: &str, note: &str, head: &[&str]) -> Self {
        Self {
            title: title.into(),
            note: note.into(),
            head: head.iter().map(|h| (*h).to_owned()).collect(),
            rows: Vec::new(),
            pictures: Vec::new(),
        }
    }

    /// Returns the same with the pictures that belong to it.
    #[must_use]
    pub fn beside(mut self, pictures: &[&str], suffix: &str) -> Self {
        self.pictures = pictures.iter().map(|p| format!("{p}{suffix}")).collect();
        self
    }

    /// Adds a line.
    ///
    /// # Panics
    /// If it has another number of cells than the head.
    pub fn push(&mut self, row: Vec<String>) {
        assert_eq!(row.len(), self.head.len(), "a cell for every column");
        self.rows.push(row);
    }

    /// Writes it for a page.
    pub fn html(&self) -> String {
        let cells = |row: &[String], tag: &str| -> String {
            let cell = |c: &String| format!("<{tag}>{}</{tag}>", escape(c));
            row.iter().map(cell).collect()
        };
        let mut out = format!(
            "<div class=\"scroll\"><table><thead><tr>{}</tr></thead><tbody>\n",
            cells(&self.head, "th")
        );
        for row in &self.rows {
            out += &format!("<tr>{}</tr>\n", cells(row, "td"));
        }
        out += "</tbody></table></div>\n";
        if !self.note.is_empty() {
            out += &format!("<p class=\"note\">{}</p>\n", escape(&self.note));
        }
        out
    }

    /// Writes it for a document.
    pub fn markdown(&self) -> String {
        let line = |row: &[String]| {
            let cells: Vec<String> = row.iter().map(|c| c.replace('|', "\\|")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let mut out = format!("## {}\n\n", self.title);
        out += &line(&self.head);
        out += &format!("|{}\n", "---|".repeat(self.head.len()));
        for row in &self.rows {
            out += &line(row);
        }
        if !self.note.is_empty() {
            out += &format!("\n{}\n", self.note);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_escape() {
        let mut grid = Grid::new("T", "a & b", &["x", "y"]);
        grid.push(vec!["1|2".into(), "<3".into()]);
        assert!(grid.html().contains("<td>&lt;3</td>"));
        assert!(grid.html().contains("a &amp; b"));
        assert_eq!(
            grid.markdown(),
            "## T\n\n| x | y |\n|---|---|\n| 1\\|2 | <3 |\n\na & b\n"
        );
    }
}
