//! Hosts that an agent may reach, and requests to a proxy.

use std::net::IpAddr;

/// The ports if none is named.
const USUAL_PORTS: [u16; 2] = [443, 80];
/// The maximum length of a host name.
const NAME_CHARS_MAX: usize = 253;

/// A host that may be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedHost {
    /// Its name or address; with a dot in front, any host below it.
    name: String,
    port: Option<u16>,
}

impl AllowedHost {
    /// Parses `api.example.com`, `*.example.com`, `localhost:8080` or the address of a server such
    /// as `https://example.com/v1`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let target = ProxyTarget::of_url(text).ok_or_else(|| format!("`{text}` is not a host"))?;
        let has_port = text.contains("://") || target.port != USUAL_PORTS[0] || {
            text.trim_end_matches('/').ends_with(":443")
        };
        let name = match target.name.strip_prefix('*') {
            Some(below) if below.starts_with('.') && below.len() > 2 => below.to_owned(),
            Some(_) => {
                return Err(format!("`{text}` is not a host: a star must come before a dot"));
            }
            None => target.name,
        };
        let host = Self { name, port: has_port.then_some(target.port) };
        if is_loopback(&host.name) && host.port.is_none() {
            return Err(format!("`{text}` needs a port, as in {text}:8080"));
        }
        Ok(host)
    }

    /// Whether it matches the requested one.
    pub fn allows(&self, name: &str, port: u16) -> bool {
        let is_port = match self.port {
            Some(only) => only == port,
            None => USUAL_PORTS.contains(&port),
        };
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        let is_name = if self.name.starts_with('.') {
            name.ends_with(&self.name)
        } else {
            name == self.name || (is_loopback(&name) && is_loopback(&self.name))
        };
        is_port && is_name
    }

    /// The port, if it is a server on this host's own loopback.
    pub(super) fn loopback_port(&self) -> Option<u16> {
        self.port.filter(|_| is_loopback(&self.name))
    }
}

fn is_loopback(name: &str) -> bool {
    name == "localhost" || name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// The target of a proxy request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProxyTarget {
    pub(super) name: String,
    pub(super) port: u16,
    /// The request as it is sent to the host itself; none for a tunnel.
    pub(super) request: Option<String>,
}

impl ProxyTarget {
    /// The host of an address such as `https://example.com:8443/v1`, or of its part without the
    /// rest.
    pub(super) fn of_url(text: &str) -> Option<Self> {
        let (usual, rest) = match text.trim() {
            text if text.starts_with("http://") => (80, &text[7..]),
            text if text.starts_with("https://") => (443, &text[8..]),
            text if text.contains("://") => return None,
            text => (443, text),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let place = rest[..end].rsplit('@').next().unwrap_or_default();
        let (name, port) = parse_place(place, usual)?;
        Some(Self { name, port, request: None })
    }

    /// Parses the head of a request to a proxy: `CONNECT host:port`, or a method with a full
    /// address, which is then requested once and closed.
    pub(super) fn parse_request(head: &str) -> Option<Self> {
        let (line, fields) = head.split_once("\r\n")?;
        let mut words = line.split(' ');
        let (method, address, version) = (words.next()?, words.next()?, words.next()?);
        if words.next().is_some() || !version.starts_with("HTTP/1.") {
            return None;
        }
        if method == "CONNECT" {
            let (name, port) = parse_place(address, 0)?;
            let request = None;
            return (port != 0).then_some(Self { name, port, request });
        }
        let path = address.strip_prefix("http://")?;
        let path = path.find('/').map_or("/", |at| &path[at..]);
        let mut request = format!("{method} {path} {version}\r\n");
        for field in fields.split("\r\n").filter(|field| !field.is_empty()) {
            let name = field.split(':').next()?.to_ascii_lowercase();
            if !["connection", "keep-alive"].contains(&name.as_str()) && !name.starts_with("proxy-")
            {
                request += &format!("{field}\r\n");
            }
        }
        request += "Connection: close\r\n\r\n";
        Some(Self { request: Some(request), ..Self::of_url(address)? })
    }

    /// Whether `NO_PROXY` names it.
    pub(super) fn is_spared(&self, spared: &str) -> bool {
        let names = spared.split(',').map(str::trim).filter(|n| !n.is_empty());
        let mut names = names.map(|name| name.trim_start_matches('*').trim_start_matches('.'));
        let is_below = |name: &str| {
            let rest = self.name.strip_suffix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        is_loopback(&self.name) || names.any(is_below)
    }
}

/// A name and a port; an IPv6 address is in brackets.
fn parse_place(place: &str, usual: u16) -> Option<(String, u16)> {
    let (name, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (name, rest) = rest.split_once(']')?;
            name.parse::<IpAddr>().ok()?;
            (name, rest.strip_prefix(':'))
        }
        None => match place.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (place, None),
        },
    };
    let port = match port {
        Some(port) => port.parse().ok().filter(|port| *port != 0)?,
        None => usual,
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._*:".contains(c);
    let fits = !name.is_empty() && name.len() <= NAME_CHARS_MAX && name.chars().all(is_plain);
    fits.then(|| (name.trim_end_matches('.').to_ascii_lowercase(), port))
}

/// Which hosts an agent may reach, if it has network access at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NetworkAccess {
    /// Its model's hosts, if its kind defines them; otherwise all hosts.
    #[default]
    Usual,
    /// Everything.
    All,
    /// These hosts, and the ones its own variables point to.
    Only(Vec<AllowedHost>),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> AllowedHost {
        AllowedHost::parse(text).unwrap()
    }

    #[test]
    fn a_host_allows_itself_and_nothing_else() {
        let api = host("api.example.com");
        assert!(api.allows("API.example.com.", 443) && api.allows("api.example.com", 80));
        for (name, port) in [
            ("api.example.com", 22),
            ("api.example.com.evil.net", 443),
            ("evil-api.example.com", 443),
            ("example.com", 443),
        ] {
            assert!(!api.allows(name, port), "{name}:{port}");
        }
        let below = host("*.example.com");
        assert!(below.allows("a.b.example.com", 443));
        assert!(!below.allows("example.com", 443) && !below.allows("badexample.com", 443));
        assert!(!host("http://box:8000/v1").allows("box", 443));
        assert!(host("http://box:8000/v1").allows("box", 8000));
    }

    #[test]
    fn a_server_on_the_loopback_has_a_port() {
        assert_eq!(host("http://127.0.0.1:18080").loopback_port(), Some(18080));
        assert_eq!(host("[::1]:99").loopback_port(), Some(99));
        assert!(host("localhost:99").allows("127.0.0.1", 99));
        assert_eq!(host("api.example.com").loopback_port(), None);
        assert!(AllowedHost::parse("localhost").is_err());
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for text in ["", "*", "*.", "a b", "ftp://x", "x:0", "x:99999", "*x.y", "é.com", "[x]:1"] {
            assert!(AllowedHost::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_proxy_is_asked_for_a_tunnel_or_for_a_page() {
        let tunnel =
            ProxyTarget::parse_request("CONNECT a.b:443 HTTP/1.1\r\nHost: a.b\r\n\r\n").unwrap();
        assert_eq!((tunnel.name.as_str(), tunnel.port), ("a.b", 443));
        let head = "POST http://me@box:8000/v1/x?y HTTP/1.1\r\nHost: box\r\n\
                    Proxy-Authorization: secret\r\nConnection: keep-alive\r\n\r\n";
        let page = ProxyTarget::parse_request(head).unwrap();
        assert_eq!((page.name.as_str(), page.port), ("box", 8000));
        assert_eq!(
            page.request.as_deref(),
            Some("POST /v1/x?y HTTP/1.1\r\nHost: box\r\nConnection: close\r\n\r\n")
        );
        for head in [
            "GET / HTTP/1.1\r\n\r\n",
            "CONNECT a.b HTTP/1.1\r\n\r\n",
            "CONNECT a.b:1 HTTP/1.1 x\r\n\r\n",
            "nonsense",
        ] {
            assert_eq!(ProxyTarget::parse_request(head), None, "{head}");
        }
    }

    #[test]
    fn some_hosts_are_spared_the_proxy() {
        let target = ProxyTarget::of_url("https://api.corp.net").unwrap();
        assert!(target.is_spared("x, .corp.net") && target.is_spared("api.corp.net"));
        assert!(!target.is_spared("orp.net") && !target.is_spared(""));
    }
}
