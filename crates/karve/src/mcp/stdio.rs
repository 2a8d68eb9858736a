//! Standard input and output of the MCP server, one message on a line.
//!
//! rmcp ignores a line that is not JSON, and one that is too long. Whoever sent it would wait for
//! an answer, so every such line gets an error.

use rmcp::model::ErrorData;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{RoleServer, transport};
use serde::de::IgnoredAny;
use tokio::io::{
    AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream,
};
use tokio::sync::mpsc;

/// Bytes of one message; a longer one is refused, and is never held in memory.
const MESSAGE_BYTES_MAX: usize = 16 << 20;
/// Bytes on their way from the lines that are read to the server.
const PIPE_BYTES: usize = 64 << 10;
/// Refusals that wait to be sent; then nothing more is read.
const REFUSALS_MAX: usize = 16;

/// Why a line is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineRefusal {
    NotJson,
    TooLong,
}

impl LineRefusal {
    fn answer(self) -> TxJsonRpcMessage<RoleServer> {
        let error = match self {
            Self::NotJson => ErrorData::parse_error("this line is not JSON", None),
            Self::TooLong => ErrorData::invalid_request(
                format!("a message has at most {MESSAGE_BYTES_MAX} bytes; use the workspace"),
                None,
            ),
        };
        TxJsonRpcMessage::<RoleServer>::error(error, None)
    }
}

/// Messages on lines, with an answer to every line that is none.
pub struct StdioTransport<W: AsyncWrite> {
    inner: AsyncRwTransport<RoleServer, DuplexStream, W>,
    refused: mpsc::Receiver<LineRefusal>,
}

/// The transport of this process.
pub fn stdio() -> StdioTransport<tokio::io::Stdout> {
    let (read, write) = transport::stdio();
    StdioTransport::new(read, write, MESSAGE_BYTES_MAX)
}

impl<W: AsyncWrite + Send + Unpin + 'static> StdioTransport<W> {
    fn new(read: impl AsyncRead + Send + Unpin + 'static, write: W, bytes_max: usize) -> Self {
        let (to, from) = tokio::io::duplex(PIPE_BYTES);
        let (refuse, refused) = mpsc::channel(REFUSALS_MAX);
        tokio::spawn(sift(read, to, refuse, bytes_max));
        let inner = AsyncRwTransport::new_server(from, write).with_max_line_length(usize::MAX);
        Self { inner, refused }
    }
}

/// Passes on lines that are JSON, and reports the others, until either side is closed.
async fn sift(
    read: impl AsyncRead + Unpin,
    mut to: DuplexStream,
    refuse: mpsc::Sender<LineRefusal>,
    bytes_max: usize,
) {
    let (mut read, mut line) = (BufReader::new(read), Vec::new());
    let mut is_rest = false;
    loop {
        line.clear();
        let part = (&mut read).take(bytes_max as u64).read_until(b'\n', &mut line).await;
        if !part.is_ok_and(|bytes| bytes > 0) {
            return;
        }
        let is_whole = line.ends_with(b"\n");
        let was_rest = std::mem::replace(&mut is_rest, !is_whole);
        let refusal = match line.trim_ascii() {
            _ if was_rest => continue,
            _ if !is_whole && line.len() == bytes_max => LineRefusal::TooLong,
            text if text.is_empty() || is_json(text) => {
                if to.write_all(&line).await.is_err() {
                    return;
                }
                continue;
            }
            _ => LineRefusal::NotJson,
        };
        if refuse.send(refusal).await.is_err() {
            return;
        }
    }
}

fn is_json(line: &[u8]) -> bool {
    str::from_utf8(line).is_ok_and(|line| serde_json::from_str::<IgnoredAny>(line).is_ok())
}

impl<W: AsyncWrite + Send + Unpin + 'static> Transport<RoleServer> for StdioTransport<W> {
    type Error = std::io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            tokio::select! {
                biased;
                Some(refusal) = self.refused.recv() => {
                    // A task of its own, because the caller may stop waiting at any time.
                    tokio::spawn(self.inner.send(refusal.answer()));
                }
                message = self.inner.receive() => return message,
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_line_that_is_no_message_gets_an_answer_and_the_next_one_is_read() {
        let (server, client) = tokio::net::UnixStream::pair().unwrap();
        let long = "x".repeat(500);
        let ping = r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#;
        let bad = b"\n{\"id\":\"\xff\"}\n".as_slice();
        let sent = format!("{{\"id\":8,\"params\":\"{long}\"}}\n{{\"jsonrpc\":\n{ping}\n");
        let sent = [sent.as_bytes(), bad].concat();
        let mut transport = StdioTransport::new(std::io::Cursor::new(sent), server, 400);
        let received = transport.receive().await.unwrap();
        assert_eq!(serde_json::to_value(&received).unwrap()["id"], 9);
        assert!(transport.receive().await.is_none());
        let mut lines = BufReader::new(client).lines();
        let mut codes = Vec::new();
        for _ in 0..3 {
            let line = lines.next_line().await.unwrap().unwrap();
            let answer: serde_json::Value = serde_json::from_str(&line).unwrap();
            assert!(answer["id"].is_null());
            codes.push(answer["error"]["code"].as_i64().unwrap());
        }
        assert_eq!(codes, [-32_600, -32_700, -32_700]);
    }
}
