//! Connections within bounds: a client that begins a request and does not end it, or does not read
//! what it asked for, loses its place after a while.

use axum::serve::Listener;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};

/// Connections at the same time; more of them wait.
const CONNECTIONS_MAX: usize = 256;
/// Time in which something must have been sent to a client. Streams send something every 15 s.
const PATIENCE: Duration = Duration::from_secs(60);

/// Accepts connections within bounds.
pub(super) struct BoundedListener {
    inner: TcpListener,
    places: Arc<Semaphore>,
    patience: Duration,
}

impl BoundedListener {
    pub(super) fn new(inner: TcpListener) -> Self {
        Self::with(inner, CONNECTIONS_MAX, PATIENCE)
    }

    fn with(inner: TcpListener, connections_max: usize, patience: Duration) -> Self {
        Self { inner, places: Arc::new(Semaphore::new(connections_max)), patience }
    }
}

impl Listener for BoundedListener {
    type Io = BoundedStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (BoundedStream, SocketAddr) {
        // It is never closed, so there is always a place some time.
        let place = Arc::clone(&self.places).acquire_owned().await.ok();
        let (stream, address) = Listener::accept(&mut self.inner).await;
        let over = Box::pin(tokio::time::sleep(self.patience));
        (BoundedStream { stream, over, patience: self.patience, _place: place }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }
}

/// A connection that ends when nothing was sent for too long, whatever comes in.
pub(super) struct BoundedStream {
    stream: TcpStream,
    over: Pin<Box<Sleep>>,
    patience: Duration,
    _place: Option<OwnedSemaphorePermit>,
}

impl BoundedStream {
    /// Does something with the stream, unless its time is over.
    fn in_time<T>(
        &mut self,
        context: &mut Context<'_>,
        act: impl FnOnce(Pin<&mut TcpStream>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        match self.over.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => act(Pin::new(&mut self.stream), context),
        }
    }
}

impl AsyncRead for BoundedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.in_time(context, |stream, context| stream.poll_read(context, buffer))
    }
}

impl AsyncWrite for BoundedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let sent = self.in_time(context, |stream, context| stream.poll_write(context, bytes));
        if matches!(sent, Poll::Ready(Ok(n)) if n > 0) {
            let until = Instant::now() + self.patience;
            self.over.as_mut().reset(until);
        }
        sent
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.in_time(context, |stream, context| stream.poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;
    use axum::routing::get;
    use std::io::{Read, Write};

    #[test]
    fn a_request_that_does_not_end_loses_its_place() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let inner = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = inner.local_addr().unwrap();
        let bounded = BoundedListener::with(inner, 2, Duration::from_millis(300));
        let app = Router::new().route("/", get(|| async { "here" }));
        runtime.spawn(async move { axum::serve(bounded, app).await });
        let connect = |text: &[u8]| {
            let mut stream = std::net::TcpStream::connect(address).unwrap();
            stream.write_all(text).unwrap();
            stream
        };
        // Both places are taken by clients that do not go on, or only byte by byte.
        let silent = connect(b"");
        let slow = connect(b"GET / HTTP/1.1\r\nHost: a\r\nX: ");
        let mut third = connect(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        let mut answer = String::new();
        third.read_to_string(&mut answer).unwrap();
        assert!(answer.ends_with("here"), "{answer}");
        for mut stream in [silent, slow] {
            let mut text = String::new();
            let _ = stream.read_to_string(&mut text);
            assert!(!text.contains("here"), "{text}");
        }
    }
}
