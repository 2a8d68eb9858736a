//! An agent's connection to its model, and to nothing else.
//!
//! A namespace sandbox with a gateway has no network except its own loopback, on which karve
//! listens: on one port as a proxy to the allowed hosts, and on the ports of allowed servers on the
//! host's own loopback, which are forwarded unchanged.

use super::hosts::{AllowedHost, ProxyTarget};
use crate::process::NamespaceSandbox;
use crate::sync::locked;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use std::{env, io, thread};

/// Maximum number of listeners of one sandbox; the first is the proxy's.
const DOORS_MAX: usize = 8;
/// Maximum number of concurrent connections.
const OPEN_MAX: usize = 128;
/// Maximum size of a request to the proxy, in bytes.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// How long a client may take to send its request, and a host to accept a connection.
const CALL_LIMIT: Duration = Duration::from_secs(30);
/// How often a listener checks for new connections.
const LOOK: Duration = Duration::from_millis(10);
/// How many refused hosts are remembered.
const REFUSED_MAX: usize = 16;

/// The loopback ports of a sandbox on which karve must listen for these hosts: any port for the
/// proxy, and those of servers on the host's own loopback.
pub(super) fn doors(hosts: &[AllowedHost]) -> Vec<u16> {
    let local: BTreeSet<u16> = hosts.iter().filter_map(AllowedHost::loopback_port).collect();
    [0].into_iter().chain(local).take(DOORS_MAX).collect()
}

/// Serves the listeners of a sandbox until it is dropped.
#[derive(Debug)]
pub struct Gateway {
    shared: Arc<GatewayState>,
    proxy: u16,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct GatewayState {
    hosts: Vec<AllowedHost>,
    ended: AtomicBool,
    next: AtomicU64,
    open: Mutex<BTreeMap<u64, Vec<TcpStream>>>,
    refused: Mutex<BTreeSet<String>>,
}

impl Gateway {
    /// Serves the listeners of a sandbox, which were created for these hosts.
    pub(super) fn open(room: &NamespaceSandbox, hosts: &[AllowedHost]) -> io::Result<Self> {
        let shared = Arc::new(GatewayState {
            hosts: hosts.to_vec(),
            ended: AtomicBool::new(false),
            next: AtomicU64::new(0),
            open: Mutex::default(),
            refused: Mutex::default(),
        });
        let mut gateway = Self { shared, proxy: 0, threads: Vec::new() };
        for (index, door) in room.doors().iter().enumerate() {
            let door = door.try_clone()?;
            let port = door.local_addr()?.port();
            door.set_nonblocking(true)?;
            let shared = gateway.shared.clone();
            let leads = match index {
                0 => {
                    gateway.proxy = port;
                    GatewayRoute::Anywhere
                }
                _ => GatewayRoute::Home(port),
            };
            gateway.threads.push(thread::spawn(move || accept_loop(&door, leads, &shared)));
        }
        Ok(gateway)
    }

    /// The variables that point programs to the proxy.
    pub fn variables(&self) -> Vec<(String, String)> {
        let proxy = format!("http://127.0.0.1:{}", self.proxy);
        let mut set = Vec::new();
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"] {
            set.push((name.to_owned(), proxy.clone()));
        }
        for name in ["NO_PROXY", "no_proxy"] {
            set.push((name.to_owned(), "127.0.0.1,localhost,::1".to_owned()));
        }
        set
    }

    /// Hosts that were requested and are not allowed.
    pub fn refused(&self) -> Vec<String> {
        locked(&self.shared.refused).iter().cloned().collect()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Release);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        for stream in locked(&self.shared.open).values().flatten() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Where a listener forwards to.
#[derive(Clone, Copy, Debug)]
enum GatewayRoute {
    /// The host that the client requests, if that is allowed.
    Anywhere,
    /// To this port of the host's own loopback.
    Home(u16),
}

fn accept_loop(door: &TcpListener, leads: GatewayRoute, shared: &Arc<GatewayState>) {
    while !shared.ended.load(Ordering::Acquire) {
        let Ok((client, _)) = door.accept() else {
            thread::sleep(LOOK);
            continue;
        };
        if locked(&shared.open).len() >= OPEN_MAX {
            continue;
        }
        let id = shared.next.fetch_add(1, Ordering::Relaxed);
        let shared = shared.clone();
        thread::spawn(move || {
            // On failure the client sees its connection close.
            let _ = serve(client, leads, id, &shared);
            locked(&shared.open).remove(&id);
        });
    }
}

fn serve(
    mut client: TcpStream,
    leads: GatewayRoute,
    id: u64,
    shared: &GatewayState,
) -> io::Result<()> {
    client.set_nonblocking(false)?;
    locked(&shared.open).insert(id, vec![client.try_clone()?]);
    let (mut server, first) = match leads {
        GatewayRoute::Home(port) => (TcpStream::connect(("127.0.0.1", port))?, Vec::new()),
        GatewayRoute::Anywhere => match call(&mut client, shared)? {
            Some(called) => called,
            None => return Ok(()),
        },
    };
    if let Some(both) = locked(&shared.open).get_mut(&id) {
        both.push(server.try_clone()?);
    }
    if shared.ended.load(Ordering::Acquire) {
        return Ok(());
    }
    server.write_all(&first)?;
    let (mut from_client, mut to_client) = (client.try_clone()?, client);
    let mut to_server = server.try_clone()?;
    thread::scope(|scope| {
        scope.spawn(move || {
            let _ = io::copy(&mut from_client, &mut to_server);
            let _ = to_server.shutdown(Shutdown::Write);
        });
        let _ = io::copy(&mut server, &mut to_client);
        let _ = to_client.shutdown(Shutdown::Write);
    });
    Ok(())
}

/// Reads a client's request to the proxy, and connects to the host if it is allowed; returns the
/// connection and what must be sent there first.
fn call(client: &mut TcpStream, shared: &GatewayState) -> io::Result<Option<(TcpStream, Vec<u8>)>> {
    client.set_read_timeout(Some(CALL_LIMIT))?;
    let Some((head, rest)) = read_head(client)? else {
        return answer(client, "400 Bad Request", "this is not a proxy request");
    };
    client.set_read_timeout(None)?;
    let Some(target) = ProxyTarget::parse_request(&head) else {
        return answer(client, "400 Bad Request", "this is not a proxy request");
    };
    let (name, port) = (&target.name, target.port);
    if !shared.hosts.iter().any(|host| host.allows(name, port)) {
        let mut refused = locked(&shared.refused);
        if refused.len() < REFUSED_MAX {
            refused.insert(format!("{name}:{port}"));
        }
        let why = format!(
            "karve lets this agent reach only its model; to allow {name}, add it to hosts in the \
             agent's table in karve.toml\n"
        );
        return answer(client, "403 Forbidden", &why);
    }
    let server = match connect(&target) {
        Ok(server) => server,
        Err(error) => return answer(client, "502 Bad Gateway", &format!("{name}: {error}\n")),
    };
    let mut first = match &target.request {
        None => {
            client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
            Vec::new()
        }
        Some(request) => request.clone().into_bytes(),
    };
    first.extend(rest);
    Ok(Some((server, first)))
}

fn answer<T>(client: &mut TcpStream, status: &str, text: &str) -> io::Result<Option<T>> {
    let size = text.len();
    write!(
        client,
        "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Type: text/plain\r\n\
         Content-Length: {size}\r\n\r\n{text}"
    )?;
    client.shutdown(Shutdown::Write)?;
    Ok(None)
}

/// The head of a request, and the bytes after it; none if it does not end.
fn read_head(client: &mut TcpStream) -> io::Result<Option<(String, Vec<u8>)>> {
    let mut seen = Vec::new();
    let mut part = [0; 4_096];
    loop {
        let end = seen.windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(end) = end {
            let rest = seen.split_off(end + 4);
            return Ok(String::from_utf8(seen).ok().map(|head| (head, rest)));
        }
        if seen.len() > HEAD_BYTES_MAX {
            return Ok(None);
        }
        match client.read(&mut part)? {
            0 => return Ok(None),
            n => seen.extend(part.iter().take(n)),
        }
    }
}

/// Connects to a host: through the proxy that karve's own environment names, if any.
fn connect(target: &ProxyTarget) -> io::Result<TcpStream> {
    let variable = |names: [&str; 2]| names.iter().find_map(|name| env::var(name).ok());
    let proxy = variable(["HTTPS_PROXY", "https_proxy"]).filter(|proxy| !proxy.is_empty());
    let spared = variable(["NO_PROXY", "no_proxy"]).unwrap_or_default();
    let Some(proxy) = proxy.filter(|_| !target.is_spared(&spared)) else {
        return reach(&target.name, target.port);
    };
    let Some(by) = ProxyTarget::of_url(&proxy) else {
        let why = "HTTPS_PROXY is not an address such as http://proxy:3128";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    };
    let mut server = reach(&by.name, by.port)?;
    let (name, port) = (&target.name, target.port);
    write!(server, "CONNECT {name}:{port} HTTP/1.1\r\nHost: {name}:{port}\r\n\r\n")?;
    server.set_read_timeout(Some(CALL_LIMIT))?;
    let head = read_head(&mut server)?.map(|(head, _)| head);
    server.set_read_timeout(None)?;
    let status = head.unwrap_or_default();
    let status = status.lines().next().unwrap_or_default();
    if status.split(' ').nth(1) == Some("200") {
        Ok(server)
    } else {
        Err(io::Error::other(format!("the proxy {} replied {status:?}", by.name)))
    }
}

fn reach(name: &str, port: u16) -> io::Result<TcpStream> {
    let mut why = io::Error::other("the name has no address");
    for address in (name, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CALL_LIMIT) {
            Ok(stream) => return Ok(stream),
            Err(error) => why = error,
        }
    }
    Err(why)
}
