//! `karve roles`: what each role may do, and which role a request is routed to and why.

use crate::config::Overrides;
use crate::library::situation::of_words;
use crate::project::ProjectArgs;
use crate::{roles, ui};
use karve_core::charter::Target;
use karve_core::roles::{
    Duty, Role, RoleRequest, RoleTable, RoutingDecision, RoutingRefusal, address, route,
};
use karve_os::error::{CommandError, ErrorKind, Result, WithContext};
use karve_os::files;
use karve_os::text::safe;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// List the roles, or show which role handles a request, and why
///
/// A role defines what an agent may do, in which language and in which files. With --route, the
/// routing rules choose the role for a request; device, language and operation come from karve.toml
/// unless given as options. If the request is not for the role of --to, exits with 1 and names the
/// right one.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve roles
  karve roles tileir-specialist
  karve roles --classify softmax.py
  karve roles --route \"port it to TileIR\" --device B200 --kernel triton
  karve roles --route \"a Triton softmax\" --device H200 --to cute-dsl-specialist")]
pub struct RolesArgs {
    /// Show one role
    name: Option<String>,
    /// Show which role handles this request, in words
    #[arg(long, value_name = "TEXT", conflicts_with = "name")]
    route: Option<String>,
    /// The device [default: from karve.toml]
    #[arg(long, requires = "route")]
    device: Option<String>,
    /// The language the kernel is written in, or "none" [default: from karve.toml]
    #[arg(long, requires = "route")]
    kernel: Option<String>,
    /// The operation [default: from karve.toml]
    #[arg(long, requires = "route")]
    op: Option<String>,
    /// Show the class of a Triton kernel for the TileIR backend, and configurations to try
    #[arg(long, value_name = "FILE", conflicts_with_all = ["name", "route"])]
    classify: Option<PathBuf>,
    /// Check whether this role is the right one
    #[arg(long, value_name = "ROLE", requires = "route")]
    to: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The routing decision.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum RoutingOutcome {
    Routed(RoutingDecision),
    Refused(RoutingRefusal),
}

impl RolesArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        if let Some(file) = &self.classify {
            return self.print_class(&place.here()?.join(file));
        }
        let loaded = match place.config() {
            Ok(_) => Some(place.load(&Overrides::default())?),
            Err(_) => None,
        };
        let asks = loaded.as_ref().map(|loaded| &loaded.charter.asks);
        let table_of_roles = match asks.and_then(|asks| asks.role_table.as_deref()) {
            Some(table_of_roles) => table_of_roles.clone(),
            None => roles::built_in()?,
        };
        if let Some(intent) = &self.route {
            let target = loaded.as_ref().map(|loaded| &loaded.charter.target);
            return self
                .print_route(&table_of_roles, &self.request(&table_of_roles, intent, target));
        }
        let shown: Vec<&Role> = match &self.name {
            Some(name) => vec![table_of_roles.role(name).ok_or_else(|| unknown(name))?],
            None => table_of_roles.role.iter().collect(),
        };
        if self.json {
            ui::out_json(&shown);
            return Ok(());
        }
        for role in shown {
            let agent = asks.and_then(|asks| asks.agents.get(&role.name));
            print_role(role, agent.map(String::as_str), self.name.is_some());
        }
        Ok(())
    }

    /// The class of a kernel for the TileIR backend, which is phase 2 of its five.
    fn print_class(&self, file: &Path) -> Result<()> {
        let text = files::read_text(file, files::WRITTEN_BYTES_MAX)
            .context(|| format!("cannot read {}", file.display()))?;
        let Some(class) = roles::tileir::classify(&text) else {
            return Err(CommandError::new(ErrorKind::Negative, "this is no Triton kernel")
                .hint("name the file of a kernel under @triton.jit: --classify FILE"));
        };
        if self.json {
            ui::out_json(&class);
            return Ok(());
        }
        let (low, high) = class.expected;
        ui::outln(&format!(
            "{} (confidence {:.2}): expect {low:.1}x to {high:.1}x with ENABLE_TILE=1",
            class.name, class.confidence
        ));
        if class.needs_tma {
            ui::outln("  loads by TMA are mandatory: without them it loses 20% or more");
        }
        for config in &class.configs {
            let tile = config.tile.iter().map(|(name, size)| format!("{name}={size}"));
            let tile = tile.collect::<Vec<_>>().join(" ");
            let (ctas, occupancy) = (config.num_ctas, config.occupancy);
            ui::outln(&format!("  {tile} num_ctas={ctas} occupancy={occupancy}"));
        }
        Ok(())
    }

    fn request(
        &self,
        table_of_roles: &RoleTable,
        intent: &str,
        target: Option<&Target>,
    ) -> RoleRequest {
        let own = |of: fn(&Target) -> &String| target.map(of).cloned().unwrap_or_default();
        let op = self.op.clone().unwrap_or_else(|| own(|t| &t.op));
        let device = self.device.clone().unwrap_or_else(|| own(|t| &t.device));
        let language = match self.kernel.as_deref() {
            Some("none") => String::new(),
            Some(language) => language.to_owned(),
            None => own(|t| &t.language),
        };
        let kernel = table_of_roles.called(&language).map(|of| of.name.clone());
        let at = of_words(&op, &language, &language, &device);
        RoleRequest {
            intent: intent.to_owned(),
            duty: Duty::Implement,
            arch: roles::arch_in(&at),
            op,
            kernel: kernel.unwrap_or_else(|| language.to_lowercase()),
            ..RoleRequest::default()
        }
    }

    fn print_route(&self, table_of_roles: &RoleTable, request: &RoleRequest) -> Result<()> {
        let answer = match &self.to {
            Some(to) => address(table_of_roles, to, request),
            None => route(table_of_roles, request),
        };
        let spoke = match &answer {
            Ok(decision) => &decision.why,
            Err(refused) => &refused.reasons,
        };
        if !self.json {
            for reason in spoke {
                ui::outln(&format!("{:<12} {}", reason.rule, safe(&reason.text, 400)));
            }
        }
        let said = answer.as_ref().map(RoutingDecision::describe).map_err(RoutingRefusal::describe);
        if self.json {
            ui::out_json(&match answer {
                Ok(decision) => RoutingOutcome::Routed(decision),
                Err(refused) => RoutingOutcome::Refused(refused),
            });
        }
        match said {
            Ok(who) if !self.json => ui::outln(&format!("routed to    {who}")),
            Ok(_) => {}
            Err(why) => {
                return Err(CommandError::new(ErrorKind::Negative, why)
                    .hint("\"karve roles\" shows what each role is for"));
            }
        }
        Ok(())
    }
}

fn unknown(name: &str) -> CommandError {
    CommandError::usage(format!("there is no role {name:?}")).hint("\"karve roles\" lists them")
}

fn print_role(role: &Role, agent: Option<&str>, whole: bool) {
    let may: Vec<&str> = role.may.iter().map(|duty| duty.name()).collect();
    ui::outln(&format!("{:<24} {}", role.name, role.title));
    let mut facts = vec![format!("may {}", may.join(", "))];
    facts.extend(role.language.iter().map(|language| format!("writes {language}")));
    facts.extend(agent.map(|agent| format!("handled by {}", safe(agent, 60))));
    ui::outln(&format!("{:<24} {}", "", facts.join("; ")));
    if !whole {
        return;
    }
    if !role.writes.is_empty() {
        let writes = safe(&role.writes.join(", "), 400);
        ui::outln(&format!("{:<24} files {writes}", ""));
    }
    ui::outln(&format!("{:<24} knowledge for {}", "", role.knowledge.describe()));
    for rule in &role.rules {
        ui::outln(&format!("{:<24} - {rule}", ""));
    }
}
