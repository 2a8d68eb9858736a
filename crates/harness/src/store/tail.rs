//! Follows the log of a campaign that another process may be writing.

use super::{CampaignDir, LINE_BYTES_MAX, damaged, is_other_format, other_format, parse_line};
use karve_core::campaign::Record;
use karve_os::error::{Result, WithContext};
use karve_os::files;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::time::SystemTime;

/// A place in a log, up to which it was read.
#[derive(Debug)]
pub struct LogTail {
    path: PathBuf,
    offset: u64,
    records: usize,
    /// The first and the last bytes that were read: another log has others there.
    first: Vec<u8>,
    last: Vec<u8>,
    /// When the log was written that was read to its end.
    modified: Option<SystemTime>,
}

/// Bytes by which a log is recognized.
const KNOWN_BYTES: usize = 256;

/// What was added to a log.
#[derive(Debug, Default)]
pub struct LogNews {
    /// The new records, in order.
    pub records: Vec<Record>,
    /// Whether there are more of them already.
    pub more: bool,
    /// Whether the log was replaced: the records begin with its first one again.
    pub restarted: bool,
}

impl LogTail {
    /// Follows the log of a campaign from its first record.
    pub fn new(dir: &CampaignDir) -> Self {
        let (first, last) = (Vec::new(), Vec::new());
        Self { path: dir.log(), offset: 0, records: 0, first, last, modified: None }
    }

    /// How many bytes were read.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether a file begins like the log, and has what was read last at the same place.
    fn is_known(&self, file: &mut File) -> bool {
        let mut has = |at: u64, bytes: &[u8]| {
            let mut found = vec![0; bytes.len()];
            let read = file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(&mut found));
            read.is_ok() && found == bytes
        };
        has(0, &self.first) && has(self.offset - self.last.len() as u64, &self.last)
    }

    /// The next records, at most `records_max`; nothing is waited for. A last line that is not
    /// complete, or not readable, is left for the next call: it is being written, or will be cut
    /// off.
    pub fn poll(&mut self, records_max: usize) -> Result<LogNews> {
        let cannot = || format!("cannot read {}", self.path.display());
        let mut file = files::open(&self.path).context(cannot)?;
        let meta = file.metadata().context(cannot)?;
        let (length, modified) = (meta.len(), meta.modified().ok());
        // Nothing was added, and yet it was written.
        let is_edited = length > 0 && length == self.offset && self.modified != modified;
        let is_same = length >= self.offset && !is_edited && self.is_known(&mut file);
        self.modified = modified;
        let mut news = LogNews { restarted: !is_same, ..LogNews::default() };
        if news.restarted {
            (self.offset, self.records) = (0, 0);
            (self.first, self.last) = (Vec::new(), Vec::new());
        }
        if length == self.offset {
            return Ok(news);
        }
        file.seek(SeekFrom::Start(self.offset)).context(cannot)?;
        let mut reader = BufReader::with_capacity(1 << 16, file.take(length - self.offset));
        let mut line = Vec::new();
        loop {
            line.clear();
            let mut bounded = (&mut reader).take(LINE_BYTES_MAX);
            let n = bounded.read_until(b'\n', &mut line).context(cannot)?;
            if n == 0 {
                return Ok(news);
            }
            match parse_line(&line) {
                Ok(record) => news.records.push(record),
                Err(_) if is_other_format(&line) => return Err(other_format(&self.path)),
                Err(_) if reader.fill_buf().is_ok_and(<[u8]>::is_empty) => return Ok(news),
                Err(error) => return Err(damaged(&self.path, self.records + 1, &error)),
            }
            if self.offset == 0 {
                self.first = line[..n.min(KNOWN_BYTES)].to_vec();
            }
            self.last = line[n.saturating_sub(KNOWN_BYTES)..].to_vec();
            self.offset += n as u64;
            self.records += 1;
            if news.records.len() >= records_max {
                news.more = true;
                return Ok(news);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_log_is_followed_while_it_is_written_torn_and_replaced() {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/logs/v3-small.jsonl");
        let log = fs::read(source).unwrap();
        let root = tempfile::tempdir().unwrap();
        let dir = CampaignDir::new(root.path(), "c");
        fs::create_dir_all(dir.path()).unwrap();
        let mut tail = LogTail::new(&dir);
        assert!(tail.poll(9).unwrap_err().message.contains("cannot read"));
        let lines: Vec<&[u8]> = log.split_inclusive(|byte| *byte == b'\n').collect();
        // The clock of a file system may be coarse.
        let times = std::cell::Cell::new(SystemTime::UNIX_EPOCH);
        let write = |bytes: &[u8]| {
            fs::write(dir.log(), bytes).unwrap();
            times.set(times.get() + std::time::Duration::from_secs(1));
            let file = fs::OpenOptions::new().write(true).open(dir.log()).unwrap();
            file.set_modified(times.get()).unwrap();
        };
        let polled = |tail: &mut LogTail, max: usize| {
            let news = tail.poll(max).unwrap();
            let seqs: Vec<u64> = news.records.iter().map(|record| record.seq).collect();
            (seqs, news.more, news.restarted)
        };
        write(&lines[..2].concat());
        assert_eq!(polled(&mut tail, 9), (vec![0, 1], false, false));
        assert_eq!(polled(&mut tail, 9), (vec![], false, false));
        // Half a line, then all of it.
        write(&[lines[..2].concat(), lines[2][..9].to_vec()].concat());
        assert_eq!(polled(&mut tail, 9), (vec![], false, false));
        write(&lines[..3].concat());
        assert_eq!(polled(&mut tail, 9), (vec![2], false, false));
        // Garbage at the end is cut off by the next writer; in the middle it is damage.
        write(&[&lines[..3].concat()[..], b"garbage\n"].concat());
        assert_eq!(polled(&mut tail, 9), (vec![], false, false));
        write(&[&lines[..3].concat()[..], b"garbage\n", lines[3]].concat());
        assert!(tail.poll(9).unwrap_err().message.contains("damaged at line 4"));
        write(&lines[..6].concat());
        assert_eq!(polled(&mut tail, 2), (vec![3, 4], true, false));
        assert_eq!(polled(&mut tail, 2), (vec![5], false, false));
        // Another log in its place.
        write(lines[0]);
        assert_eq!(polled(&mut tail, 9), (vec![0], false, true));
        // Another one that is as long, or longer.
        let other = String::from_utf8(lines[..4].concat()).unwrap();
        let at = other.find("\"at_ms\":").unwrap() + 8;
        let other = format!("{}2{}", &other[..at], &other[at + 1..]);
        assert_eq!(polled(&mut tail, 9), (vec![], false, false));
        write(other.as_bytes());
        assert_eq!(polled(&mut tail, 9), (vec![0, 1, 2, 3], false, true));
        write(&lines[..4].concat());
        assert_eq!(polled(&mut tail, 9), (vec![0, 1, 2, 3], false, true));
        // A change in its middle.
        let middle = String::from_utf8(lines[..4].concat()).unwrap();
        write(middle.replace("\"seq\":1,", "\"seq\":7,").as_bytes());
        assert_eq!(polled(&mut tail, 9), (vec![0, 7, 2, 3], false, true));
        write(middle.as_bytes());
        assert_eq!(polled(&mut tail, 9), (vec![0, 1, 2, 3], false, true));
        write(&lines[..5].concat());
        assert_eq!(polled(&mut tail, 9), (vec![4], false, false));
    }
}
