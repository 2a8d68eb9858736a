//! What a command printed, in bounded memory: the first half and the last half of the bound.

use std::borrow::Cow;
use std::cell::Cell;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::rc::Rc;

use super::sys;

/// How much is read at once: the default capacity of a pipe.
pub(super) const CHUNK_BYTES: usize = 64 << 10;

/// How much is read after the command and its descendants have ended. A pipe holds less; more can
/// only come from an unrelated process that got hold of the pipe.
const DRAIN_BYTES_MAX: u64 = 16 << 20;

/// Receives a command's output as it arrives, and returns whether it wants more. If it does not,
/// the command is killed.
pub type OutputTap<'a> = &'a mut (dyn FnMut(&[u8]) -> bool + 'a);

/// What a command printed on one stream, up to the requested number of bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapturedOutput {
    /// Everything printed; if that was too much, its first and its last part, of equal size.
    pub bytes: Vec<u8>,
    /// How much was printed.
    pub total_bytes: u64,
}

impl CapturedOutput {
    /// Whether something in the middle was left out.
    pub fn truncated(&self) -> bool {
        self.total_bytes > self.bytes.len() as u64
    }

    /// As text, with a line in the middle that states how much was left out, if anything was.
    /// Bytes that are not UTF-8 become replacement characters.
    pub fn text(&self) -> Cow<'_, str> {
        if !self.truncated() {
            return String::from_utf8_lossy(&self.bytes);
        }
        let (head, tail) = self.bytes.split_at(self.bytes.len() / 2);
        let left_out = self.total_bytes - self.bytes.len() as u64;
        Cow::Owned(format!(
            "{}\n[{left_out} bytes left out]\n{}",
            String::from_utf8_lossy(head),
            String::from_utf8_lossy(tail)
        ))
    }
}

/// Reads a stream and keeps its head and its tail.
#[derive(Debug)]
pub(super) struct Capture {
    head: Vec<u8>,
    head_max: usize,
    /// A ring buffer once it is full: `next` is the oldest byte and the next to be overwritten.
    tail: Vec<u8>,
    tail_max: usize,
    next: usize,
    total_bytes: u64,
}

impl Capture {
    /// Keeps at most this many bytes.
    pub(super) fn new(capture_bytes: usize) -> Self {
        let head_max = capture_bytes / 2;
        Self {
            head: Vec::new(),
            head_max,
            tail: Vec::new(),
            tail_max: capture_bytes - head_max,
            next: 0,
            total_bytes: 0,
        }
    }

    /// Adds the next bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total_bytes += bytes.len() as u64;
        let room = self.head_max - self.head.len();
        let (first, mut rest) = bytes.split_at(bytes.len().min(room));
        self.head.extend_from_slice(first);
        // Only the end of a chunk larger than the ring buffer is kept.
        rest = &rest[rest.len().saturating_sub(self.tail_max)..];
        let room = self.tail_max - self.tail.len();
        let (first, mut rest) = rest.split_at(rest.len().min(room));
        self.tail.extend_from_slice(first);
        while !rest.is_empty() {
            let n = rest.len().min(self.tail_max - self.next);
            self.tail[self.next..self.next + n].copy_from_slice(&rest[..n]);
            self.next = (self.next + n) % self.tail_max;
            rest = &rest[n..];
        }
    }

    /// Ends the stream.
    pub(super) fn finish(mut self) -> CapturedOutput {
        self.tail.rotate_left(self.next);
        let mut bytes = self.head;
        bytes.reserve_exact(self.tail.len());
        bytes.append(&mut self.tail);
        CapturedOutput { bytes, total_bytes: self.total_bytes }
    }
}

/// Most bytes that a copy of the output has.
const COPY_BYTES_MAX: u64 = 1 << 20;

/// A file that both streams are copied to as they arrive.
#[derive(Clone, Debug)]
pub(super) struct OutputCopy(Rc<(File, Cell<u64>)>);

impl OutputCopy {
    /// Starts the file afresh.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let mut options = File::options();
        options.write(true).create(true).truncate(true).custom_flags(libc::O_NOFOLLOW);
        Ok(Self(Rc::new((options.open(path)?, Cell::new(0)))))
    }

    fn push(&self, bytes: &[u8]) {
        let (file, written) = &*self.0;
        let sum = written.get() + bytes.len() as u64;
        if sum <= COPY_BYTES_MAX {
            // Whoever watches can do without it.
            let _ = (&*file).write_all(bytes);
            written.set(sum);
        }
    }
}

/// The read end of a pipe, and what was read from it.
pub(super) struct CapturedStream<'a> {
    /// Absent once the other end is closed.
    pipe: Option<PipeReader>,
    capture: Capture,
    tap: Option<OutputTap<'a>>,
    copy: Option<OutputCopy>,
    /// Whether the tap wants no more.
    enough: bool,
}

impl<'a> CapturedStream<'a> {
    /// A stream, and the end for the command to write to.
    pub(super) fn new(capture_bytes: usize) -> io::Result<(Self, PipeWriter)> {
        let (reader, writer) = io::pipe()?;
        // Only the read end: the command must find its own end as usual.
        sys::set_nonblocking(reader.as_fd())?;
        Ok((
            Self {
                pipe: Some(reader),
                capture: Capture::new(capture_bytes),
                tap: None,
                copy: None,
                enough: false,
            },
            writer,
        ))
    }

    /// Sets a tap that receives the output.
    pub(super) fn tapped(mut self, tap: Option<OutputTap<'a>>) -> Self {
        self.tap = tap;
        self
    }

    /// Sets a file that the output is copied to.
    pub(super) fn copied(mut self, copy: Option<OutputCopy>) -> Self {
        self.copy = copy;
        self
    }

    /// Whether more has arrived than is wanted.
    pub(super) fn is_enough(&self) -> bool {
        self.enough
    }

    /// The descriptor to wait for, while the other end is open.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Reads what is available, at most one buffer; returns whether more may be available now.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> bool {
        let Some(pipe) = &mut self.pipe else {
            return false;
        };
        match pipe.read(buffer) {
            Ok(n @ 1..) => {
                self.capture.push(&buffer[..n]);
                if let Some(copy) = &self.copy {
                    copy.push(&buffer[..n]);
                }
                if let Some(tap) = &mut self.tap
                    && !self.enough
                {
                    self.enough = !tap(&buffer[..n]);
                }
                true
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => true,
            Ok(0) | Err(_) => {
                self.pipe = None;
                false
            }
        }
    }

    /// Reads what is left, and never waits for more.
    pub(super) fn finish(mut self, buffer: &mut [u8]) -> CapturedOutput {
        let bound = self.capture.total_bytes + DRAIN_BYTES_MAX;
        while self.capture.total_bytes < bound && self.read(buffer) {}
        self.capture.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `input` in chunks of each size and compares with the plain definition.
    fn check(input: &[u8], capture_bytes: usize) {
        let want = if input.len() <= capture_bytes {
            input.to_vec()
        } else {
            let head = capture_bytes / 2;
            [&input[..head], &input[input.len() - (capture_bytes - head)..]].concat()
        };
        for chunk in 1..=input.len().max(1) {
            let mut capture = Capture::new(capture_bytes);
            input.chunks(chunk).for_each(|c| capture.push(c));
            let got = capture.finish();
            assert_eq!(got.bytes, want, "{capture_bytes} bytes in chunks of {chunk}");
            assert_eq!(got.total_bytes, input.len() as u64);
            assert_eq!(got.truncated(), input.len() > capture_bytes);
        }
    }

    #[test]
    fn head_and_tail_are_kept_whatever_the_chunks() {
        let input: Vec<u8> = (0..40).collect();
        for capture_bytes in 0..50 {
            for n in [0, 1, 2, 7, 20, 40] {
                check(&input[..n], capture_bytes);
            }
        }
    }

    #[test]
    fn the_text_says_how_much_was_left_out() {
        let mut capture = Capture::new(4);
        capture.push(b"abcdefgh");
        assert_eq!(capture.finish().text(), "ab\n[4 bytes left out]\ngh");
    }

    #[test]
    fn short_text_is_as_printed() {
        let mut capture = Capture::new(4);
        capture.push(b"ab\xff");
        assert_eq!(capture.finish().text(), "ab\u{fffd}");
    }
}
