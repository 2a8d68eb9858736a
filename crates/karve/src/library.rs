//! Knowledge on disk: entries as Markdown with front matter, reviewed like code.

pub mod markdown;
