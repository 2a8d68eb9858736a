//! The server on HTTP: on loopback alone, and only for who knows the token.

use super::Server;
use crate::error::{CommandError, Context, Result};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::AUTHORIZATION;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tower_service::Service;

/// Connections that are served at the same time.
const CONNECTIONS_MAX: usize = 32;

/// Serves until the process ends.
pub async fn serve(server: Server, listener: TcpListener, token: String) -> Result<()> {
    let config = StreamableHttpServerConfig::default();
    let made = move || Ok(server.clone());
    let service =
        StreamableHttpService::new(made, Arc::new(LocalSessionManager::default()), config);
    let token: Arc<str> = format!("Bearer {token}").into();
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else {
            return Ok(());
        };
        let accepted = listener.accept().await;
        let (stream, _) = accepted.context(|| "cannot accept connections".to_owned())?;
        let (service, token) = (service.clone(), Arc::clone(&token));
        tokio::spawn(async move {
            let answer = service_fn(move |request: Request<Incoming>| {
                let (mut service, token) = (service.clone(), Arc::clone(&token));
                async move {
                    let given = request.headers().get(AUTHORIZATION);
                    let known =
                        given.is_some_and(|given| is_same(given.as_bytes(), token.as_bytes()));
                    if !known {
                        return Ok(refused());
                    }
                    service.call(request).await
                }
            });
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), answer)
                .await;
            drop(place);
        });
    }
}

/// An address that only this host can reach.
pub async fn listen(address: SocketAddr) -> Result<TcpListener> {
    if !address.ip().is_loopback() {
        return Err(
            CommandError::usage(format!("{address} can be reached from other hosts"))
                .hint("name a loopback address: --http 127.0.0.1:0"),
        );
    }
    TcpListener::bind(address)
        .await
        .context(|| format!("cannot listen on {address}"))
        .map_err(|error| error.hint("name another port: --http 127.0.0.1:0 takes a free one"))
}

/// Whether two secrets are the same; how long it takes does not tell where they differ.
fn is_same(given: &[u8], wanted: &[u8]) -> bool {
    let differs = given
        .iter()
        .zip(wanted)
        .fold(0, |all, (a, b)| all | (a ^ b));
    given.len() == wanted.len() && differs == 0
}

type Body = http_body_util::combinators::BoxBody<Bytes, Infallible>;

fn refused() -> Response<Body> {
    let text = "the token is missing or wrong: send \"Authorization: Bearer TOKEN\"\n";
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *response.status_mut() = StatusCode::UNAUTHORIZED;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_compared_as_a_whole() {
        assert!(is_same(b"Bearer a", b"Bearer a"));
        for other in [&b"Bearer b"[..], b"Bearer", b"Bearer a ", b""] {
            assert!(!is_same(other, b"Bearer a"));
        }
    }
}
