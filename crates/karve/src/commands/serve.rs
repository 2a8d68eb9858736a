//! `karve serve`: pages of all campaigns, live.

use crate::project::ProjectArgs;
use crate::web::{self, Actions};
use crate::{loopback, ui};
use karve_os::error::{Result, WithContext};
use karve_os::process::{self, Command, StopFlag};
use std::net::SocketAddr;
use std::time::Duration;

/// Time that opening a browser may take.
const OPEN_TIME: Duration = Duration::from_secs(10);

/// Show all campaigns in a browser, live
///
/// Serves pages on loopback, for browsers that know the token in the printed address. They need
/// no network: everything is in this program. From another host, forward the port:
/// ssh -L 7712:127.0.0.1:7712 HOST.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve serve
  karve serve --at 127.0.0.1:7712 --allow-actions
  karve report --html report.html       the same as one file, without a server")]
pub struct ServeArgs {
    /// The loopback address to serve on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0",
        value_parser = loopback::parse_address)]
    at: SocketAddr,
    /// Let pages answer questions of a campaign and stop it after its step
    #[arg(long)]
    allow_actions: bool,
    /// Open the page in a browser
    #[arg(long)]
    open: bool,
}

impl ServeArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        let (root, repo) = (place.root()?, place.repo().ok());
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .context(|| "cannot start the server".to_owned())?;
        runtime.block_on(async {
            let listener = loopback::listen(self.at, "--at").await?;
            let at = listener.local_addr().context(|| "cannot get the address".to_owned())?;
            let token = loopback::fresh_token()?;
            let page = match &place.campaign {
                Some(_) => format!("/c/{}", place.pick()?.name()),
                None => "/".to_owned(),
            };
            let address = format!("http://{at}{page}?token={token}");
            ui::outln(&address);
            ui::note("open it in a browser; Ctrl-C ends the server");
            if self.open {
                open(&address);
            }
            let actions = if self.allow_actions { Actions::Allowed } else { Actions::ReadOnly };
            web::serve((root, repo), listener, (token, actions)).await
        })
    }
}

/// Opens a browser, if this host has a way to do that.
fn open(address: &str) {
    let opener = ["xdg-open", "open"].into_iter().find_map(process::find_program);
    let opened = opener.map(|opener| {
        let here = std::env::temp_dir();
        let args = [opener.into_os_string(), address.into()];
        let command = Command::argv(args, &here).limit(OPEN_TIME);
        process::run(&command, &StopFlag::new())
    });
    if !opened.is_some_and(|opened| opened.is_ok_and(|ran| ran.exit.success())) {
        ui::note("no browser could be opened; open the address yourself");
    }
}
