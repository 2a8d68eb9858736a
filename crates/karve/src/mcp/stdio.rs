//! The server on standard input and output. A message that is too long gets an error response; it
//! is never stored, and never left unanswered.
//!
//! The library below silently drops such a message. So the input is inspected as it passes: the
//! length of the current message, and its id, wherever in the message it is.

use rmcp::RoleServer;
use rmcp::model::{ErrorData, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;

/// Bytes of one message, at most.
const MESSAGE_BYTES_MAX: usize = 16 << 20;
/// Refusals that wait to be sent; more oversized messages at the same time get no response.
const REFUSALS_MAX: usize = 64;
/// Bytes of a top-level key of a message that are checked.
const NAME_BYTES_MAX: usize = 8;
/// Bytes of an id.
const ID_BYTES_MAX: usize = 256;

/// Messages from one side, responses to the other.
pub(crate) struct StdioTransport<R: AsyncRead + Unpin, W: AsyncWrite> {
    inner: AsyncRwTransport<RoleServer, ScannedReader<R>, W>,
    refused: mpsc::Receiver<Option<RequestId>>,
    bytes_max: usize,
}

impl<R, W> StdioTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// Reads and writes messages of the usual size.
    pub(crate) fn new(read: R, write: W) -> Self {
        Self::bounded(read, write, MESSAGE_BYTES_MAX)
    }

    /// Says that a message was too long.
    fn refusal(
        &mut self,
        id: Option<RequestId>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let why = format!(
            "the message is longer than {} bytes: send less at once, or change the files in the \
             workspace that next names",
            self.bytes_max
        );
        let error = ErrorData::invalid_request(why, None);
        self.inner.send(TxJsonRpcMessage::<RoleServer>::error(error, id))
    }

    fn bounded(read: R, write: W, bytes_max: usize) -> Self {
        let (refuse, refused) = mpsc::channel(REFUSALS_MAX);
        let watched = ScannedReader { read, seen: MessageScanner::default(), bytes_max, refuse };
        Self {
            inner: AsyncRwTransport::new(watched, write).with_max_line_length(bytes_max),
            refused,
            bytes_max,
        }
    }
}

impl<R, W> Transport<RoleServer> for StdioTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let came = loop {
            tokio::select! {
                biased;
                Some(id) = self.refused.recv() => {
                    // In its own task, because the future that waits here may be dropped.
                    tokio::spawn(self.refusal(id));
                }
                came = self.inner.receive() => break came,
            }
        };
        if came.is_none() {
            while let Ok(id) = self.refused.try_recv() {
                let _ = self.refusal(id).await;
            }
        }
        came
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}

/// The input, inspected as it is read.
struct ScannedReader<R> {
    read: R,
    seen: MessageScanner,
    bytes_max: usize,
    refuse: mpsc::Sender<Option<RequestId>>,
}

impl<R: AsyncRead + Unpin> AsyncRead for ScannedReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.read).poll_read(context, buffer);
        for byte in buffer.filled().get(before..).unwrap_or_default() {
            if *byte != b'\n' {
                self.seen.push(*byte);
                continue;
            }
            let message = std::mem::take(&mut self.seen);
            // Counted like the library does: with the terminator.
            if message.bytes >= self.bytes_max {
                let _ = self.refuse.try_send(message.id());
            }
        }
        read
    }
}

/// What is known of a message while it passes: its length, and its id, in bounded memory.
#[derive(Debug, Default)]
struct MessageScanner {
    bytes: usize,
    /// How many objects and lists are open.
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// Whether the current top-level token is a value, not a key.
    in_value: bool,
    /// The current or last top-level key.
    name: Vec<u8>,
    /// The raw value of the id.
    id: Vec<u8>,
}

impl MessageScanner {
    fn push(&mut self, byte: u8) {
        self.bytes = self.bytes.saturating_add(1);
        if self.in_string {
            self.keep(byte);
            match (self.escaped, byte) {
                (true, _) => self.escaped = false,
                (false, b'\\') => self.escaped = true,
                (false, b'"') => self.in_string = false,
                (false, _) => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                if self.depth == 1 && !self.in_value {
                    self.name.clear();
                }
                self.keep(byte);
            }
            b'{' | b'[' => self.depth = self.depth.saturating_add(1),
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            b':' if self.depth == 1 => {
                self.in_value = true;
                if self.is_id() {
                    self.id.clear();
                }
            }
            b',' if self.depth == 1 => self.in_value = false,
            _ => self.keep(byte),
        }
    }

    fn is_id(&self) -> bool {
        self.name == b"\"id\""
    }

    /// Keeps the bytes of a top-level key, or of the value of the id.
    fn keep(&mut self, byte: u8) {
        if self.depth != 1 {
            return;
        }
        match self.in_value {
            // One byte more than needed, so that a truncated value is recognized as too long.
            false if self.name.len() <= NAME_BYTES_MAX => self.name.push(byte),
            true if self.is_id() && self.id.len() <= ID_BYTES_MAX => self.id.push(byte),
            true | false => {}
        }
    }

    /// The id, if there is a valid one.
    fn id(&self) -> Option<RequestId> {
        match self.id.len() <= ID_BYTES_MAX {
            true => serde_json::from_slice(&self.id).ok(),
            false => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::UnixStream;

    #[track_caller]
    fn check(message: &str, want: Option<RequestId>) {
        let mut seen = MessageScanner::default();
        for byte in message.bytes() {
            seen.push(byte);
        }
        assert_eq!((seen.id(), seen.bytes), (want, message.len()), "{message}");
    }

    #[test]
    fn an_id_is_found_wherever_it_stands_at_the_top_and_nowhere_else() {
        let text = |id: &str| Some(RequestId::String(id.into()));
        check(r#"{"id": 7, "method": "m"}"#, Some(RequestId::Number(7)));
        check(
            r#"{"method":"m","params":{"id":1,"a":[{"id":2}]},"id":3}"#,
            Some(RequestId::Number(3)),
        );
        check(r#"{"params":"\"id\":5,{","id":"a\"b"}"#, text("a\"b"));
        check(r#"{"a":["id",1],"b":"id","id": -1 }"#, Some(RequestId::Number(-1)));
        check(r#"{"identity":9,"params":{"id":1}}"#, None);
        check(r#"{"id":{"id":1}}"#, None);
        check(r#"{"id":null}"#, None);
        check(r#"[{"id":1}]"#, None);
        check("no message at all", None);
        let long = "x".repeat(ID_BYTES_MAX);
        check(&format!("{{\"id\":\"{long}\"}}"), None);
    }

    /// What the other side receives.
    async fn line(stream: &UnixStream) -> String {
        let mut text = Vec::new();
        while !text.ends_with(b"\n") {
            stream.readable().await.unwrap();
            let mut byte = [0; 1];
            match stream.try_read(&mut byte) {
                Ok(0) => break,
                Ok(_) => text.push(byte[0]),
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        }
        String::from_utf8(text).unwrap()
    }

    #[tokio::test]
    async fn what_is_too_long_is_answered_and_the_next_message_is_heard() {
        let (server, client) = UnixStream::pair().unwrap();
        let ping = r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#;
        let long = "x".repeat(500);
        let said = format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"params\":\"{long}\",\"id\":8}}\n\
             {long}\n{ping}\n"
        );
        let mut stdio = StdioTransport::bounded(io_of(&said), server, 400);
        let heard = stdio.receive().await.unwrap();
        let heard = serde_json::to_value(&heard).unwrap();
        assert_eq!(heard["id"], 9, "{heard}");
        // Both refusals were sent, or will be before the end.
        assert!(stdio.receive().await.is_none());
        let mut ids = Vec::new();
        for _ in 0..2 {
            let answer: serde_json::Value = serde_json::from_str(&line(&client).await).unwrap();
            let why = answer["error"]["message"].as_str().unwrap();
            assert!(why.contains("longer than 400 bytes"), "{answer}");
            ids.push(answer["id"].as_i64());
        }
        ids.sort();
        assert_eq!(ids, [None, Some(8)]);
    }

    fn io_of(text: &str) -> io::Cursor<Vec<u8>> {
        io::Cursor::new(text.as_bytes().to_vec())
    }
}
