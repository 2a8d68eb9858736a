//! Inputs made of valid ones: mostly small changes, so that deep paths of a reader are reached.
//!
//! Input number N of a reader is the same in every run, so a failure is found again by its number.

/// An input is rarely longer than this, in bytes.
const USUAL_BYTES_MAX: usize = 64 << 10;
/// An input is never longer than this.
const BYTES_MAX: usize = 256 << 10;
/// One in this many inputs may be as long as that, and repeats or nests a lot.
const LARGE_EVERY: u64 = 256;

/// What many readers treat in a special way.
const TOKENS: [&str; 72] = [
    "",
    "\n",
    "\r\n",
    "\n\n",
    "\t",
    " ",
    "\0",
    "\u{feff}",
    "\u{2028}",
    "é",
    "\u{1f600}",
    "\u{301}",
    "\u{1b}[31m",
    "\"",
    "'",
    "\\",
    "\\u0000",
    "\\ud800",
    "\"\"",
    "{",
    "}",
    "[",
    "]",
    "{}",
    "[]",
    "(",
    ")",
    ",",
    ":",
    ";",
    "=",
    "|",
    "|---|",
    "- ",
    "* ",
    "1. ",
    "# ",
    "## ",
    "### ",
    "```",
    "```json\n",
    "---\n",
    "&a ",
    "*a",
    "!!binary ",
    "<<: ",
    "data: ",
    "event: ",
    "null",
    "true",
    "false",
    "NaN",
    "nan",
    "inf",
    "-inf",
    "Infinity",
    "0",
    "-0",
    "-1",
    "%",
    "1e999",
    "#",
    "//",
    "/*",
    "*/",
    "${",
    "{{",
    "}}",
    "..",
    "../",
    "*",
    "**",
];

/// Numbers at the ends of their types.
const NUMBERS: [&str; 20] = [
    "0",
    "-0.0",
    "-1",
    "1e-320",
    "1e308",
    "1e309",
    "-1e308",
    "127",
    "256",
    "65536",
    "2147483648",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "340282366920938463463374607431768211456",
    "0.1",
];

/// Openings and closings that can be nested.
const NESTS: [(&str, &str); 12] = [
    ("[", "]"),
    ("{\"a\":", "}"),
    ("(", ")"),
    ("{", "}"),
    ("-", ""),
    ("!", ""),
    ("- ", ""),
    ("[[", ""),
    ("> ", ""),
    ("a.", "b"),
    ("if(a){", "}"),
    ("\"", ""),
];

/// A small generator of random numbers (splitmix64).
#[derive(Debug)]
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let a = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let b = (a ^ (a >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        b ^ (b >> 31)
    }

    /// Below `end`; 0 if that is 0.
    fn below(&mut self, end: usize) -> usize {
        (self.roll() % (end.max(1) as u64)) as usize
    }

    fn one_of<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// A range within `len`, mostly short.
    fn range(&mut self, len: usize) -> std::ops::Range<usize> {
        let start = self.below(len + 1);
        let long = if self.below(8) == 0 { len } else { 24 };
        start..(start + self.below(long) + 1).min(len)
    }
}

/// Input number `index` of a reader.
pub fn input(seeds: &[Vec<u8>], reader: &str, index: u64) -> Vec<u8> {
    let name = reader.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut dice = Dice(name ^ index.wrapping_mul(0x2545_f491_4f6c_dd1d));
    let mut bytes = dice.one_of(seeds).clone();
    // The valid inputs come first.
    if let Some(seed) = seeds.get(index as usize) {
        return seed.clone();
    }
    let large = index % LARGE_EVERY == LARGE_EVERY - 1;
    let most = if large { BYTES_MAX } else { USUAL_BYTES_MAX };
    let changes = 1 + dice.below(3) * dice.below(3);
    for _ in 0..changes {
        change(&mut bytes, seeds, &mut dice);
    }
    if large {
        grow(&mut bytes, &mut dice, most);
    }
    bytes.truncate(most);
    bytes
}

/// One change.
fn change(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], dice: &mut Dice) {
    match dice.below(16) {
        0 | 1 => {
            let at = dice.below(bytes.len());
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << dice.below(8);
            }
        }
        2 => {
            let at = dice.below(bytes.len());
            if let Some(byte) = bytes.get_mut(at) {
                *byte = dice.roll() as u8;
            }
        }
        3 => drop(bytes.drain(dice.range(bytes.len()))),
        4 => {
            let part = bytes[dice.range(bytes.len())].to_vec();
            insert(bytes, &part, dice);
        }
        5 if dice.below(4) == 0 => bytes.truncate(dice.below(bytes.len())),
        6 if dice.below(2) == 0 => {
            let other = dice.one_of(seeds);
            bytes.truncate(dice.below(bytes.len() + 1));
            bytes.extend_from_slice(&other[dice.below(other.len() + 1)..]);
        }
        7 => insert(bytes, dice.one_of(&TOKENS).as_bytes(), dice),
        8 => replace(bytes, dice.one_of(&TOKENS).as_bytes(), dice),
        9 | 10 => {
            let number = *dice.one_of(&NUMBERS);
            let digit = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+');
            replace_run(bytes, u8::is_ascii_digit, digit, number.as_bytes(), dice);
        }
        11 | 12 => {
            // A word of a seed in the place of another one.
            let other = dice.one_of(seeds);
            let word = other[run(other, dice.below(other.len()), is_word)].to_vec();
            replace_run(bytes, is_word, is_word, &word, dice);
        }
        13 | 14 => lines(bytes, dice),
        _ => {
            let (open, close) = dice.one_of(&NESTS);
            let most = 1 << dice.below(8);
            let deep = 1 + dice.below(most);
            let nested = open.repeat(deep) + &close.repeat(deep);
            insert(bytes, nested.as_bytes(), dice);
        }
    }
}

/// Repeats a part, or nests, up to the largest size.
fn grow(bytes: &mut Vec<u8>, dice: &mut Dice, most: usize) {
    let (open, close) = *dice.one_of(&NESTS);
    match dice.below(4) {
        0 => {
            let deep = most / (open.len() + close.len()) / 2;
            let nested = open.repeat(deep) + &close.repeat(deep);
            insert(bytes, nested.as_bytes(), dice);
        }
        1 => {
            let token = *dice.one_of(&TOKENS);
            let many = token.repeat(most / 2 / token.len().max(1));
            insert(bytes, many.as_bytes(), dice);
        }
        _ => {
            let part = match dice.below(2) {
                0 => bytes[dice.range(bytes.len())].to_vec(),
                _ => bytes[run(bytes, dice.below(bytes.len()), |byte| *byte != b'\n')].to_vec(),
            };
            let end: &[u8] = if dice.below(2) == 0 { b"\n" } else { b"" };
            let part = [&part, end].concat();
            let room = most.saturating_sub(bytes.len());
            let many = part.repeat(room / part.len().max(1));
            insert(bytes, &many, dice);
        }
    }
}

fn is_word(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || *byte == b'_'
}

/// The run of bytes of a kind around a position, or after it.
fn run(bytes: &[u8], at: usize, is: impl Fn(&u8) -> bool) -> std::ops::Range<usize> {
    let from = bytes.iter().skip(at).position(&is).map_or(bytes.len(), |more| at + more);
    let start = bytes[..from].iter().rposition(|byte| !is(byte)).map_or(0, |before| before + 1);
    let end = bytes[from..].iter().position(|byte| !is(byte)).map_or(bytes.len(), |n| from + n);
    start..end
}

fn replace_run(
    bytes: &mut Vec<u8>,
    begins: impl Fn(&u8) -> bool,
    is: impl Fn(&u8) -> bool,
    with: &[u8],
    dice: &mut Dice,
) {
    let at = dice.below(bytes.len());
    let from = bytes.iter().skip(at).position(begins).map_or(bytes.len(), |more| at + more);
    let run = run(bytes, from, is);
    bytes.splice(run, with.iter().copied());
}

fn insert(bytes: &mut Vec<u8>, what: &[u8], dice: &mut Dice) {
    let at = dice.below(bytes.len() + 1);
    bytes.splice(at..at, what.iter().copied());
}

fn replace(bytes: &mut Vec<u8>, what: &[u8], dice: &mut Dice) {
    let range = dice.range(bytes.len());
    bytes.splice(range, what.iter().copied());
}

/// Drops, repeats or swaps lines.
fn lines(bytes: &mut Vec<u8>, dice: &mut Dice) {
    let not_end = |byte: &u8| *byte != b'\n';
    let line = run(bytes, dice.below(bytes.len()), not_end);
    let line = line.start..(line.end + 1).min(bytes.len());
    let text = bytes[line.clone()].to_vec();
    match dice.below(3) {
        0 => drop(bytes.drain(line)),
        1 => drop(bytes.splice(line.start..line.start, text)),
        _ => {
            bytes.drain(line);
            let other = run(bytes, dice.below(bytes.len()), not_end).start;
            bytes.splice(other..other, text);
        }
    }
}
