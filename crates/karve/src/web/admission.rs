//! Who is answered: browsers of this host that know the token, and their own pages only.

use crate::loopback;
use axum::extract::Request;
use axum::http::header::{COOKIE, HOST, ORIGIN, SET_COOKIE};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{Html, IntoResponse, Response};

/// What becomes of a request.
pub(super) enum Admission {
    Granted,
    /// The address has the token.
    WithToken,
    Refused(StatusCode, &'static str),
}

/// The secret that a browser must know, and the cookie that has it.
pub(super) struct AccessToken {
    token: String,
    /// The name of the cookie: cookies do not know ports, and a host may have several servers.
    cookie: String,
}

impl AccessToken {
    pub(super) fn new(token: String, port: u16) -> Self {
        Self { token, cookie: format!("karve_token_{port}") }
    }

    /// Whether a request is answered.
    pub(super) fn admission(&self, request: &Request) -> Admission {
        let headers = request.headers();
        let host = header(headers, HOST.as_str());
        if !host.is_some_and(is_loopback) {
            let why =
                "this server answers only to 127.0.0.1 and localhost; use \"ssh -L\" from afar";
            return Admission::Refused(StatusCode::FORBIDDEN, why);
        }
        let origin = header(headers, ORIGIN.as_str());
        let own = host.map(|host| format!("http://{host}"));
        let is_own = origin.is_none_or(|origin| Some(origin) == own.as_deref())
            && !is_part_of_another_page(headers);
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
            Some((_, given)) if is_token(given) => return Admission::WithToken,
            Some(_) => return Admission::Refused(StatusCode::UNAUTHORIZED, "the token is wrong"),
            None => {}
        }
        let cookies = header(headers, COOKIE.as_str()).unwrap_or_default();
        let mut cookies = cookies.split(';').filter_map(|pair| pair.trim().split_once('='));
        match cookies.any(|(name, value)| name == self.cookie && is_token(value)) {
            true => Admission::Granted,
            false => {
                let why = "open the address that \"karve serve\" printed: it has the token";
                Admission::Refused(StatusCode::UNAUTHORIZED, why)
            }
        }
    }

    /// Puts the token into a cookie, and out of the address. A redirection would not do: after a
    /// link of another site, browsers send no strict cookie until a page of this one asks.
    pub(super) fn welcome(&self, path: &str) -> Response {
        let cookie = format!("{}={}; HttpOnly; SameSite=Strict; Path=/", self.cookie, self.token);
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

/// Whether a host header names this host: another name could lead here by a trick with DNS.
fn is_loopback(host: &str) -> bool {
    let names = ["localhost", "127.0.0.1", "[::1]"];
    let is_port = |port: &str| {
        port.is_empty() || port.strip_prefix(':').is_some_and(|n| n.parse::<u16>().is_ok())
    };
    names.iter().any(|name| host.strip_prefix(name).is_some_and(is_port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_host_are_answered() {
        for host in ["127.0.0.1:7", "localhost", "localhost:80", "[::1]:80", "127.0.0.1"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example:7",
            "127.0.0.1.nip.io",
            "",
            "[::2]",
            "[::1].evil.example",
            "localhost:80@evil.example",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
