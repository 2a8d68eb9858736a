//! A Markdown page, block by block, with one empty line between two blocks.

/// A Markdown page under construction. The caller escapes the text.
pub(super) struct MarkdownPage {
    blocks: Vec<String>,
}

impl MarkdownPage {
    /// An empty page.
    pub(super) fn new() -> Self {
        Self { blocks: Vec::new() }
    }

    /// A page with a title.
    pub(super) fn titled(title: &str) -> Self {
        let mut page = Self::new();
        page.block(format!("# {title}"));
        page
    }

    /// A block, unchanged.
    pub(super) fn block(&mut self, text: impl Into<String>) {
        self.blocks.push(text.into());
    }

    /// `## text`.
    pub(super) fn section(&mut self, text: &str) {
        self.block(format!("## {text}"));
    }

    /// `### text`.
    pub(super) fn subsection(&mut self, text: &str) {
        self.block(format!("### {text}"));
    }

    /// A list with bullets; nothing if it is empty.
    pub(super) fn list(&mut self, items: &[String]) {
        if !items.is_empty() {
            let lines: Vec<String> = items.iter().map(|item| format!("- {item}")).collect();
            self.block(lines.join("\n"));
        }
    }

    /// A table with the header's columns.
    pub(super) fn table(&mut self, columns: &[&str], rows: &[Vec<String>]) {
        self.block(table(columns, rows));
    }

    /// The page.
    pub(super) fn finish(self) -> String {
        let mut text = self.blocks.join("\n\n");
        text.push('\n');
        text
    }
}

/// A Markdown table.
pub(super) fn table(columns: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: Vec<&str>| format!("| {} |", cells.join(" | "));
    let mut lines = vec![line(columns.to_vec()), line(columns.iter().map(|_| "---").collect())];
    lines.extend(rows.iter().map(|row| line(row.iter().map(String::as_str).collect())));
    lines.join("\n")
}
