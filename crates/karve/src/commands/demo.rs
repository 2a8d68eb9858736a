//! `karve demo`: runs a whole campaign on an embedded kernel.

use crate::config::Overrides;
use crate::drive::DriveEnd;
use crate::project::ProjectArgs;
use crate::session::{CampaignChoice, CampaignSetup, NewLimits};
use crate::ui::PlainScreen;
use crate::web::CampaignWatch;
use crate::{reports, session, ui, web};
use karve_agents::scripted::SCRIPTED;
use karve_harness::git::{self, CommitNote, NewFile};
use karve_harness::store::CampaignDir;
use karve_os::error::{CommandError, Result, WithContext};
use karve_os::process::StopFlag;
use karve_os::{clock, process};
use std::path::PathBuf;

/// Run a whole campaign on an embedded matrix multiplication
///
/// Needs git, make and a C compiler; no key and no GPU. Copies the example to a scratch
/// directory, runs the built-in strategy on it, and ends with a report. Takes under three minutes
/// on two cores. With "--agent scripted" a recorded agent proposes and implements instead: one
/// change is kept, one is wrong, and one attempt to change the benchmark is refused. Every
/// candidate is still built, gated and measured.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve demo
  karve demo --agent scripted       then: karve show 1 --transcript
  karve demo --into my-first-campaign --rounds 10")]
pub struct DemoArgs {
    /// Copy the example to this directory, which must not exist, instead of a scratch directory
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,
    /// Maximum number of rounds
    #[arg(long, value_name = "N")]
    rounds: Option<u32>,
    /// Who proposes and implements
    #[arg(long, value_enum, default_value = "builtin")]
    agent: DemoAgent,
}

/// The page of the campaign, beside its report.
fn write_page(home: &CampaignDir) -> Result<PathBuf> {
    let path = home.join("report.html");
    let page = web::render_file(&CampaignWatch::open(home.clone())?)?;
    std::fs::write(&path, page).context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// The agent of the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum DemoAgent {
    /// The built-in strategy
    Builtin,
    /// A recorded agent
    Scripted,
}

/// Hours that a recorded agent may take: it ends on its own, so this only bounds a slow host.
const SCRIPTED_HOURS: f64 = 0.25;

/// The embedded example.
const FILES: [(&str, &str); 11] = [
    (".gitignore", include_str!("../../../../examples/matmul/.gitignore")),
    ("Makefile", include_str!("../../../../examples/matmul/Makefile")),
    ("README.md", include_str!("../../../../examples/matmul/README.md")),
    ("bench.c", include_str!("../../../../examples/matmul/bench.c")),
    ("flags.mk", include_str!("../../../../examples/matmul/flags.mk")),
    ("harness.h", include_str!("../../../../examples/matmul/harness.h")),
    ("karve.toml", include_str!("../../../../examples/matmul/karve.toml")),
    ("kernel.c", include_str!("../../../../examples/matmul/kernel.c")),
    ("kernel.h", include_str!("../../../../examples/matmul/kernel.h")),
    ("peak.c", include_str!("../../../../examples/matmul/peak.c")),
    ("test.c", include_str!("../../../../examples/matmul/test.c")),
];

impl DemoArgs {
    /// Runs the command.
    pub fn run(&self) -> Result<()> {
        for tool in ["git", "make", "cc"] {
            if process::find_program(tool).is_none() {
                return Err(CommandError::environment(format!("{tool} is not on PATH")).hint(
                    "install git, make and a C compiler, for example with \"apt install \
                           git build-essential\"",
                ));
            }
        }
        let dir = self.make()?;
        ui::outln(&format!("example   {}", dir.display()));
        let place = ProjectArgs { dir: Some(dir.clone()), campaign: None };
        let overrides = match self.agent {
            DemoAgent::Builtin => Overrides { rounds: self.rounds, ..Overrides::default() },
            DemoAgent::Scripted => Overrides {
                rounds: self.rounds,
                agent: Some(SCRIPTED.to_owned()),
                hours: Some(SCRIPTED_HOURS),
                ..Overrides::default()
            },
        };
        let loaded = place.load(&overrides)?;
        let repo = git::Repo::discover(&dir)?;
        let plan = session::plan(&loaded, &repo, CampaignChoice::New, NewLimits::default())?;
        let setting = CampaignSetup {
            repo,
            root: &loaded.root,
            remotes: &loaded.remotes,
            agents: &loaded.agents,
            agent: None,
            external: None,
            patience_s: None,
        };
        let stop = StopFlag::new();
        session::watch_signals(&stop)?;
        let mut screen = PlainScreen::new();
        let (campaign, home, end) = session::run(plan, setting, &stop, &mut screen)?;
        drop(screen);
        if end == DriveEnd::Paused {
            return Err(session::paused().hint(format!("the campaign is in {}", dir.display())));
        }
        ui::out(&reports::render_terminal_summary(&campaign));
        ui::outln(&format!("files     {}", home.path().display()));
        ui::outln(&format!(
            "page      {}: open it in a browser; \"karve serve\" shows it live",
            write_page(&home)?.display()
        ));
        ui::outln(&format!(
            "next      cd {} && karve serve, karve report, karve log, karve diff, karve verify",
            dir.display()
        ));
        if self.agent == DemoAgent::Scripted {
            ui::outln("          karve show 1 --transcript, and 2, 3, 4: the session logs");
        }
        super::run::outcome(&campaign)
    }

    fn make(&self) -> Result<PathBuf> {
        let dir = match &self.into {
            Some(dir) if dir.exists() => {
                return Err(CommandError::usage(format!("{} already exists", dir.display()))
                    .hint("choose a new directory with --into DIR"));
            }
            Some(dir) => dir.clone(),
            None => tempfile::Builder::new()
                .prefix("karve-demo-")
                .tempdir()
                .context(|| "cannot create a scratch directory".into())?
                .keep(),
        };
        let files: Vec<NewFile> = FILES
            .iter()
            .map(|(path, text)| NewFile {
                path: (*path).to_owned(),
                bytes: text.as_bytes().to_vec(),
                executable: false,
            })
            .collect();
        let note = CommitNote { message: "A naive matrix multiplication\n", date: clock::now_s() };
        git::init_with(&dir, &files, &note)?;
        Ok(dir)
    }
}
