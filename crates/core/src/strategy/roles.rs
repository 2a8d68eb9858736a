//! Who is asked in the round under way, and what is not for them.

use crate::campaign::Campaign;
use crate::hypothesis::Hypothesis;
use crate::roles::{Decision, Reason, Role, named_elsewhere, request_of, route};

/// Who is asked in a round, and what they may do.
#[derive(Clone, Debug, PartialEq)]
pub struct InRole {
    /// The decision, with its reasons.
    pub route: Decision,
    /// Who states the hypothesis.
    pub proposes: Role,
    /// Who realizes it.
    pub implements: Role,
}

/// Who is asked in the round under way; nobody in particular where there are no roles. What was
/// decided once in a round stays.
pub fn in_role(campaign: &Campaign) -> Option<InRole> {
    let asks = &campaign.charter()?.asks;
    let book = asks.book.as_deref()?;
    let before = campaign
        .current_round()
        .and_then(|round| round.route.as_deref());
    let route = match before {
        Some(route) => route.clone(),
        None => match route(book, &request_of(campaign)?) {
            Ok(decision) => decision,
            Err(refused) => {
                // The charter was refused if it asked for this; the kernel has changed since.
                let general = book.general()?.name.clone();
                let says = format!("{}; {general} takes it", refused.describe());
                let mut why = refused.spoke;
                why.push(Reason {
                    rule: "role".to_owned(),
                    says,
                });
                Decision {
                    role: general.clone(),
                    implements: general,
                    why,
                    ..Decision::default()
                }
            }
        },
    };
    Some(InRole {
        proposes: book.role(&route.role)?.clone(),
        implements: book.role(&route.implements)?.clone(),
        route,
    })
}

/// Why a hypothesis is refused that is for another role than the one that was asked.
pub fn misrouted(
    campaign: &Campaign,
    route: Option<&Decision>,
    new: &Hypothesis,
) -> Option<String> {
    let book = campaign.charter()?.asks.book.as_deref()?;
    let role = &route?.implements;
    let text = format!("{} {}", new.title, new.mechanism);
    let (language, writer) = named_elsewhere(book, role, &text)?;
    let right = writer.map_or_else(String::new, |right| {
        format!("; {right} is the role for this")
    });
    Some(format!(
        "\"{}\" is work in {language}, and {role} was asked, which writes {}{right}",
        new.title,
        book.role(role)?
            .language
            .as_deref()
            .unwrap_or("any language"),
    ))
}
