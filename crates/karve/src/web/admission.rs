//! Who is answered: browsers of this host that know the token, and their own pages only.

use crate::loopback;
use axum::extract::Request;
use axum::http::header::{COOKIE, HOST, ORIGIN, SET_COOKIE};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{Html, IntoResponse, Response};

/// The port of an address that names none.
const HTTP_PORT: u16 = 80;

/// What becomes of a request.
pub(super) enum Admission {
    Granted,
    /// The address has the token; this is its port.
    WithToken {
        port: u16,
    },
    Refused(StatusCode, &'static str),
}

/// The secret that a browser must know.
pub(super) struct AccessToken {
    token: String,
}

impl AccessToken {
    pub(super) fn new(token: String) -> Self {
        Self { token }
    }

    /// Whether a request is answered.
    pub(super) fn admission(&self, request: &Request) -> Admission {
        let headers = request.headers();
        let Some((host, port)) = loopback_host(headers) else {
            let why =
                "this server answers only to 127.0.0.1 and localhost; use \"ssh -L\" from afar";
            return Admission::Refused(StatusCode::FORBIDDEN, why);
        };
        let origin = header(headers, ORIGIN.as_str());
        let own = format!("http://{host}");
        let is_own = origin.is_none_or(|origin| origin == own) && !is_part_of_another_page(headers);
        if !is_own || request.method() == Method::POST && origin.is_none() {
            return Admission::Refused(
                StatusCode::FORBIDDEN,
                "the request comes from another page",
            );
        }
        let is_token = |given: &str| loopback::is_same(given.as_bytes(), self.token.as_bytes());
        let query = request.uri().query().unwrap_or_default();
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        match pairs.find(|(name, _)| *name == "token") {
            Some((_, given)) if is_token(given) => return Admission::WithToken { port },
            Some(_) => return Admission::Refused(StatusCode::UNAUTHORIZED, "the token is wrong"),
            None => {}
        }
        let cookies = header(headers, COOKIE.as_str()).unwrap_or_default();
        let mut cookies = cookies.split(';').filter_map(|pair| pair.trim().split_once('='));
        let own = cookie_name(port);
        match cookies.any(|(name, value)| name == own && is_token(value)) {
            true => Admission::Granted,
            false => {
                let why = "open the address that \"karve serve\" printed: it has the token";
                Admission::Refused(StatusCode::UNAUTHORIZED, why)
            }
        }
    }

    /// Puts the token into a cookie, and out of the address. A redirection would not do: after a
    /// link of another site, browsers send no strict cookie until a page of this one asks.
    pub(super) fn welcome(&self, path: &str, port: u16) -> Response {
        let name = cookie_name(port);
        let cookie = format!("{name}={}; HttpOnly; SameSite=Strict; Path=/", self.token);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/-_.%".contains(c);
        let to = if path.starts_with("//") || !path.chars().all(is_plain) { "/" } else { path };
        let page = format!(
            "<!doctype html><meta http-equiv=\"refresh\" content=\"0; url={to}\">\
             <link rel=\"icon\" href=\"data:,\"><title>karve</title><a href=\"{to}\">karve</a>"
        );
        ([(SET_COOKIE, cookie)], Html(page)).into_response()
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Whether a browser says that it asks for a part of a page of another site or port, such as an
/// image or a script. Cookies do not know ports, so it would send ours along.
fn is_part_of_another_page(headers: &HeaderMap) -> bool {
    let is_apart = matches!(header(headers, "sec-fetch-site"), Some("same-site" | "cross-site"));
    is_apart && header(headers, "sec-fetch-mode") != Some("navigate")
}

/// The name of the cookie for pages at a port. Cookies do not know ports, and a browser may have
/// pages of several servers open. The port is that of its address, which differs from ours behind
/// `ssh -L`: two forwarded servers may listen on the same port of two hosts.
fn cookie_name(port: u16) -> String {
    format!("karve_token_{port}")
}

/// The host header and its port, if it names this host.
fn loopback_host(headers: &HeaderMap) -> Option<(&str, u16)> {
    let host = header(headers, HOST.as_str())?;
    Some((host, loopback_port(host)?))
}

/// The port of a host header that names this host: another name could lead here by tricks with DNS.
fn loopback_port(host: &str) -> Option<u16> {
    let names = ["localhost", "127.0.0.1", "[::1]"];
    let rest = names.iter().find_map(|name| host.strip_prefix(name))?;
    match rest {
        "" => Some(HTTP_PORT),
        rest => rest.strip_prefix(':')?.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_host_are_answered() {
        for (host, port) in [
            ("127.0.0.1:7", 7),
            ("localhost", 80),
            ("localhost:9000", 9000),
            ("[::1]:81", 81),
            ("127.0.0.1", 80),
        ] {
            assert_eq!(loopback_port(host), Some(port), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example:7",
            "127.0.0.1.nip.io",
            "",
            "[::2]",
            "[::1].evil.example",
            "localhost:80@evil.example",
            "localhost:",
            "localhost:65536",
        ] {
            assert_eq!(loopback_port(host), None, "{host}");
        }
    }
}
