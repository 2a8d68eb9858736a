//! Search by words: BM25 over the text of entries.

use super::Entry;
use std::collections::HashMap;

/// How quickly further occurrences of a word stop mattering.
const K1: f64 = 1.2;
/// How much longer texts are penalized.
const B: f64 = 0.75;
/// A word of the title counts as much as this many in the text.
const TITLE_WEIGHT: u32 = 4;

/// An index of words.
#[derive(Clone, Debug, Default)]
pub(super) struct WordIndex {
    /// For each word, the entries that contain it and how often.
    postings: HashMap<String, Vec<(u32, u32)>>,
    lengths: Vec<f64>,
    mean_length: f64,
}

/// Lower-case words of a text, without common endings.
pub(super) fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    let plain = |c: char| !(c.is_alphanumeric() || c == '_' || c == '+');
    text.split(plain).filter(|word| word.len() > 1).map(stem)
}

fn stem(word: &str) -> String {
    let word = word.to_lowercase();
    for ending in ["ing", "ies", "es", "ed", "s"] {
        if let Some(stem) = word.strip_suffix(ending)
            && stem.len() > 3
        {
            return stem.to_owned();
        }
    }
    word
}

impl WordIndex {
    pub(super) fn of<'a>(entries: impl Iterator<Item = &'a Entry>) -> Self {
        let mut index = Self::default();
        for entry in entries {
            index.add(entry);
        }
        let total: f64 = index.lengths.iter().sum();
        index.mean_length = (total / index.lengths.len().max(1) as f64).max(1.0);
        index
    }

    fn add(&mut self, entry: &Entry) {
        let mut counts: HashMap<String, u32> = HashMap::new();
        let mut count = |text: &str, weight: u32| {
            for word in words(text) {
                *counts.entry(word).or_default() += weight;
            }
        };
        count(&entry.id, TITLE_WEIGHT);
        count(&entry.title, TITLE_WEIGHT);
        for text in entry.aliases.iter().chain(&entry.triggers).chain(&entry.counter_signals) {
            count(text, 1);
        }
        count(&entry.scope.describe(), 1);
        for section in &entry.sections {
            count(&section.heading, 1);
            count(&section.text, 1);
        }
        let number = u32::try_from(self.lengths.len()).unwrap_or(u32::MAX);
        self.lengths.push(counts.values().map(|n| f64::from(*n)).sum());
        for (word, n) in counts {
            self.postings.entry(word).or_default().push((number, n));
        }
    }

    /// The entries that contain words of a text, with their scores and the words.
    pub(super) fn search(&self, text: &str) -> HashMap<usize, (f64, Vec<String>)> {
        let mut found: HashMap<usize, (f64, Vec<String>)> = HashMap::new();
        let mut asked: Vec<String> = words(text).collect();
        asked.sort();
        asked.dedup();
        let n = self.lengths.len() as f64;
        for word in asked {
            let Some(postings) = self.postings.get(&word) else {
                continue;
            };
            let holders = postings.len() as f64;
            let rarity = (1.0 + (n - holders + 0.5) / (holders + 0.5)).ln();
            for (number, times) in postings {
                let number = *number as usize;
                let times = f64::from(*times);
                let length = self.lengths[number] / self.mean_length;
                let score = rarity * times * (K1 + 1.0) / (times + K1 * (1.0 - B + B * length));
                let of = found.entry(number).or_default();
                of.0 += score;
                of.1.push(word.clone());
            }
        }
        found
    }
}
