//! Lists of words in a text file: each line is the name of a list and some of its words.

use std::collections::BTreeMap;

/// The lists of a file. A list may have several lines; a line that starts with `#` is a comment.
#[derive(Debug)]
pub struct WordLists(BTreeMap<&'static str, Vec<&'static str>>);

impl WordLists {
    /// Reads the lists.
    pub fn parse(text: &'static str) -> Self {
        let mut lists: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let mut words = line.split_whitespace();
            if let Some(name) = words.next() {
                lists.entry(name).or_default().extend(words);
            }
        }
        Self(lists)
    }

    /// The words of a list, which the file must have.
    pub fn list(&self, name: &str) -> &[&'static str] {
        debug_assert!(self.0.contains_key(name), "there is no list of words {name:?}");
        self.0.get(name).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_a_list_are_joined() {
        let lists = WordLists::parse("# a comment\na one two\n\nb  three\na four\n");
        assert_eq!(lists.list("a"), ["one", "two", "four"]);
        assert_eq!(lists.list("b"), ["three"]);
    }
}
