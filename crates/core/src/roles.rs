//! Roles: who may do what in a campaign, in which language and in which files, as data; and who is
//! asked for what, with every reason.
//!
//! A book holds the roles of the published workflows, the languages they write, and the rules by
//! which a request finds its role. The book itself is data that others bring; here is what makes
//! it sound, and what follows from it.

mod framework;
mod request;
mod review;
mod routing;
#[cfg(test)]
pub(crate) mod tests;

pub use framework::strays;
pub use request::{Arch, Request};
pub use review::{Advice, Review, Said, Signal, Stance};
pub use routing::{Decision, Reason, Refused, address, named_elsewhere, route};

use crate::knowledge::{Known, Scope};
use crate::profile::Predicate;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Characters of a name.
const NAME_CHARS: usize = 64;
/// Characters of a text of the book.
const TEXT_CHARS: usize = 400;
/// Entries of any list of the book.
const LIST_MAX: usize = 64;

/// What a role may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Duty {
    /// State a hypothesis.
    Propose,
    /// Change files.
    Implement,
    /// Look at a change and say what speaks against it.
    Review,
    /// Say why a kernel is slow.
    Profile,
}

impl Duty {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Propose => "propose",
            Self::Implement => "implement",
            Self::Review => "review",
            Self::Profile => "profile",
        }
    }
}

/// Who may do what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Role {
    /// Its name.
    pub name: String,
    /// Which published workflow it is of.
    pub system: String,
    /// What it is, in one line.
    pub title: String,
    /// What it may do.
    pub may: Vec<Duty>,
    /// The language it writes; any without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// Globs of the files that it may change, among those that are granted.
    pub writes: Vec<String>,
    /// Which entries of the library it gets: those that name one of these, or nothing.
    #[serde(skip_serializing_if = "Scope::is_everywhere")]
    pub knowledge: Scope,
    /// Words by which somebody asks for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub intents: Vec<String>,
    /// What it must know of its task, a line each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
}

/// A language in which kernels are written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Language {
    /// Its name.
    pub name: String,
    /// Words by which people name it.
    pub words: Vec<String>,
    /// The language in which a kernel must exist before it can be one of this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub built_on: Option<String>,
    /// Beginnings of lines by which its files are known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<String>,
    /// What it needs to run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Need>,
    /// When to leave it for another.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub leave: Vec<Leave>,
    /// What it is and what it is taken for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// What a language needs of the device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Need {
    /// For these operations or families only; for all if it is empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub op: Vec<String>,
    /// The family of architectures.
    pub family: String,
    /// The least of their numbers.
    pub at_least: u32,
    /// Numbers above it that will not do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not: Vec<u32>,
    /// Why.
    pub why: String,
}

/// When a language cannot do what a kernel needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Leave {
    /// A condition on counters.
    pub when: String,
    /// The language to go to.
    pub to: String,
    /// Why.
    pub why: String,
}

/// Counters that ask for a role.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Call {
    /// A condition on counters.
    pub when: String,
    /// The role.
    pub role: String,
    /// Why.
    pub why: String,
}

/// The language of a kernel that does not exist yet, where nobody has a preference.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Usual {
    /// The family of architectures; any if it is empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub family: String,
    /// The least of their numbers.
    pub at_least: u32,
    /// The language.
    pub language: String,
    /// Why.
    pub why: String,
}

/// Roles, languages, and the rules between them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Book {
    /// The roles; the first without a language that may implement takes what is left.
    pub role: Vec<Role>,
    /// The languages.
    pub language: Vec<Language>,
    /// Counters that ask for a role, the first that holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub call: Vec<Call>,
    /// Languages of new kernels, the first that fits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub usual: Vec<Usual>,
}

impl Role {
    /// Whether it may do that.
    pub fn may(&self, duty: Duty) -> bool {
        self.may.contains(&duty)
    }

    /// Whether an entry of the library is for it. What names no language is for all.
    pub fn gets(&self, known: &Known) -> bool {
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

impl Book {
    /// The role of that name.
    pub fn role(&self, name: &str) -> Option<&Role> {
        self.role.iter().find(|role| role.name == name)
    }

    /// The language of that name.
    pub fn language(&self, name: &str) -> Option<&Language> {
        self.language.iter().find(|language| language.name == name)
    }

    /// The language that somebody calls so.
    pub fn called(&self, word: &str) -> Option<&Language> {
        let word = routing::plain(word);
        let is = |language: &&Language| {
            let words = language.words.iter().chain([&language.name]);
            words.into_iter().any(|own| routing::plain(own) == word)
        };
        self.language
            .iter()
            .find(is)
            .filter(|_| !word.trim().is_empty())
    }

    /// Who writes a language.
    pub fn writer(&self, language: &str) -> Option<&Role> {
        let writes =
            |role: &&Role| role.may(Duty::Implement) && role.language.as_deref() == Some(language);
        self.role.iter().find(writes)
    }

    /// Who takes what no other role is for.
    pub fn general(&self) -> Option<&Role> {
        let is = |role: &&Role| {
            role.language.is_none() && role.intents.is_empty() && role.may(Duty::Implement)
        };
        self.role.iter().find(is)
    }

    /// Who reviews.
    pub fn reviewer(&self) -> Option<&Role> {
        self.role.iter().find(|role| role.may(Duty::Review))
    }

    /// Everything that is wrong with it, in words.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let lists = [
            self.role.len(),
            self.language.len(),
            self.call.len(),
            self.usual.len(),
        ];
        if lists.iter().any(|n| *n > LIST_MAX) {
            faults.push(format!("a list has more than {LIST_MAX} entries"));
        }
        self.push_name_faults(&mut faults);
        for role in &self.role {
            self.push_role_faults(role, &mut faults);
        }
        for language in &self.language {
            self.push_language_faults(language, &mut faults);
        }
        for call in &self.call {
            push_condition(&call.when, &mut faults);
            if self.role(&call.role).is_none() {
                faults.push(format!("call: there is no role {:?}", call.role));
            }
        }
        for usual in &self.usual {
            if self.language(&usual.language).is_none() {
                faults.push(format!("usual: there is no language {:?}", usual.language));
            }
        }
        if self.general().is_none() {
            faults.push(
                "no role takes what is left: one without a language that may implement".into(),
            );
        }
        faults
    }

    fn push_name_faults(&self, faults: &mut Vec<String>) {
        let mut seen = BTreeSet::new();
        let roles = self.role.iter().map(|role| ("role", role.name.as_str()));
        let languages = self
            .language
            .iter()
            .map(|of| ("language", of.name.as_str()));
        for (what, name) in roles.chain(languages) {
            let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            if name.is_empty() || name.len() > NAME_CHARS || !name.chars().all(fits) {
                faults.push(format!("{what}: {name:?} is no name"));
            }
            if !seen.insert((what, name)) {
                faults.push(format!("{what}: {name} is there twice"));
            }
        }
        let mut words = BTreeSet::new();
        for language in &self.language {
            for word in &language.words {
                if !words.insert(routing::plain(word)) {
                    faults.push(format!("language: {word:?} names two languages"));
                }
            }
        }
    }

    fn push_role_faults(&self, role: &Role, faults: &mut Vec<String>) {
        let mut fault = |text: &str| faults.push(format!("role {}: {text}", role.name));
        if role.may.is_empty() {
            fault("it may do nothing");
        }
        if role.title.trim().is_empty() || role.title.len() > TEXT_CHARS {
            fault("its title must be one line");
        }
        if role.may(Duty::Implement) == role.writes.is_empty() {
            fault("who may implement names the files it writes, and nobody else does");
        }
        if let Some(language) = &role.language
            && self.language(language).is_none()
        {
            fault(&format!("there is no language {language:?}"));
        }
        let texts = role.writes.iter().chain(&role.intents).chain(&role.rules);
        if role.writes.len() > LIST_MAX || role.rules.len() > LIST_MAX {
            fault("a list is too long");
        }
        if texts
            .clone()
            .any(|text| text.trim().is_empty() || text.len() > TEXT_CHARS)
        {
            fault("a text is empty or too long");
        }
    }

    fn push_language_faults(&self, language: &Language, faults: &mut Vec<String>) {
        let name = &language.name;
        let leads = language.leave.iter().map(|leave| &leave.to);
        for other in leads.chain(&language.built_on) {
            if other == name || self.language(other).is_none() {
                faults.push(format!("language {name}: {other:?} is no other language"));
            }
        }
        for leave in &language.leave {
            push_condition(&leave.when, faults);
        }
        let base = language.built_on.as_ref().and_then(|of| self.language(of));
        if base.is_some_and(|base| base.built_on.is_some()) {
            faults.push(format!(
                "language {name}: what it is built on is built on another"
            ));
        }
        if language.needs.iter().any(|need| need.family.is_empty()) {
            faults.push(format!("language {name}: a need names no family"));
        }
    }
}

fn push_condition(when: &str, faults: &mut Vec<String>) {
    match Predicate::parse(when) {
        Ok(condition) => {
            let unknown = |name: &&str| crate::profile::counters::known(name).is_none();
            for name in condition.names().into_iter().filter(unknown) {
                faults.push(format!(
                    "the condition {when:?}: there is no counter {name}"
                ));
            }
        }
        Err(error) => faults.push(format!("the condition {when:?}: {error}")),
    }
}
