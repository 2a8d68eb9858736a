//! Follows the log of a campaign that another process may be writing.

use super::{CampaignDir, LINE_BYTES_MAX, damaged, is_other_format, other_format, parse_line};
use karve_core::campaign::Record;
use karve_os::error::{Result, WithContext};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::PathBuf;

/// A place in a log, up to which it was read.
#[derive(Debug)]
pub struct LogTail {
    path: PathBuf,
    offset: u64,
    records: usize,
}

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
        Self { path: dir.log(), offset: 0, records: 0 }
    }

    /// How many bytes were read.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The next records, at most `records_max`; nothing is waited for. A last line that is not
    /// complete, or not readable, is left for the next call: it is being written, or will be cut
    /// off.
    pub fn poll(&mut self, records_max: usize) -> Result<LogNews> {
        let cannot = || format!("cannot read {}", self.path.display());
        let mut file = File::open(&self.path).context(cannot)?;
        let length = file.metadata().context(cannot)?.len();
        let mut news = LogNews { restarted: length < self.offset, ..LogNews::default() };
        if news.restarted {
            (self.offset, self.records) = (0, 0);
        }
        if length == self.offset {
            return Ok(news);
        }
        file.seek(SeekFrom::Start(self.offset)).context(cannot)?;
        let mut reader = BufReader::with_capacity(1 << 16, file);
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
        let write = |bytes: &[u8]| fs::write(dir.log(), bytes).unwrap();
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
    }
}
