//! `karve contract`: turns a function of a project into a contract.

mod cargo;
mod native;
mod python;

use crate::config;
use crate::config::Overrides;
use crate::detect::contract::{self as plan, ContractPlan, GivenArgs, PlannedArg};
use crate::project::{CONFIG, ProjectArgs};
use crate::{session, ui};
use karve_audit::{Signature, SignatureError, signature};
use karve_core::charter::{SandboxMode, SandboxRule};
use karve_harness::scratch::{ScratchDir, ScratchKind};
use karve_os::error::{CommandError, Result, WithContext};
use karve_os::files;
use karve_os::process::{Command, StopFlag};
use karve_os::sandbox::{CommandPurpose, Sandbox, SandboxPaths};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Largest source file, and largest `karve.toml`.
const SOURCE_BYTES_MAX: u64 = 1 << 20;

/// Where the files that karve adds to a project are.
const ADDED: &str = "karve";

/// Flags for the compiler of a C or C++ file.
const FLAGS: &str = "-O3 -march=native";

/// Where an earlier `karve.toml` is kept.
const EARLIER: &str = "karve.toml.before-contract";

/// Tables of `karve.toml` that a contract replaces.
const REPLACED: [&str; 8] =
    ["target", "sources", "commands", "output", "metric", "cases", "contract", "gate"];

/// Turn a function of your project into a contract, so that karve calls and times it itself
///
/// A project's own test and benchmark are believed as they are. With a contract karve chooses the
/// inputs, checks the results and holds the clock. Types come from the source. The shapes of a C
/// or C++ function come from a few calls on memory that karve watches, those of a Python function
/// from the calls that --run makes; a Rust function needs --shape. The reference is a copy of the
/// kernel as it is now. Adds the directory karve/, and writes karve.toml; an earlier one is kept.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve contract kernel.c:product
  karve contract gemm.c:gemm --value lda=k --case m=512,n=512,k=512
  karve contract src/lib.rs:softmax --shape x=rows,columns --shape y=rows,columns
  karve contract kernel.py:softmax --run \"python3 bench.py\"
  karve contract kernel.c:product --print     shows karve.toml and writes nothing")]
pub struct ContractArgs {
    /// The file, relative to the project, and the function in it
    #[arg(value_name = "FILE:FUNCTION")]
    target: String,
    /// The shape of an argument, in terms of the parameters of a case; "result" is what is returned
    #[arg(long, value_name = "NAME=EXTENT,...")]
    shape: Vec<String>,
    /// An argument that is read and written; for C and C++ karve sees that itself
    #[arg(long, value_name = "NAME")]
    inout: Vec<String>,
    /// The value of a number, in terms of the parameters of a case
    #[arg(long, value_name = "NAME=EXPRESSION")]
    value: Vec<String>,
    /// A case to measure, such as n=1024
    #[arg(long, value_name = "CASE")]
    case: Vec<String>,
    /// Flags for the compiler of a C or C++ file
    #[arg(long, default_value = FLAGS, allow_hyphen_values = true)]
    flags: String,
    /// A command that calls a Python function, such as its benchmark
    #[arg(long, value_name = "COMMAND")]
    run: Option<String>,
    /// Print karve.toml instead of writing files
    #[arg(long)]
    print: bool,
    /// Overwrite the files that an earlier "karve contract" wrote
    #[arg(short, long)]
    force: bool,
}

/// The function, and what is known about it.
struct ContractTarget {
    /// The project.
    dir: PathBuf,
    /// The file, relative to the project.
    file: String,
    function: String,
    source: String,
    signature: Signature,
    given: GivenArgs,
    /// What the compiler and a command that calls the function may do.
    sandbox: Option<Arc<Sandbox>>,
    scratch: ScratchDir,
    stop: StopFlag,
}

impl ContractTarget {
    /// Where a command of this one may write.
    fn out(&self) -> PathBuf {
        let own = self.sandbox.as_ref().map(|sandbox| sandbox.out());
        own.unwrap_or_else(|| self.scratch.path().to_owned())
    }

    /// A command in the project, which it can read. What it writes there is discarded where the
    /// host has sandboxes for that.
    fn command(&self, line: &str) -> Result<Command> {
        let command = Command::shell(line, &self.dir);
        match &self.sandbox {
            Some(sandbox) => {
                let confined = sandbox.confine_trial(CommandPurpose::Measure, &self.dir)?;
                Ok(command.confined(&confined))
            }
            None => Ok(command),
        }
    }
}

/// What is to be written: paths in the project, and contents.
type AddedFiles = Vec<(String, String)>;

impl ContractArgs {
    /// A function whose arguments karve sees by itself, as `FILE:FUNCTION`.
    pub(super) fn of_function(target: String, print: bool) -> Self {
        Self {
            target,
            shape: Vec::new(),
            inout: Vec::new(),
            value: Vec::new(),
            case: Vec::new(),
            flags: FLAGS.to_owned(),
            run: None,
            print,
            force: false,
        }
    }

    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        let stop = StopFlag::new();
        session::watch_signals_at_once(&stop, "stopping")?;
        let target = self.target(place, stop)?;
        let earlier = earlier_config(&target.dir)?;
        let (mut plan, added) = match target.file.rsplit_once('.').map_or("", |(_, end)| end) {
            "c" => native::of_c(&target, &self.flags, false)?,
            "cc" | "cpp" | "cxx" => native::of_c(&target, &self.flags, true)?,
            "rs" => cargo::of_rust(&target)?,
            "py" => python::of_python(&target, self.run.as_deref(), &earlier)?,
            _ => return Err(not_a_kernel(&target.file)),
        };
        self.choose_cases(&mut plan, &earlier)?;
        let text = plan::render_contract(&plan, &kept_tables(&earlier));
        if self.print {
            ui::out(&text);
            return Ok(());
        }
        let hint = "give --shape, --value or --case, or look at it with --print";
        config::check(&text, &target.dir, hint)?;
        self.write(&target.dir, &added, &text)?;
        tell(&plan, &added);
        Ok(())
    }

    fn target(&self, place: &ProjectArgs, stop: StopFlag) -> Result<ContractTarget> {
        let dir = place.here()?;
        let usage = |why: String| {
            CommandError::usage(why).hint("for example \"karve contract kernel.c:product\"")
        };
        let named = self.target.rsplit_once(':').filter(|(_, function)| !function.is_empty());
        let (file, function) =
            named.ok_or_else(|| usage(format!("{} names no function", self.target)))?;
        let file = file.trim_start_matches("./").to_owned();
        let is_inside = Path::new(&file)
            .components()
            .all(|part| matches!(part, std::path::Component::Normal(_)));
        if !is_inside || !crate::detect::is_plain(&file) {
            return Err(usage(format!("{file} is not a plain path inside the project")));
        }
        let real =
            std::fs::canonicalize(dir.join(&file)).context(|| format!("cannot read {file}"))?;
        if !real.starts_with(&dir) {
            return Err(usage(format!("{file} is a link to a file outside the project")));
        }
        let source = files::read_text(&dir.join(&file), SOURCE_BYTES_MAX)
            .context(|| format!("cannot read {file}"))?;
        let signature = signature(&file, &source, function)
            .map_err(|error| no_signature(&file, function, error))?;
        let given = GivenArgs {
            inout: self.inout.clone(),
            ..GivenArgs::parse(&self.shape, &self.value).map_err(usage)?
        };
        if let Some(name) = given.unknown(&signature) {
            return Err(usage(format!("{function} has no argument called {name}")));
        }
        let scratch = ScratchDir::new(ScratchKind::Check, &[])?;
        let site = SandboxPaths::of_commands(&dir, scratch.path());
        let sandbox = Sandbox::open(&sandbox_rule(place), site)?;
        let function = function.to_owned();
        Ok(ContractTarget { dir, file, function, source, signature, given, sandbox, scratch, stop })
    }

    /// The cases of the user, or those of an earlier `karve.toml` that have all parameters, or
    /// those of the plan, or a default.
    fn choose_cases(&self, plan: &mut ContractPlan, earlier: &toml::Table) -> Result<()> {
        let wrong = |why: String| {
            CommandError::usage("the arguments do not fit together").cause(why).hint(
                "give shapes and values as products of parameters: --shape x=n,m --value lda=n",
            )
        };
        let params = plan::params_of(&plan.args).map_err(wrong)?;
        let has_all = |case: &&str| {
            params.iter().all(|name| case.split(',').any(|part| has_name(part, name)))
        };
        let listed = earlier.get("cases").and_then(|cases| cases.get("list"));
        let listed = listed.and_then(toml::Value::as_array).into_iter().flatten();
        let listed: Vec<&str> = listed.filter_map(toml::Value::as_str).filter(has_all).collect();
        let (usual, hidden) = plan::cases_for(&params, &plan.args);
        if !self.case.is_empty() {
            plan.cases = self.case.clone();
        } else if !listed.is_empty() {
            plan.cases = listed.iter().map(|case| (*case).to_owned()).collect();
        } else if plan.cases.is_empty() {
            plan.cases = vec![usual];
        }
        if let Some(case) = plan.cases.iter().find(|case| !has_all(&case.as_str())) {
            return Err(CommandError::usage(format!("the case {case} lacks a parameter"))
                .hint(format!("the parameters are {}: --case \"{hidden}\"", params.join(", "))));
        }
        plan.hidden = vec![hidden];
        Ok(())
    }

    /// Writes all files, or none.
    fn write(&self, dir: &Path, added: &AddedFiles, config: &str) -> Result<()> {
        let taken = added.iter().map(|(path, _)| path).find(|path| dir.join(path).exists());
        if let Some(path) = taken.filter(|_| !self.force) {
            return Err(CommandError::usage(format!("{path} already exists"))
                .hint("overwrite it with \"karve contract --force\", or move it away"));
        }
        let link = added.iter().find_map(|(path, _)| files::link_above(&dir.join(path), dir));
        if let Some(link) = link {
            return Err(CommandError::usage(format!("{} is a symbolic link", link.display()))
                .hint(
                    "remove it: \"karve contract\" writes into directories of the project only",
                ));
        }
        let config_path = dir.join(CONFIG);
        if config_path.exists() && !dir.join(EARLIER).exists() {
            fs::copy(&config_path, dir.join(EARLIER))
                .context(|| format!("cannot keep the earlier {CONFIG} as {EARLIER}"))?;
        }
        let mut written = Vec::new();
        for (path, text) in added {
            let full = dir.join(path);
            let folder = full.parent().unwrap_or(dir);
            let put = fs::create_dir_all(folder)
                .context(|| format!("cannot create {}", folder.display()))
                .and_then(|()| files::write_atomic(&full, text.as_bytes()));
            if let Err(error) = put {
                written.iter().for_each(|path: &PathBuf| drop(fs::remove_file(path)));
                return Err(error);
            }
            written.push(full);
        }
        files::write_atomic(&config_path, config.as_bytes())
    }
}

/// The sandbox that `karve.toml` asks for, or the usual one if there is none that can be read.
fn sandbox_rule(place: &ProjectArgs) -> SandboxRule {
    let charter = place.repo().and_then(|repo| place.load_in(&repo, &Overrides::default()));
    let usual = || SandboxRule { mode: SandboxMode::Auto, ..SandboxRule::default() };
    charter.map_or_else(|_| usual(), |loaded| loaded.charter.sandbox)
}

fn has_name(part: &str, name: &str) -> bool {
    part.split_once('=').is_some_and(|(own, _)| own.trim() == name)
}

fn not_a_kernel(file: &str) -> CommandError {
    CommandError::usage(format!("{file} is not C, C++, Rust or Python"))
        .hint("write [contract] by hand: docs/contract.md; \"karve new --template cuda\" shows one")
}

fn no_signature(file: &str, function: &str, error: SignatureError) -> CommandError {
    let by_hand = "write the contract by hand: docs/contract.md";
    match error {
        SignatureError::Unreadable => not_a_kernel(file),
        SignatureError::NotFound(names) => {
            let hint = match names.is_empty() {
                true => by_hand.to_owned(),
                false => format!("name one of its functions: {}", names.join(", ")),
            };
            CommandError::usage(format!("{file} has no function called {function}")).hint(hint)
        }
        SignatureError::Private => {
            CommandError::usage(format!("{function} of {file} is not visible to other files"))
                .hint("remove \"static\" from it, or make it \"pub\"")
        }
        SignatureError::Type(text) => {
            CommandError::usage(format!("{function} of {file} has a type that karve cannot pass"))
                .cause(text)
                .hint(format!(
                    "a contract passes numbers and arrays of numbers: add a function that takes \
                     those, or {by_hand}"
                ))
        }
    }
}

/// The project's `karve.toml`; empty if there is none.
fn earlier_config(dir: &Path) -> Result<toml::Table> {
    let path = dir.join(CONFIG);
    if !path.exists() {
        return Ok(toml::Table::new());
    }
    let text = files::read_text(&path, SOURCE_BYTES_MAX)
        .context(|| format!("cannot read {}", path.display()))?;
    text.parse().map_err(|error: toml::de::Error| {
        CommandError::usage(format!("{CONFIG} cannot be read"))
            .cause(error.message())
            .hint(format!("fix {CONFIG}, or move it away"))
    })
}

/// What stays of an earlier `karve.toml`, as text.
fn kept_tables(earlier: &toml::Table) -> String {
    let kept = earlier.iter().filter(|(name, _)| !REPLACED.contains(&name.as_str()));
    let kept: toml::Table = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
    toml::to_string(&kept).unwrap_or_default().trim_end().to_owned()
}

fn tell(plan: &ContractPlan, added: &AddedFiles) {
    for arg in &plan.args {
        ui::outln(&format!("  {}", described(arg)));
    }
    let cases = plan.cases.join("; ");
    ui::outln(&format!("  cases: {cases}; hidden: {}", plan.hidden.join("; ")));
    ui::outln(&format!("wrote {CONFIG} and {} files in {ADDED}/", added.len()));
    ui::outln(&format!(
        "next: review {CONFIG}, \"git add {CONFIG} {ADDED} && git commit\", then \"karve doctor\""
    ));
}

/// One argument, in words.
fn described(arg: &PlannedArg) -> String {
    let what = match (&arg.shape, &arg.value) {
        (Some(shape), _) => format!("[{}]", shape.join(", ")),
        (None, value) => format!("= {}", value.as_deref().unwrap_or("?")),
    };
    format!("{:8} {} {} {what}", arg.kind, arg.name, arg.dtype)
}
