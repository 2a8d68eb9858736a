//! The values of keys, kept out of everything that is stored.
//!
//! A key is recognized by the name of its variable. An agent's output, its errors and the brief go
//! through here before they become an artifact or an event. A change that contains a key never
//! becomes a candidate, whoever made it.

use regex::bytes::{Regex, RegexBuilder};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

/// Parts of the names of variables that hold keys.
const NAMES: [&str; 5] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"];

/// A shorter value is not a key; removing it everywhere would garble the text.
const KEY_BYTES_MIN: usize = 8;

/// Memory limit for the pattern of all keys.
const PATTERN_BYTES_MAX: usize = 256 << 20;

/// The replacement for a key.
const IN_PLACE: &str = "[key]";

/// The values of keys.
#[derive(Clone, Default)]
pub struct Secrets {
    /// A pattern that matches any of them; none if there are no keys.
    any: Option<Regex>,
    /// The length of the longest, in bytes.
    longest: usize,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The pattern contains them.
        f.write_str("[keys]")
    }
}

impl Secrets {
    /// The keys among karve's environment variables and some more.
    pub(super) fn of<'a>(more: impl IntoIterator<Item = (&'a String, &'a String)>) -> Self {
        let own = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        let more = more.into_iter().map(|(name, value)| (name.clone(), value.clone()));
        Self::among(own.chain(more))
    }

    fn among(variables: impl Iterator<Item = (String, String)>) -> Self {
        let mut values = BTreeSet::new();
        for (_, value) in variables.filter(|(name, value)| is_key(name, value)) {
            // JSON escapes some characters.
            let quoted = serde_json::to_string(&value).unwrap_or_default();
            let inner = quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
            values.extend(inner.map(str::to_owned));
            values.extend(disguises(value.as_bytes()));
            values.insert(value);
        }
        // The longest first: one may be a prefix of another.
        let mut values: Vec<String> = values.into_iter().collect();
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        let patterns: Vec<String> = values.iter().map(|value| regex::escape(value)).collect();
        // An environment is far smaller than this limit.
        let any = || {
            let mut builder = RegexBuilder::new(&patterns.join("|"));
            builder.size_limit(PATTERN_BYTES_MAX).build()
        };
        let any = (!patterns.is_empty()).then(|| any().ok());
        Self { any: any.flatten(), longest: values.first().map_or(0, String::len) }
    }

    /// A text without them.
    pub(super) fn redact(&self, text: &str) -> String {
        match &self.any {
            None => text.to_owned(),
            Some(any) => {
                let redacted = any.replace_all(text.as_bytes(), IN_PLACE.as_bytes());
                String::from_utf8_lossy(&redacted).into_owned()
            }
        }
    }

    /// Whether one of them is in some bytes.
    pub fn are_in(&self, bytes: &[u8]) -> bool {
        self.any.as_ref().is_some_and(|any| any.is_match(bytes))
    }

    /// Removes them from bytes that arrive in pieces.
    pub(super) fn redacting(&self) -> Redactor {
        Redactor { secrets: self.clone(), held: Vec::new(), found: false }
    }

    /// Whether a text contains the replacement for a key.
    pub(super) fn has_placeholder(text: &str) -> bool {
        text.contains(IN_PLACE)
    }
}

/// Whether a variable has the name of one that holds a key.
pub(super) fn is_key_name(name: &str) -> bool {
    let name = name.to_uppercase();
    NAMES.iter().any(|part| name.contains(part))
}

fn is_key(name: &str, value: &str) -> bool {
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
    // The location of a key is not a key.
    let is_path = value.starts_with('/');
    is_key_name(name) && value.len() >= KEY_BYTES_MIN && !is_number && !is_path
}

/// A key in hexadecimal and in base64, at any offset in the encoded data.
fn disguises(value: &[u8]) -> Vec<String> {
    let hex = |digits: &dyn Fn(&u8) -> String| value.iter().map(digits).collect();
    let mut all = vec![hex(&|byte| format!("{byte:02x}")), hex(&|byte| format!("{byte:02X}"))];
    for before in 0..3 {
        for last in ["+/", "-_"] {
            all.push(in_base64(value, before, last));
        }
    }
    all
}

/// The base64 characters that a value alone determines, after some unknown bytes.
fn in_base64(value: &[u8], before: usize, last: &str) -> String {
    let digits: Vec<char> =
        ('A'..='Z').chain('a'..='z').chain('0'..='9').chain(last.chars()).collect();
    let bits = |at: usize| usize::from(value[at / 8 - before] >> (7 - at % 8) & 1);
    let known = (before * 8).div_ceil(6)..(before + value.len()) * 8 / 6;
    known
        .map(|digit| (0..6).fold(0, |sum, bit| sum * 2 + bits(digit * 6 + bit)))
        .map(|at| digits[at])
        .collect()
}

/// Removes keys from a stream; a key may span two pieces.
#[derive(Debug)]
pub(super) struct Redactor {
    secrets: Secrets,
    /// The end of the input so far, which may be the beginning of a key.
    held: Vec<u8>,
    /// Whether one was removed.
    pub(super) found: bool,
}

impl Redactor {
    /// Takes a piece and returns what is certain by now.
    pub(super) fn push<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let Some(any) = &self.secrets.any else {
            return Cow::Borrowed(bytes);
        };
        self.held.extend_from_slice(bytes);
        let mut out = Vec::with_capacity(self.held.len());
        let mut done = 0;
        for found in any.find_iter(&self.held) {
            self.found = true;
            out.extend_from_slice(&self.held[done..found.start()]);
            out.extend_from_slice(IN_PLACE.as_bytes());
            done = found.end();
        }
        let certain = self.held.len().saturating_sub(self.secrets.longest - 1);
        if certain > done {
            out.extend_from_slice(&self.held[done..certain]);
            done = certain;
        }
        self.held.drain(..done);
        Cow::Owned(out)
    }

    /// What is left at the end.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(variables: &[(&str, &str)]) -> Secrets {
        let owned = variables.iter();
        Secrets::among(owned.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    }

    #[test]
    fn keys_are_told_by_the_name_of_their_variable() {
        let found = secrets(&[
            ("SOME_API_KEY", "sk-0123456789"),
            ("HOME", "home-sweet-home"),
            ("MAX_OUTPUT_TOKENS", "123456789"),
            ("KEY_FILE", "/somewhere/key"),
            ("SHORT_KEY", "abc"),
        ]);
        assert_eq!(
            found.redact("a sk-0123456789 b home-sweet-home 123456789 /somewhere/key abc"),
            "a [key] b home-sweet-home 123456789 /somewhere/key abc"
        );
        assert!(found.are_in(b"xsk-0123456789x") && !found.are_in(b"sk-012345678"));
    }

    #[test]
    fn a_key_is_found_in_disguise() {
        let found = secrets(&[("A_KEY", "sk-~~?0123456")]);
        // "key=sk-~~?0123456;", "=sk-~~?0123456", "y=sk-~~?0123456" and so on, by another program.
        for text in [
            "a2V5PXNrLX5+PzAxMjM0NTY7",
            "PXNrLX5+PzAxMjM0NTY=",
            "eT1zay1+fj8wMTIzNDU2",
            "c2stfn4_MDEyMzQ1Ng==",
            "736b2d7e7e3f30313233343536",
            "736B2D7E7E3F30313233343536",
        ] {
            assert!(found.are_in(text.as_bytes()), "{text}");
        }
        assert_eq!(found.redact("x c2stfn4/MDEyMzQ1Ng== y"), "x [key]g== y");
        assert!(!found.are_in(b"c2stfn4/MDEyMzQ1"), "not the whole key");
    }

    #[test]
    fn a_key_across_pieces_is_found_wherever_it_is_cut() {
        let found = secrets(&[("A_KEY", "abcabcabd"), ("B_TOKEN", "quo\"ted!")]);
        let text = b"abcabcabcabd abcabcab {\"k\": \"quo\\\"ted!\"} abcabcabd";
        let want = "abc[key] abcabcab {\"k\": \"[key]\"} [key]";
        for size in 1..text.len() {
            let mut stream = found.redacting();
            let mut out = Vec::new();
            for piece in text.chunks(size) {
                out.extend_from_slice(&stream.push(piece));
            }
            out.extend(stream.rest());
            assert_eq!(String::from_utf8(out).unwrap(), want, "pieces of {size}");
        }
    }
}
