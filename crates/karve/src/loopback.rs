//! Servers of karve: on loopback only, for clients that know a token.

use karve_os::error::{CommandError, Result, WithContext};
use karve_os::random::secret;
use std::net::SocketAddr;
use tokio::net::TcpListener;

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
    fn a_token_is_compared_as_a_whole() {
        assert!(is_same(b"Bearer a", b"Bearer a"));
        for other in [&b"Bearer b"[..], b"Bearer", b"Bearer a ", b""] {
            assert!(!is_same(other, b"Bearer a"));
        }
    }
}
