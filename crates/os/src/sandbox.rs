//! What commands and agents may see and touch: turns the user's settings and the host's
//! capabilities into namespace sandboxes and confinements.
//!
//! A campaign has one namespace sandbox for the project's commands. In it everything is read-only
//! except the worktrees and a private directory; the user's checkout, the campaigns, home and
//! temporary files are hidden. While something is timed, not even the worktree is writable. Tests
//! get a sandbox with an overlay on their worktree, which is discarded with the sandbox, and an
//! agent gets a sandbox for every turn.
//!
//! ```text
//! view         what of the host is hidden, and what is visible anyway
//! environment  which variables are passed on
//! private      a private home and temporary files, empty before every command
//! hosts        which hosts an agent may reach
//! gateway      the connection to those hosts, and to no others
//! ```

mod environment;
mod gateway;
mod hosts;
mod private;
mod view;

pub use self::gateway::Gateway;
pub use self::hosts::{AllowedHost, NetworkAccess};
pub use self::private::PrivateDirs;
pub use self::private::empty;
pub use self::view::{Checkout, SandboxPaths};

use crate::error::{CommandError, Result, WithContext};
use crate::process::{
    CommandPermissions, Confinement, ConfinementSupport, EnvPolicy, MountAccess, NamespaceSandbox,
    NamespaceView, ResourceLimits, has_accelerators,
};
use crate::sync::locked;
use karve_core::charter::{Caches, Charter, SandboxMode, SandboxRule};
use karve_core::word_lists::WordLists;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

/// The default limit on concurrent processes of one command.
pub const PROCESSES_MAX: u32 = 4_096;

/// What no layer locks if kernels run on a device.
pub const OPEN_ON_DEVICE: &str = "kernels on a GPU use the files of its driver, can write to all \
                                  memory there that karve shares with them, and kernels in Python \
                                  start compilers, which write to a cache of their tree";

/// The size limit of one file, in bytes.
const FILE_BYTES_MAX: u64 = 64 << 30;

/// The share of the machine's memory that one command may use.
const MEMORY_SHARE: f64 = 0.9;

/// A list of `names.txt`: variables, directories and files of the host.
fn names(list: &str) -> &'static [&'static str] {
    static LISTS: LazyLock<WordLists> =
        LazyLock::new(|| WordLists::parse(include_str!("sandbox/names.txt")));
    LISTS.list(list)
}

/// What the host offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSupport {
    /// What the kernel offers every process.
    pub kernel: ConfinementSupport,
    /// Why no namespace sandbox can be created, if none can.
    pub no_namespace: Option<String>,
}

impl HostSupport {
    /// Probes it, once.
    pub fn of_host() -> &'static Self {
        static OFFER: OnceLock<HostSupport> = OnceLock::new();
        OFFER.get_or_init(|| Self {
            kernel: ConfinementSupport::ask(),
            no_namespace: NamespaceSandbox::make(&NamespaceView::default())
                .err()
                .map(|error| error.causes.join(": ")),
        })
    }

    /// The available layers, each in a few words.
    pub fn layers(&self) -> Vec<String> {
        let mut layers = Vec::new();
        if self.no_namespace.is_none() {
            layers.push("namespaces".to_owned());
        }
        if self.kernel.landlock > 0 {
            layers.push(format!("landlock {}", self.kernel.landlock));
        }
        if self.kernel.filters {
            layers.push("seccomp".to_owned());
        }
        layers.push("limits".to_owned());
        layers.push("clean environment".to_owned());
        layers
    }

    /// The unavailable layers, by name.
    fn lacks(&self) -> Vec<&'static str> {
        let layers = [
            ("namespaces", self.no_namespace.is_none()),
            ("landlock", self.kernel.landlock > 0),
            ("seccomp", self.kernel.filters),
        ];
        let lacking = layers.into_iter().filter(|(_, there)| !there);
        lacking.map(|(name, _)| name).collect()
    }

    /// What is missing, each with the consequence.
    pub fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        if let Some(why) = &self.no_namespace {
            missing.push(format!(
                "no namespaces ({why}), so the host's processes and /dev/shm are visible"
            ));
        }
        if self.kernel.landlock == 0 {
            let lacks = "no Landlock, so a benchmark can write in its worktree, and a kernel's \
                         process can read your files";
            missing.push(lacks.to_owned());
        }
        if !self.kernel.filters {
            missing.push("no seccomp, so dangerous system calls are allowed".to_owned());
        }
        missing
    }

    /// Whether it protects other files from a command at all.
    fn is_any(&self) -> bool {
        self.no_namespace.is_none() || self.kernel.landlock > 0
    }
}

/// What a command is for; each kind may write to different places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CommandPurpose {
    /// It may write in its worktree.
    Build,
    /// It may write in its worktree, but the changes are discarded.
    Test,
    /// It may write only those parts of its worktree that the charter names.
    Measure,
    /// Like a test, and it may also use the hardware performance counters.
    Profile,
}

/// The sandboxes of the project's commands; they differ in whether worktrees are writable.
#[derive(Debug)]
struct CommandNamespaces {
    writing: Arc<NamespaceSandbox>,
    measuring: Arc<NamespaceSandbox>,
}

/// The sandbox of a campaign, or of any other work in worktrees of the project.
#[derive(Debug)]
pub struct Sandbox {
    rule: SandboxRule,
    site: SandboxPaths,
    offer: &'static HostSupport,
    namespaces: Option<CommandNamespaces>,
    private: PrivateDirs,
    prepared: Mutex<BTreeMap<(CommandPurpose, PathBuf), Confinement>>,
}

impl Sandbox {
    /// The sandbox of a project whose worktrees and files are in their own directory.
    pub fn of(
        checkout: &Checkout<'_>,
        campaigns: &Path,
        dir: &Path,
        charter: &Charter,
    ) -> Result<Option<Arc<Self>>> {
        Self::open(&charter.sandbox, SandboxPaths::of(checkout, campaigns, dir, charter))
    }

    /// Creates the sandbox that a rule asks for; none if it asks for none or the host offers
    /// nothing. The worktrees' directory and the scratch directory are created.
    pub fn open(rule: &SandboxRule, site: SandboxPaths) -> Result<Option<Arc<Self>>> {
        let offer = HostSupport::of_host();
        match rule.mode {
            SandboxMode::Off => return Ok(None),
            SandboxMode::Auto if !offer.is_any() => return Ok(None),
            SandboxMode::Auto => {}
            SandboxMode::Require => require(offer)?,
        }
        let site = site.settled()?;
        let private = PrivateDirs::make(&site.scratch.join("private"))?;
        let mut sandbox = Self {
            rule: rule.clone(),
            offer,
            namespaces: None,
            private,
            prepared: Mutex::new(BTreeMap::new()),
            site,
        };
        if offer.no_namespace.is_none() {
            let writing = sandbox.make_namespace(MountAccess::Write)?;
            // Write access to part of a worktree needs a fully writable worktree; Landlock then
            // denies writes to the rest.
            let inside = sandbox.rule.write.iter().any(|path| view::is_inside(path));
            let measuring =
                if inside { writing.clone() } else { sandbox.make_namespace(MountAccess::Read)? };
            sandbox.namespaces = Some(CommandNamespaces { writing, measuring });
        }
        Ok(Some(Arc::new(sandbox)))
    }

    fn make_namespace(&mut self, worktrees: MountAccess) -> Result<Arc<NamespaceSandbox>> {
        let view = view::of_commands(&self.site, &self.rule, &self.private, worktrees)?;
        let room = Arc::new(NamespaceSandbox::make(&view)?);
        self.private.mount_in(&room, &view);
        Ok(room)
    }

    fn namespace_for(&self, purpose: CommandPurpose) -> Option<&Arc<NamespaceSandbox>> {
        let rooms = self.namespaces.as_ref()?;
        Some(match purpose {
            CommandPurpose::Build | CommandPurpose::Test | CommandPurpose::Profile => {
                &rooms.writing
            }
            CommandPurpose::Measure => &rooms.measuring,
        })
    }

    /// The environment variables of karve that a kernel's process gets: those of commands, and
    /// what libraries of kernels ask for.
    pub fn variables_of_kernel(&self) -> EnvPolicy {
        environment::of_kernel(&self.rule)
    }

    /// What a command in a worktree may do. Private directories of earlier commands are emptied.
    pub fn confine(&self, purpose: CommandPurpose, tree: &Path) -> Result<Confinement> {
        let tree = view::settled(tree);
        let home = self.home_of(&tree);
        self.private.clean(&home, self.rule.caches)?;
        let key = (purpose, tree);
        let mut prepared = locked(&self.prepared);
        if let Some(confinement) = prepared.get(&key) {
            return Ok(confinement.clone());
        }
        let room = self.namespace_for(purpose);
        let confinement = self.prepare(purpose, &key.1, &home, room)?;
        // A recreated worktree has the same name but is another directory.
        if prepared.len() >= PREPARED_MAX {
            prepared.clear();
        }
        prepared.insert(key, confinement.clone());
        Ok(confinement)
    }

    /// Drops what was prepared for a worktree that has been removed.
    pub fn forget(&self, tree: &Path) {
        let tree = view::settled(tree);
        let mut prepared = locked(&self.prepared);
        prepared.retain(|(_, of), _| *of != tree);
    }

    fn prepare(
        &self,
        purpose: CommandPurpose,
        tree: &Path,
        home: &str,
        room: Option<&Arc<NamespaceSandbox>>,
    ) -> Result<Confinement> {
        let mut write = self.private.places(home);
        write.push(self.site.out());
        // In a sandbox with an overlay on the worktree, that is not the directory that karve sees.
        let mut write_in_room = Vec::new();
        if purpose != CommandPurpose::Measure {
            write.push(tree.to_owned());
            write_in_room.push(tree.to_owned());
        }
        if has_accelerators() {
            // Everything except processes is read-only there.
            write_in_room.push(PathBuf::from("/proc"));
        }
        write.extend(view::written(&self.rule, &tree.join(&self.site.workdir))?);
        let mut read = Vec::new();
        if room.is_none() {
            read = view::readable(&self.site, &self.rule)?;
            read.push(tree.to_owned());
            write.extend(view::usual_devices());
        }
        let grants = CommandPermissions {
            write,
            read,
            write_in_namespace: write_in_room,
            network: self.rule.network,
            nested: false,
            counters: purpose == CommandPurpose::Profile,
            bounds: bounds(&self.rule),
        };
        let variables = environment::of_command(&self.rule, &self.private.variables(home));
        Confinement::new(self.offer.kernel, room, &grants, variables)
    }

    /// What the tests of a worktree may do: write in it, in a sandbox that discards the changes. On
    /// a host without such sandboxes, they write in the worktree itself.
    pub fn confine_trial(&self, purpose: CommandPurpose, tree: &Path) -> Result<Confinement> {
        if self.namespaces.is_none() {
            return self.confine(purpose, tree);
        }
        let tree = view::settled(tree);
        let home = self.home_of(&tree);
        self.private.clean(&home, self.rule.caches)?;
        let view = view::of_trial(&self.site, &self.rule, &self.private, &tree)?;
        match NamespaceSandbox::make(&view) {
            Ok(room) => self.prepare(purpose, &tree, &home, Some(&Arc::new(room))),
            Err(_) => self.confine(purpose, &tree),
        }
    }

    fn home_of(&self, tree: &Path) -> String {
        match self.rule.caches {
            Caches::Run => "home".to_owned(),
            Caches::Tree => home_of(tree),
        }
    }

    /// What an agent may do in one turn: change its worktree, reply in its notes, and see neither
    /// the campaign nor the checkout. If it may reach only some hosts, it uses a gateway, which
    /// must be kept as long as it runs; on a host without namespaces this is not enforced.
    pub fn confine_agent(&self, places: &AgentPaths<'_>) -> Result<(Confinement, Option<Gateway>)> {
        let (tree, notes) = (view::settled(places.tree), view::settled(places.notes));
        self.private.clean("home", Caches::Run)?;
        let room = match &self.namespaces {
            None => None,
            Some(_) => {
                let own = AgentPaths { tree: &tree, notes: &notes, ..*places };
                let view = view::of_agent(&self.site, &self.rule, &self.private, &own)?;
                Some(Arc::new(NamespaceSandbox::make(&view)?))
            }
        };
        let mut write = self.private.places("home");
        write.extend([tree.clone(), notes.clone()]);
        write.extend(view::written(&self.rule, &tree)?);
        write.extend(view::agent_homes());
        write.extend(places.write.iter().map(|path| view::settled(path)));
        let home: Vec<PathBuf> = view::home().into_iter().collect();
        let mut read = Vec::new();
        if room.is_none() {
            read = view::readable(&self.site, &self.rule)?;
            read.extend(view::settings("etc-agents").into_iter().map(|one| one.from));
            read.extend([tree, notes]);
            read.extend(places.read.iter().map(|path| view::settled(path)));
            write.extend(view::usual_devices());
        }
        let gateway = match (&room, places.hosts) {
            (Some(room), Some(hosts)) if self.rule.agent_network => {
                let opened = Gateway::open(room, hosts);
                Some(opened.context(|| "cannot open the gateway to the model".into())?)
            }
            _ => None,
        };
        let grants = CommandPermissions {
            write,
            read,
            write_in_namespace: home,
            network: self.rule.agent_network,
            nested: true,
            counters: false,
            bounds: bounds(&self.rule),
        };
        let variables = environment::of_agent(&self.rule, &self.private.variables("home"));
        let confinement = Confinement::new(self.offer.kernel, room.as_ref(), &grants, variables)?;
        Ok((confinement, gateway))
    }

    /// Whether a file that an agent's own command names may be visible to it: not if it is in the
    /// checkout or the campaigns, which hold more than the agent may know.
    pub fn may_show(&self, file: &Path) -> bool {
        let file = view::settled(file);
        let kept = [&self.site.checkout, &self.site.campaigns];
        !kept.iter().any(|dir| file.starts_with(dir))
    }

    /// Whether a path of the host is hidden from an agent unless it is named.
    pub fn hides(&self, path: &Path) -> bool {
        view::hides(&self.site, &self.rule, &view::settled(path))
    }

    /// What `sandbox.read` names.
    pub fn readable(&self) -> Vec<PathBuf> {
        let project = self.site.checkout.join(&self.site.workdir);
        self.rule.read.iter().map(|path| view::resolve_path(path, &project)).collect()
    }

    /// Where `{out}` may be written.
    pub fn out(&self) -> PathBuf {
        self.site.out()
    }
}

/// Where an agent works, and what its program needs.
#[derive(Clone, Copy, Debug)]
pub struct AgentPaths<'a> {
    /// Its worktree.
    pub tree: &'a Path,
    /// Where its brief and its reply are.
    pub notes: &'a Path,
    /// What its program reads, such as its bundled packages.
    pub read: &'a [PathBuf],
    /// Where its program keeps its credentials, besides the usual places.
    pub write: &'a [PathBuf],
    /// The hosts that it may reach; all that the rule allows if none are named.
    pub hosts: Option<&'a [AllowedHost]>,
}

impl<'a> AgentPaths<'a> {
    /// A worktree and notes, and nothing else.
    pub fn of(tree: &'a Path, notes: &'a Path) -> Self {
        Self { tree, notes, read: &[], write: &[], hosts: None }
    }
}

/// The environment variables of karve that an agent of a known kind gets: what tools need, its
/// own, and what `sandbox.env` names.
pub fn variables_of_agent(sandbox: Option<&Sandbox>, own: &[&str]) -> EnvPolicy {
    let more = sandbox.map_or(&[][..], |sandbox| &sandbox.rule.env);
    environment::of_kind(more, own)
}

/// How many confinements are kept for the next command of the same kind.
const PREPARED_MAX: usize = 64;

/// The layers that are active for a rule on this host, for the log and the report.
pub fn active(rule: &SandboxRule) -> String {
    let offer = HostSupport::of_host();
    match rule.mode {
        SandboxMode::Off => "off".into(),
        SandboxMode::Auto if !offer.is_any() => "none: the host offers nothing".into(),
        SandboxMode::Auto | SandboxMode::Require => {
            let mut text = offer.layers().join(", ");
            let lacks = offer.lacks();
            if !lacks.is_empty() {
                text += &format!("; without {}", lacks.join(", "));
            }
            text
        }
    }
}

/// The warning for a user who did not turn the sandbox off: one line, if anything is missing.
pub fn warning(rule: &SandboxRule) -> Option<String> {
    let missing = HostSupport::of_host().missing();
    (rule.mode == SandboxMode::Auto && !missing.is_empty()).then(|| {
        format!("note: the sandbox is incomplete: {}; see \"karve doctor\"", missing.join("; "))
    })
}

/// Refuses a rule that this host cannot enforce.
pub fn can_hold(rule: &SandboxRule) -> Result<()> {
    match rule.mode {
        SandboxMode::Require => require(HostSupport::of_host()),
        SandboxMode::Auto | SandboxMode::Off => Ok(()),
    }
}

fn require(offer: &HostSupport) -> Result<()> {
    let missing = offer.missing();
    if missing.is_empty() {
        return Ok(());
    }
    let mut error = CommandError::environment("the host cannot confine commands as required");
    for one in missing {
        error = error.cause(one);
    }
    Err(error
        .hint("set sandbox.mode = \"auto\" in karve.toml to use what the host offers")
        .hint("in a container, start it with --cap-add SYS_ADMIN; see SECURITY.md"))
}

fn bounds(rule: &SandboxRule) -> ResourceLimits {
    let gib = |gib: f64| (gib * f64::from(1 << 30)) as u64;
    ResourceLimits {
        memory_bytes: rule.memory_gib.map(gib),
        memory_sum_bytes: rule.memory_gib.map(gib).or_else(most_memory),
        processes: Some(rule.processes.unwrap_or(PROCESSES_MAX)),
        file_bytes: Some(FILE_BYTES_MAX),
        open_files: None,
    }
}

/// The default memory limit of one command.
pub fn most_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some((kib * 1_024.0 * MEMORY_SHARE) as u64)
}

/// The home directory of a worktree's commands; its name is equally long for both arms of a duel.
fn home_of(tree: &Path) -> String {
    let name = tree.file_name().unwrap_or_default().to_string_lossy();
    format!("home-{name}")
}
