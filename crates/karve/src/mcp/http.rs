//! The server over HTTP: on loopback only, only for clients that know the token, and not for web
//! pages of other hosts in a browser.

use super::McpServer;
use crate::loopback::is_same;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::AUTHORIZATION;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use karve_os::error::{Result, WithContext};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use std::convert::Infallible;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tower_service::Service;

/// Connections that are served at the same time.
const CONNECTIONS_MAX: usize = 32;

/// The allowed origins of web pages that call the server; a request from another origin gets a
/// 403. Clients other than browsers send no origin.
const ORIGINS: [&str; 6] = [
    "http://localhost:*",
    "http://127.0.0.1:*",
    "http://[::1]:*",
    "https://localhost:*",
    "https://127.0.0.1:*",
    "https://[::1]:*",
];

/// Serves until the process ends.
pub async fn serve(server: McpServer, listener: TcpListener, token: String) -> Result<()> {
    let config = StreamableHttpServerConfig::default().with_allowed_origins(ORIGINS);
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
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
            drop(place);
        });
    }
}

type ResponseBody = http_body_util::combinators::BoxBody<Bytes, Infallible>;

fn refused() -> Response<ResponseBody> {
    let text = "the token is missing or wrong: send \"Authorization: Bearer TOKEN\"\n";
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *response.status_mut() = StatusCode::UNAUTHORIZED;
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loopback::listen;
    use crate::mcp::StartPermission;
    use crate::project::ProjectArgs;
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream};

    const TOKEN: &str = "a-token-of-the-test";

    /// The status of the answer to a first request with the right token.
    fn status(at: SocketAddr, origin: &str) -> String {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":
            "2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
        let mut stream = TcpStream::connect(at).unwrap();
        let length = body.len();
        write!(
            stream,
            "POST / HTTP/1.1\r\nHost: {at}\r\n{origin}Authorization: Bearer {TOKEN}\r\n\
             Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut line = [0; 12];
        stream.read_exact(&mut line).unwrap();
        String::from_utf8_lossy(&line[9..]).into_owned()
    }

    #[test]
    fn a_page_of_another_host_is_refused_whatever_it_knows() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(listen("127.0.0.1:0".parse().unwrap(), "--http")).unwrap();
        let at = listener.local_addr().unwrap();
        let server = McpServer::new(ProjectArgs::default(), StartPermission::GoOn);
        runtime.spawn(serve(server, listener, TOKEN.to_owned()));
        for (origin, want) in [
            ("", "200"),
            ("Origin: http://localhost:6274\r\n", "200"),
            ("Origin: http://127.0.0.1\r\n", "200"),
            ("Origin: http://[::1]:80\r\n", "200"),
            ("Origin: http://evil.example\r\n", "403"),
            ("Origin: http://localhost.evil.example\r\n", "403"),
            ("Origin: null\r\n", "403"),
        ] {
            assert_eq!(status(at, origin), want, "{origin}");
        }
    }
}
