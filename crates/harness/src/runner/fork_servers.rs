//! Processes that Python workers are forked from, one for each interpreter and environment.

use karve_os::error::{CommandError, ErrorKind, Result};
use karve_os::process::{self, ChildProcess, Command, ForkServer, StopFlag};
use karve_os::sync::locked;
use std::sync::Mutex;

/// Variables that set where compiled kernels are cached.
pub(super) const CACHES: [&str; 7] = [
    "TRITON_CACHE_DIR",
    "CUDA_TILE_CACHE_DIR",
    "CUTE_DSL_CACHE_DIR",
    "TORCHINDUCTOR_CACHE_DIR",
    "TORCH_EXTENSIONS_DIR",
    "CUDA_CACHE_PATH",
    "NUMBA_CACHE_DIR",
];

/// The variable that sets where compilers write meanwhile.
pub(super) const TEMPORARY: &str = "TMPDIR";

/// The servers of this process, by their commands.
pub(super) static SERVERS: Mutex<Vec<(Command, ForkServer)>> = Mutex::new(Vec::new());

/// Starts a server, if there is none like it.
pub(super) fn start(server: Command, stop: &StopFlag) -> Result<()> {
    let mut servers = locked(&SERVERS);
    if !servers.iter().any(|(own, _)| is_same_server(own, &server)) {
        let started = ForkServer::start(&server, stop)?;
        servers.push((server, started));
    }
    Ok(())
}

/// Starts a worker by forking it from a server, which is started if there is none, or if it ended.
/// Only one is started, whoever needs it at the same time.
pub(super) fn forked(server: &Command, command: &Command, stop: &StopFlag) -> Result<ChildProcess> {
    let mut servers = locked(&SERVERS);
    let found = servers.iter().find(|(own, _)| is_same_server(own, server));
    if let Some(child) = found.and_then(|(_, found)| found.forked(command, stop).ok()) {
        return Ok(child);
    }
    servers.retain(|(own, _)| !is_same_server(own, server));
    servers.push((server.clone(), ForkServer::start(server, stop)?));
    match servers.last() {
        Some((_, fresh)) => fresh.forked(command, stop),
        None => Err(CommandError::new(ErrorKind::Bug, "no process that forks workers")),
    }
}

/// Whether two servers import the same. A worker gets its own directory and caches.
pub(super) fn is_same_server(one: &Command, other: &Command) -> bool {
    let interpreter = |command: &Command| match &command.program {
        process::Program::Argv(args) => args.first().cloned(),
        process::Program::Shell(_) | process::Program::Line(_) => None,
    };
    let is_own = |name: &str| CACHES.contains(&name) || name == TEMPORARY;
    let imports = |command: &Command| {
        let variables = command.env.iter().filter(|(name, _)| !is_own(name));
        (interpreter(command), variables.cloned().collect::<Vec<_>>())
    };
    imports(one) == imports(other)
}
