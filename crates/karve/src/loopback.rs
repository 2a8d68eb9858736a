//! Servers of karve: on loopback only, for clients that know a token.

use karve_os::error::{CommandError, Result, WithContext};
use karve_os::random::secret;
use std::net::SocketAddr;
use tokio::net::TcpListener;

/// An address from a command line: `HOST:PORT` with an IP address or `localhost`.
pub fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let named = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    let parsed = named.as_deref().unwrap_or(text).parse();
    parsed.map_err(|_| "name it as 127.0.0.1:PORT or localhost:PORT".to_owned())
}

/// An address that only this host can reach; `flag` names it on the command line.
pub async fn listen(address: SocketAddr, flag: &str) -> Result<TcpListener> {
    if !address.ip().is_loopback() {
        return Err(CommandError::usage(format!("{address} can be reached from other hosts"))
            .hint(format!("name a loopback address: {flag} 127.0.0.1:0"))
            .hint("from another host: ssh -L 7712:127.0.0.1:7712 HOST"));
    }
    TcpListener::bind(address).await.context(|| format!("cannot listen on {address}")).map_err(
        |error| error.hint(format!("name another port: {flag} 127.0.0.1:0 takes a free one")),
    )
}

/// A token that nobody can guess.
pub fn fresh_token() -> Result<String> {
    Ok(format!("{:016x}{:016x}", secret()?, secret()?))
}

/// Whether two secrets are equal, in constant time.
pub fn is_same(given: &[u8], wanted: &[u8]) -> bool {
    let differs = given.iter().zip(wanted).fold(0, |all, (a, b)| all | (a ^ b));
    given.len() == wanted.len() && differs == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_name_this_host() {
        let parsed = |text: &str| parse_address(text).map(|address| address.to_string());
        assert_eq!(parsed("localhost:7712").as_deref(), Ok("127.0.0.1:7712"));
        assert_eq!(parsed("[::1]:0").as_deref(), Ok("[::1]:0"));
        for wrong in ["localhost", "localhost:x", "example.org:1", "127.0.0.1", ""] {
            assert!(parsed(wrong).unwrap_err().contains("127.0.0.1:PORT"), "{wrong}");
        }
    }

    #[test]
    fn a_token_is_compared_as_a_whole() {
        assert!(is_same(b"Bearer a", b"Bearer a"));
        for other in [&b"Bearer b"[..], b"Bearer", b"Bearer a ", b""] {
            assert!(!is_same(other, b"Bearer a"));
        }
    }
}
