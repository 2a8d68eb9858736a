//! Roles: who may do what in a campaign, in which language and in which files, as data; and which
//! role is asked, with every reason.
//!
//! The role table holds the roles of the published workflows, the languages they write, and the
//! rules that route a request to a role. The table itself is data from elsewhere.

mod framework;
mod request;
mod review;
mod routing;
#[cfg(test)]
pub(crate) mod tests;

pub use framework::wrong_language_files;
pub use request::{DeviceArch, RoleRequest};
pub use review::{Review, ReviewAdvice, ReviewSignal, SignalAssessment, Stance};
pub(crate) use routing::names_work;
pub use routing::{
    RoutingDecision, RoutingReason, RoutingRefusal, address, named_elsewhere, route,
};

use crate::knowledge::{KnownEntry, Scope};
use serde::{Deserialize, Serialize};

/// Something that a role may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Duty {
    /// State a hypothesis.
    Propose,
    /// Change files.
    #[default]
    Implement,
    /// Review a change and raise objections.
    Review,
    /// Say why a kernel is slow.
    Profile,
    /// State the hypotheses and their steps for the roles that implement them.
    Plan,
}

names!(Duty {
    Propose => "propose",
    Implement => "implement",
    Review => "review",
    Profile => "profile",
    Plan => "plan",
});

/// Who may do what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Role {
    /// Its name.
    pub name: String,
    /// Its names in the published workflow.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aka: Vec<String>,
    /// The published workflow it belongs to.
    pub system: String,
    /// What it is, in one line.
    pub title: String,
    /// What it may do.
    pub may: Vec<Duty>,
    /// The language it writes; any language if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// Globs of the files that it may change, among the editable ones.
    pub writes: Vec<String>,
    /// Which library entries it gets: those that name one of these, or no language.
    #[serde(skip_serializing_if = "Scope::is_everywhere")]
    pub knowledge: Scope,
    /// Words that request it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub intents: Vec<String>,
    /// Words that request it where no language is named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub topics: Vec<String>,
    /// What it must know for its task, one line each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
}

/// A language in which kernels are written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Language {
    /// Its name.
    pub name: String,
    /// Other names for it.
    pub words: Vec<String>,
    /// The language in which a kernel must exist first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub built_on: Option<String>,
    /// Line prefixes by which its files are recognized.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<String>,
    /// What it needs to run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<LanguageNeed>,
    /// Settings of the environment, such as `BACKEND=0`, under each of which a kernel must be
    /// right, in this order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<String>,
    /// When to switch to another language.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub leave: Vec<LanguageFallback>,
    /// What it is and what it is used for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// The device requirements of a language.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LanguageNeed {
    /// Only for these operations or families; for all if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub op: Vec<String>,
    /// The family of architectures.
    pub family: String,
    /// The lowest number in the family that works.
    pub at_least: u32,
    /// Higher numbers that do not work.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not: Vec<u32>,
    /// Why.
    pub why: String,
}

/// A condition under which a language cannot do what a kernel needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LanguageFallback {
    /// A condition on counters.
    pub when: String,
    /// The language to switch to.
    pub to: String,
    /// Why.
    pub why: String,
}

/// A condition on counters that calls for a role.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RoleTrigger {
    /// A condition on counters.
    pub when: String,
    /// The role.
    pub role: String,
    /// Why.
    pub why: String,
}

/// The language of a new kernel, if no preference is given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DefaultLanguage {
    /// The family of architectures; any if empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub family: String,
    /// The lowest number in the family.
    pub at_least: u32,
    /// The language.
    pub language: String,
    /// Why.
    pub why: String,
}

/// Roles, languages, and the rules between them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RoleTable {
    /// Whether each item of an agenda is routed by its own words; older charters route all items
    /// by the words of the campaign.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub by_item: bool,
    /// The roles; the first that may implement and has no language is the fallback.
    pub role: Vec<Role>,
    /// The languages.
    pub language: Vec<Language>,
    /// Conditions that call for a role; the first that holds decides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub call: Vec<RoleTrigger>,
    /// Languages of new kernels; the first that fits decides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub usual: Vec<DefaultLanguage>,
}

impl Role {
    /// Whether it may do that.
    pub fn may(&self, duty: Duty) -> bool {
        self.may.contains(&duty)
    }

    /// Whether a library entry is for it. An entry that names no language is for all roles.
    pub fn gets(&self, known: &KnownEntry) -> bool {
        let fits = |wanted: &[String], named: &[String]| {
            let is = |word: &String| wanted.iter().any(|own| own.eq_ignore_ascii_case(word));
            wanted.is_empty() || named.is_empty() || named.iter().any(is)
        };
        let (own, of) = (&self.knowledge, &known.scope);
        fits(&own.language, &of.language)
            && fits(&own.backend, &of.backend)
            && fits(&own.op, &of.op)
            && fits(&own.device, &of.device)
    }
}

impl RoleTable {
    /// The role with that name, or with that name in its workflow.
    pub fn role(&self, name: &str) -> Option<&Role> {
        let is = |role: &&Role| role.name == name || role.aka.iter().any(|aka| aka == name);
        self.role.iter().find(is)
    }

    /// The language with that name.
    pub fn language(&self, name: &str) -> Option<&Language> {
        self.language.iter().find(|language| language.name == name)
    }

    /// The language that a word refers to.
    pub fn called(&self, word: &str) -> Option<&Language> {
        let word = routing::plain(word);
        let is = |language: &&Language| {
            let words = language.words.iter().chain([&language.name]);
            words.into_iter().any(|own| routing::plain(own) == word)
        };
        self.language.iter().find(is).filter(|_| !word.trim().is_empty())
    }

    /// The role that writes a language.
    pub fn writer(&self, language: &str) -> Option<&Role> {
        let writes =
            |role: &&Role| role.may(Duty::Implement) && role.language.as_deref() == Some(language);
        self.role.iter().find(writes)
    }

    /// The fallback role.
    pub fn general(&self) -> Option<&Role> {
        let is = |role: &&Role| {
            role.language.is_none() && role.intents.is_empty() && role.may(Duty::Implement)
        };
        self.role.iter().find(is)
    }

    /// The role that plans.
    pub fn planner(&self) -> Option<&Role> {
        self.role.iter().find(|role| role.may(Duty::Plan))
    }

    /// The role that reviews.
    pub fn reviewer(&self) -> Option<&Role> {
        self.role.iter().find(|role| role.may(Duty::Review))
    }
}
