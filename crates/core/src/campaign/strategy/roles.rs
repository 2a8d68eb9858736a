//! Which role is asked in the current round, and what is not for it.

use crate::agenda::AgendaItem;
use crate::campaign::{Campaign, RoundSummary};
use crate::hypothesis::Hypothesis;
use crate::profile::classify::with_derived;
use crate::roles::{
    Duty, Role, RoleRequest, RoleTable, RoutingDecision, RoutingReason, named_elsewhere,
    names_work, route,
};

/// Which role is asked in a round, and what it may do.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundRoles {
    /// The decision, with its reasons.
    pub route: RoutingDecision,
    /// The role that states the hypothesis.
    pub proposes: Role,
    /// The role that implements it.
    pub implements: Role,
}

/// Which role is asked in the current round; none in particular if there are no roles. A decision
/// stays for the whole round.
pub fn in_role(campaign: &Campaign) -> Option<RoundRoles> {
    let asks = &campaign.charter()?.asks;
    let table_of_roles = asks.role_table.as_deref()?;
    let before = campaign.current_round().and_then(|round| round.route.as_deref());
    let route = match before {
        Some(route) => route.clone(),
        None => match route(table_of_roles, &request_of(campaign)?) {
            Ok(decision) => planned(asks.planner(), decision),
            Err(refused) => {
                // The charter was refused if it asked for this; the kernel has changed since.
                let general = table_of_roles.general()?.name.clone();
                let says = format!("{}; {general} takes it", refused.describe());
                let mut why = refused.reasons;
                why.push(RoutingReason { rule: "role".to_owned(), text: says });
                RoutingDecision {
                    role: general.clone(),
                    implements: general,
                    why,
                    ..RoutingDecision::default()
                }
            }
        },
    };
    Some(RoundRoles {
        proposes: table_of_roles.role(&route.role)?.clone(),
        implements: table_of_roles.role(&route.implements)?.clone(),
        route,
    })
}

/// The decision with the role that plans, which states the hypothesis and writes nothing.
fn planned(planner: Option<&Role>, mut decision: RoutingDecision) -> RoutingDecision {
    if let Some(planner) = planner {
        let says = format!("{} plans and {} implements", planner.name, decision.implements);
        decision.why.push(RoutingReason { rule: "role".to_owned(), text: says });
        decision.role.clone_from(&planner.name);
    }
    decision
}

/// Why the device or the language rules out an item of the agenda, if they do.
pub(in crate::campaign) fn unroutable(campaign: &Campaign, item: &AgendaItem) -> Option<String> {
    let table_of_roles = campaign.charter()?.asks.role_table.as_deref()?;
    let intent = item_intent(table_of_roles, item)?;
    let request = request_of_words(campaign, intent)?;
    let refused = route(table_of_roles, &request).err()?;
    Some(refused.describe())
}

/// The words of an item, if they name work for a role and items are routed by their own words.
fn item_intent(table_of_roles: &RoleTable, item: &AgendaItem) -> Option<String> {
    let text = format!("{} {}", item.title, item.text);
    (table_of_roles.by_item && names_work(table_of_roles, &text)).then_some(text)
}

/// Why a hypothesis is refused that is for another role than the one that was asked.
pub fn misrouted(
    campaign: &Campaign,
    route: Option<&RoutingDecision>,
    new: &Hypothesis,
) -> Option<String> {
    let table_of_roles = campaign.charter()?.asks.role_table.as_deref()?;
    let role = &route?.implements;
    let text = format!("{} {}", new.title, new.mechanism);
    let (language, writer) = named_elsewhere(table_of_roles, role, &text)?;
    let right = writer.map_or_else(String::new, |right| format!("; {right} is the role for this"));
    Some(format!(
        "\"{}\" is work in {language}, but {role} writes {}{right}",
        new.title,
        table_of_roles.role(role)?.language.as_deref().unwrap_or("any language"),
    ))
}

/// What a campaign asks for in the round under way: its item, in the item's own words, or else
/// what the charter says.
pub fn request_of(campaign: &Campaign) -> Option<RoleRequest> {
    let asks = &campaign.charter()?.asks;
    let table_of_roles = asks.role_table.as_deref()?;
    let task = campaign.task();
    let own = task.and_then(|task| item_intent(table_of_roles, &task.item));
    request_of_words(campaign, own.unwrap_or_else(|| asks.intent.clone()))
}

fn request_of_words(campaign: &Campaign, intent: String) -> Option<RoleRequest> {
    let charter = campaign.charter()?;
    let asks = &charter.asks;
    let table_of_roles = asks.role_table.as_deref()?;
    // A kept round by a role with a language means that the kernel exists in it.
    let written = |round: &RoundSummary| {
        let route = round.route.as_ref().filter(|_| round.verdict.keeps())?;
        table_of_roles.language(&route.language).map(|of| of.name.clone())
    };
    let last = campaign.rounds().iter().rev().find_map(written);
    let own = || match table_of_roles.called(&charter.target.language) {
        Some(language) => language.name.clone(),
        None => charter.target.language.to_lowercase(),
    };
    let kernel = campaign.profile().and_then(|profile| profile.main_kernel());
    Some(RoleRequest {
        intent,
        duty: Duty::Implement,
        arch: asks.arch.clone(),
        op: charter.target.op.clone(),
        kernel: last.unwrap_or_else(own),
        backend: charter.target.backend.clone(),
        counters: kernel.map(with_derived).unwrap_or_default(),
    })
}
