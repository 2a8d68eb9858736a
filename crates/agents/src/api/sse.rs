//! Server-sent events, decoded as they arrive, in bounded memory. Pure: bytes in, data out.

/// The data of one event is kept up to this size.
pub(super) const EVENT_BYTES_MAX: usize = 4 << 20;
/// Bytes of the first unexpected line that are kept.
const STRANGE_BYTES_MAX: usize = 200;

/// Decodes one stream.
#[derive(Debug, Default)]
pub(super) struct SseDecoder {
    /// The current line.
    line: Vec<u8>,
    /// The data of the current event.
    data: Vec<u8>,
    has_data: bool,
    /// Whether an event exceeded the limit.
    pub(super) is_over: bool,
    /// The beginning of the first line that does not belong to an event.
    pub(super) strange: Option<String>,
}

impl SseDecoder {
    /// Processes new bytes, and passes on the data of every complete event.
    pub(super) fn push(&mut self, bytes: &[u8], on: &mut dyn FnMut(&[u8])) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.line.len() + piece.len() > EVENT_BYTES_MAX {
                self.is_over = true;
                self.line.clear();
            } else {
                self.line.extend_from_slice(piece);
            }
            if self.line.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                self.take_line(line.trim_ascii_end(), on);
            }
        }
    }

    fn take_line(&mut self, line: &[u8], on: &mut dyn FnMut(&[u8])) {
        if line.is_empty() {
            if std::mem::take(&mut self.has_data) {
                on(&self.data);
            }
            self.data.clear();
            return;
        }
        let known: [&[u8]; 4] = [b":", b"event:", b"id:", b"retry:"];
        if let Some(data) = line.strip_prefix(b"data:") {
            self.take_data(data.strip_prefix(b" ").unwrap_or(data));
        } else if !known.iter().any(|start| line.starts_with(start)) && self.strange.is_none() {
            let start = &line[..line.len().min(STRANGE_BYTES_MAX)];
            self.strange = Some(String::from_utf8_lossy(start).into_owned());
        }
    }

    fn take_data(&mut self, data: &[u8]) {
        if self.data.len() + data.len() >= EVENT_BYTES_MAX {
            self.is_over = true;
            return;
        }
        if self.has_data {
            self.data.push(b'\n');
        }
        self.has_data = true;
        self.data.extend_from_slice(data);
    }
}
