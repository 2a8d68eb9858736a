//! Plain files in a `tar` archive: what karve writes, and nothing else is read.
//!
//! An archive comes from somebody else. Only plain files with plain names are read: no links, no
//! devices, no directories, no extended headers, and no sizes beyond the limits. So this is a small
//! part of the format (ustar), and the same files always give the same bytes.

use std::io::{self, Read, Write};

/// The unit of the format.
const UNIT: usize = 512;
/// The longest path of a file in an archive, without the directory at the top.
pub(super) const PATH_BYTES_MAX: usize = 100;
/// The longest name of the directory at the top.
pub(super) const TOP_BYTES_MAX: usize = 155;
/// The deepest path.
const PARTS_MAX: usize = 4;
/// What a header says in the fields that karve has no use for: file mode, owner, group.
const MODE: &[u8] = b"0000644\0";
const NOBODY: &[u8] = b"0000000\0";
const MAGIC: &[u8] = b"ustar\x0000";

/// Writes an archive, all of it below one directory.
pub(super) struct ArchiveWriter<W> {
    out: W,
    top: String,
    time_s: u64,
}

impl<W: Write> ArchiveWriter<W> {
    /// An archive with a directory at the top; every file has the same time.
    pub(super) fn new(out: W, top: &str, time_s: u64) -> Self {
        Self { out, top: top.to_owned(), time_s }
    }

    /// Adds a file.
    pub(super) fn add(&mut self, path: &str, bytes: &[u8]) -> io::Result<()> {
        let header = header(&self.top, path, bytes.len() as u64, self.time_s)
            .ok_or_else(|| io::Error::other(format!("{path} does not fit the format")))?;
        self.out.write_all(&header)?;
        self.out.write_all(bytes)?;
        let rest = bytes.len() % UNIT;
        self.out.write_all(&[0; UNIT][..(UNIT - rest) % UNIT])
    }

    /// Ends the archive.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.out.write_all(&[0; 2 * UNIT])?;
        Ok(self.out)
    }
}

/// The header of a plain file; none if a field is too long.
fn header(top: &str, path: &str, bytes: u64, time_s: u64) -> Option<[u8; UNIT]> {
    let octal = |number: u64| {
        let text = format!("{number:011o}\0");
        (text.len() == 12).then_some(text)
    };
    if path.len() > PATH_BYTES_MAX || !is_plain_path(path) || !is_plain_top(top) {
        return None;
    }
    let mut header = [0; UNIT];
    let mut put = |at: usize, field: &[u8]| header[at..at + field.len()].copy_from_slice(field);
    put(0, path.as_bytes());
    put(100, MODE);
    put(108, NOBODY);
    put(116, NOBODY);
    put(124, octal(bytes)?.as_bytes());
    put(136, octal(time_s)?.as_bytes());
    put(148, b"        ");
    put(156, b"0");
    put(257, MAGIC);
    put(345, top.as_bytes());
    let sum = checksum(&header);
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Some(header)
}

/// The sum of a header whose own field counts as blanks.
fn checksum(header: &[u8; UNIT]) -> u32 {
    let of = |(at, byte): (usize, &u8)| match (148..156).contains(&at) {
        true => u32::from(b' '),
        false => u32::from(*byte),
    };
    header.iter().enumerate().map(of).sum()
}

/// Whether a path stays where it is unpacked: letters, digits, `.`, `_` and `-` in a few parts.
pub(super) fn is_plain_path(path: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let is_part =
        |part: &str| !part.is_empty() && !part.starts_with(['.', '-']) && part.bytes().all(plain);
    path.split('/').take(PARTS_MAX + 1).count() <= PARTS_MAX && path.split('/').all(is_part)
}

fn is_plain_top(top: &str) -> bool {
    top.len() <= TOP_BYTES_MAX && !top.contains('/') && is_plain_path(top)
}

/// A file of an archive; its contents follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ArchiveEntry {
    /// The directory at the top.
    pub(super) top: String,
    /// The path below it.
    pub(super) path: String,
    /// How long it is, as the header says.
    pub(super) bytes: u64,
}

/// The next file of an archive; none at its end. The reason is for a person.
pub(super) fn next_entry(input: &mut impl Read) -> Result<Option<ArchiveEntry>, String> {
    let mut header = [0; UNIT];
    read_exact(input, &mut header)?;
    if header == [0; UNIT] {
        read_exact(input, &mut header)?;
        let mut more = [0];
        let rest = input.read(&mut more).map_err(|error| error.to_string())?;
        return match header == [0; UNIT] && rest == 0 {
            true => Ok(None),
            false => Err("the archive goes on after its end".to_owned()),
        };
    }
    parse_header(&header).map(Some)
}

fn parse_header(header: &[u8; UNIT]) -> Result<ArchiveEntry, String> {
    let sum = octal(&header[148..154]).filter(|_| &header[154..156] == b"\0 ");
    if sum != Some(u64::from(checksum(header))) {
        return Err("a header of the archive is damaged".to_owned());
    }
    let path = string(&header[..PATH_BYTES_MAX]);
    let top = string(&header[345..345 + TOP_BYTES_MAX]);
    let (Some(path), Some(top)) = (path, top) else {
        return Err("a name in the archive is not text".to_owned());
    };
    if !is_plain_path(path) || !is_plain_top(top) {
        return Err(format!("the path {:?} is not one that karve writes", format!("{top}/{path}")));
    }
    if header[156] != b'0' || &header[257..265] != MAGIC {
        return Err(format!("{path} is not a plain file"));
    }
    let bytes = octal(&header[124..135]).filter(|_| header[135] == 0);
    let bytes = bytes.ok_or_else(|| format!("the size of {path} is not a number"))?;
    Ok(ArchiveEntry { top: top.to_owned(), path: path.to_owned(), bytes })
}

/// Text up to the first zero; what follows must be zeros.
fn string(field: &[u8]) -> Option<&str> {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    let is_clean = field[end..].iter().all(|byte| *byte == 0);
    std::str::from_utf8(&field[..end]).ok().filter(|_| is_clean)
}

fn octal(digits: &[u8]) -> Option<u64> {
    let is_octal = digits.iter().all(|digit| (b'0'..=b'7').contains(digit));
    let text = std::str::from_utf8(digits).ok().filter(|_| is_octal)?;
    u64::from_str_radix(text, 8).ok()
}

/// Copies the contents of a file, and reads to the next header.
pub(super) fn copy_entry(
    input: &mut impl Read,
    entry: &ArchiveEntry,
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> Result<(), String> {
    let mut left = entry.bytes;
    let mut buffer = vec![0; 1 << 16];
    while left > 0 {
        let n = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        read_exact(input, &mut buffer[..n])?;
        take(&buffer[..n]).map_err(|error| error.to_string())?;
        left -= n as u64;
    }
    let rest = usize::try_from(entry.bytes % UNIT as u64).unwrap_or(0);
    let mut padding = [0; UNIT];
    let padding = &mut padding[..(UNIT - rest) % UNIT];
    read_exact(input, padding)?;
    match padding.iter().all(|byte| *byte == 0) {
        true => Ok(()),
        false => Err(format!("there is something between {} and the next file", entry.path)),
    }
}

fn read_exact(input: &mut impl Read, buffer: &mut [u8]) -> Result<(), String> {
    input.read_exact(buffer).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => "the archive ends too early".to_owned(),
        _ => error.to_string(),
    })
}
