//! From a request to a role: a pure function, with every rule that applied, in words.

use super::request::{NeedStatus, RoleRequest};
use super::{Duty, Language, Role, RoleTable};
use crate::profile::{Predicate, PredicateValue};
use serde::{Deserialize, Serialize};

/// Which roles are asked, in which language and order, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RoutingDecision {
    /// The role that states the hypothesis.
    pub role: String,
    /// The role that implements it.
    pub implements: String,
    /// The language to write; empty where it does not matter.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub language: String,
    /// All roles of a multi-step task, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
    /// Every rule that applied.
    pub why: Vec<RoutingReason>,
}

/// A rule that applied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RoutingReason {
    /// The rule: `terminology`, `intent`, `kernel`, `hardware`, `suitability`, `profile`, `role`.
    pub rule: String,
    /// Its text.
    pub text: String,
}

/// A request that cannot be routed as stated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RoutingRefusal {
    /// Why.
    pub why: String,
    /// The right role, if there is one.
    pub right: Option<String>,
    /// Every rule that applied before.
    pub reasons: Vec<RoutingReason>,
}

impl RoutingRefusal {
    /// In words.
    pub fn describe(&self) -> String {
        match &self.right {
            Some(right) => format!("{}; {right} is the role for this", self.why),
            None => self.why.clone(),
        }
    }
}

impl RoutingDecision {
    /// The rules in words, a line each.
    pub fn lines(&self) -> Vec<String> {
        let line = |reason: &RoutingReason| format!("{}: {}", reason.rule, reason.text);
        self.why.iter().map(line).collect()
    }

    /// Which roles are asked, in one line.
    pub fn describe(&self) -> String {
        let mut text = self.role.clone();
        if self.implements != self.role {
            text = format!("{text} proposes, {} implements", self.implements);
        }
        if self.steps.len() > 1 {
            text = format!("{text} (of {})", self.steps.join(", then "));
        }
        text
    }
}

/// Words separated by single spaces, in lower case, with a space at both ends.
pub(super) fn plain(text: &str) -> String {
    let part = |c: char| !(c.is_alphanumeric() || c == '+');
    let words: Vec<&str> = text.split(part).filter(|word| !word.is_empty()).collect();
    format!(" {} ", words.join(" ").to_lowercase())
}

/// The first of some words that a text contains as whole words.
fn first_word_in<'a>(text: &str, words: &'a [String]) -> Option<&'a String> {
    let named = |word: &&String| {
        let word = plain(word);
        word != "  " && text.contains(&word)
    };
    words.iter().find(named)
}

/// Whether a text names a language, or words that are for one role.
pub(crate) fn names_work(table_of_roles: &RoleTable, text: &str) -> bool {
    let text = plain(text);
    let has = |words: &Vec<String>| first_word_in(&text, words).is_some();
    table_of_roles.language.iter().any(|language| has(&language.words))
        || table_of_roles.role.iter().any(|role| has(&role.intents) || has(&role.topics))
}

/// Words of a request for a change of a kernel that exists.
const CHANGES: [&str; 3] = ["convert", "existing", "adapt"];

/// The state of the rules for one request.
struct RequestRouter<'a> {
    role_table: &'a RoleTable,
    request: &'a RoleRequest,
    why: Vec<RoutingReason>,
}

/// Routes a request.
pub fn route(
    table_of_roles: &RoleTable,
    request: &RoleRequest,
) -> Result<RoutingDecision, RoutingRefusal> {
    let mut workspace = RequestRouter { role_table: table_of_roles, request, why: Vec::new() };
    let text = plain(&request.intent);
    let wanted = workspace.requested_language(&text)?;
    let asked = workspace.requested_role(&text, wanted);
    let languages = match wanted {
        Some(language) => workspace.steps_to(language, &text)?,
        None => workspace.default_languages(),
    };
    Ok(workspace.decide(asked, &languages))
}

/// Whether a role is the right one for a request; if not, which one is.
pub fn address(
    table_of_roles: &RoleTable,
    to: &str,
    request: &RoleRequest,
) -> Result<RoutingDecision, RoutingRefusal> {
    let decision = route(table_of_roles, request)?;
    let refused = |why: String| RoutingRefusal {
        why,
        right: Some(match request.duty {
            Duty::Implement => decision.implements.clone(),
            Duty::Propose | Duty::Review | Duty::Profile | Duty::Plan => decision.role.clone(),
        }),
        reasons: decision.why.clone(),
    };
    let Some(role) = table_of_roles.role(to) else {
        return Err(refused(format!("there is no role {to:?}")));
    };
    let to = role.name.as_str();
    if !role.may(request.duty) {
        let duty = request.duty.name();
        return Err(refused(format!("{to} may not {duty}")));
    }
    if request.duty == Duty::Review || request.duty == Duty::Profile {
        return Ok(decision);
    }
    if decision.role == to || decision.implements == to {
        return Ok(decision);
    }
    let later = decision.steps.iter().any(|step| step == to);
    Err(refused(match (later, &role.language) {
        (true, _) => format!("it is not {to}'s turn yet"),
        (false, Some(language)) => format!("{to} writes {language}, which was not requested"),
        (false, None) => format!("{to} was not requested"),
    }))
}

/// The language that a text names although the role writes another, with the role that writes it.
pub fn named_elsewhere(
    table_of_roles: &RoleTable,
    role: &str,
    text: &str,
) -> Option<(String, Option<String>)> {
    let own = table_of_roles.language(table_of_roles.role(role)?.language.as_deref()?)?;
    let text = plain(text);
    let names = |language: &&Language| first_word_in(&text, &language.words).is_some();
    if names(&own) {
        return None;
    }
    let is_near = |other: &Language| {
        other.name == own.name
            || own.built_on.as_ref() == Some(&other.name)
            || other.built_on.as_ref() == Some(&own.name)
    };
    let mut others = table_of_roles.language.iter().filter(|of| !is_near(of));
    let other = others.find(names)?;
    let writer = table_of_roles.writer(&other.name).map(|role| role.name.clone());
    Some((other.name.clone(), writer))
}

impl<'a> RequestRouter<'a> {
    fn add_reason(&mut self, rule: &str, says: String) {
        self.why.push(RoutingReason { rule: rule.to_owned(), text: says });
    }

    fn refuse<T>(&self, why: String, right: Option<&Role>) -> Result<T, RoutingRefusal> {
        Err(RoutingRefusal {
            why,
            right: right.map(|role| role.name.clone()),
            reasons: self.why.clone(),
        })
    }

    /// The requested language: named in the intent, or else by the backend.
    fn requested_language(&mut self, text: &str) -> Result<Option<&'a Language>, RoutingRefusal> {
        let table_of_roles = self.role_table;
        let named = table_of_roles.language.iter();
        let named: Vec<(&Language, &String)> = named
            .filter_map(|language| Some((language, first_word_in(text, &language.words)?)))
            .collect();
        let is_base = |of: &Language| {
            let builds = |other: &&(&Language, _)| other.0.built_on.as_ref() == Some(&of.name);
            named.iter().find(builds).map(|(other, _)| *other)
        };
        let mut left = Vec::new();
        for (language, word) in &named {
            match is_base(language) {
                Some(other) => {
                    let (own, on) = (&other.name, &language.name);
                    let says = format!("{own} is built on {on}, so naming both asks for {own}");
                    self.add_reason("terminology", says);
                }
                None => left.push((*language, *word)),
            }
        }
        if let [(first, _), (second, _), ..] = left.as_slice() {
            let notes = [first.note.as_str(), second.note.as_str()].join(" ");
            self.add_reason("terminology", notes.trim().to_owned());
            let (a, b) = (&first.name, &second.name);
            let why = format!("the request names {a} and {b}, which are not the same: name one");
            return self.refuse(why, None);
        }
        if let Some((language, word)) = left.first() {
            let says = format!("the request names {word:?}, which is {}", language.name);
            self.add_reason("intent", says);
            if !language.note.is_empty() {
                self.add_reason("terminology", language.note.clone());
            }
            return Ok(Some(language));
        }
        let by_backend = table_of_roles.called(&self.request.backend);
        let other = by_backend.filter(|language| language.name != self.request.kernel);
        if let Some(language) = other {
            let says = format!("the backend {:?} is {}", self.request.backend, language.name);
            self.add_reason("intent", says);
        }
        Ok(other)
    }

    /// The role that the words or the counters call for, besides the language.
    fn requested_role(&mut self, text: &str, wanted: Option<&Language>) -> Option<&'a Role> {
        for role in &self.role_table.role {
            let topic = first_word_in(text, &role.topics).filter(|_| wanted.is_none());
            if let Some(word) = first_word_in(text, &role.intents).or(topic) {
                let says = format!("the request says {word:?}, which is for {}", role.name);
                self.add_reason("intent", says);
                return Some(role);
            }
        }
        if wanted.is_some() {
            return None;
        }
        for call in &self.role_table.call {
            let (Ok(when), Some(role)) =
                (Predicate::parse(&call.when), self.role_table.role(&call.role))
            else {
                continue;
            };
            if when.truth(&self.request.counters) == PredicateValue::Holds {
                let quote = when.quote(&self.request.counters);
                let says = format!("{} ({quote}): {}", when.text(), call.why);
                self.add_reason("profile", says);
                return Some(role);
            }
        }
        None
    }

    /// The languages on the way to a requested one: itself, or first the one it is built on.
    fn steps_to(
        &mut self,
        language: &'a Language,
        text: &str,
    ) -> Result<Vec<&'a Language>, RoutingRefusal> {
        if let Some(why) = self.lack(language) {
            let instead: Option<&Language> = self.default_languages().first().copied();
            let right = instead.and_then(|of| self.role_table.writer(&of.name));
            return self.refuse(why, right.or(self.role_table.general()));
        }
        let kernel = &self.request.kernel;
        if *kernel == language.name {
            self.note_fallback(language);
        }
        let Some(base) = language.built_on.as_ref().and_then(|of| self.role_table.language(of))
        else {
            return Ok(vec![language]);
        };
        if *kernel == base.name || *kernel == language.name {
            let says = format!("a kernel in {kernel} exists, so only {} is needed", language.name);
            self.add_reason("kernel", says);
            return Ok(vec![language]);
        }
        let changes = CHANGES.map(str::to_owned);
        let word = first_word_in(text, &changes).filter(|_| kernel.is_empty());
        if let (Some(word), Some(_)) = (word, first_word_in(text, &base.words)) {
            let says = format!("{word:?} a kernel in {}: it exists", base.name);
            self.add_reason("kernel", says);
            return Ok(vec![language]);
        }
        // "Add configs to gelu.py" is about a kernel that exists.
        let named = self.request.intent.split_whitespace().map(|word| word.trim_end_matches('.'));
        if let Some(file) = named.filter(|_| kernel.is_empty()).find(|word| word.ends_with(".py")) {
            let says = format!("{file} is named, so a kernel in {} exists", base.name);
            self.add_reason("kernel", says);
            return Ok(vec![language]);
        }
        let (own, on) = (&language.name, &base.name);
        let says = format!("no kernel in {on} exists: first {on}, then {own}");
        self.add_reason("kernel", says);
        Ok(vec![base, language])
    }

    /// The language if no preference is given: the kernel's own, or the usual one.
    fn default_languages(&mut self) -> Vec<&'a Language> {
        let (table_of_roles, kernel) = (self.role_table, &self.request.kernel);
        if !kernel.is_empty() {
            let Some(language) = table_of_roles.language(kernel) else {
                self.add_reason("kernel", format!("the kernel is in {kernel}"));
                return Vec::new();
            };
            self.add_reason("kernel", format!("the kernel is in {kernel} already"));
            let next = self.leave(language).or_else(|| self.usual_on(language));
            return vec![next.unwrap_or(language)];
        }
        self.usual_language().map_or_else(Vec::new, |language| {
            let base = language.built_on.as_ref().and_then(|of| table_of_roles.language(of));
            base.into_iter().chain([language]).collect()
        })
    }

    /// The usual language of the device, if it is built on that of the kernel: only the second of
    /// its two steps is left.
    fn usual_on(&mut self, kernel: &Language) -> Option<&'a Language> {
        let is_by_item = self.role_table.by_item;
        let n_reasons = self.why.len();
        let usual = self.usual_language().filter(|usual| {
            is_by_item
                && usual.built_on.as_ref() == Some(&kernel.name)
                && self.role_table.writer(&usual.name).is_some()
        });
        self.why.truncate(n_reasons);
        let usual = usual?;
        let (on, own) = (&kernel.name, &usual.name);
        let says = format!("the kernel in {on} exists, so on this device only {own} is left");
        self.add_reason("hardware", says);
        Some(usual)
    }

    /// The usual language of new kernels on the device.
    fn usual_language(&mut self) -> Option<&'a Language> {
        let table_of_roles = self.role_table;
        let arch = super::DeviceArch::parse(&self.request.arch);
        for usual in &table_of_roles.usual {
            let in_family = match &arch {
                Some(arch) => usual.family.is_empty() || usual.family == arch.family,
                None => usual.family.is_empty(),
            };
            let number = arch.as_ref().and_then(|arch| arch.number).unwrap_or(0);
            let Some(language) = table_of_roles.language(&usual.language) else {
                continue;
            };
            if in_family && number >= usual.at_least && self.lack(language).is_none() {
                self.add_reason("hardware", usual.why.clone());
                return Some(language);
            }
        }
        None
    }

    /// The language to switch to, if a language cannot do what the counters call for.
    fn leave(&mut self, language: &'a Language) -> Option<&'a Language> {
        for leave in &language.leave {
            let Ok(when) = Predicate::parse(&leave.when) else {
                continue;
            };
            match when.truth(&self.request.counters) {
                PredicateValue::Holds => {}
                PredicateValue::Fails | PredicateValue::Unknown => continue,
            }
            let to = self.role_table.language(&leave.to)?;
            let quote = when.quote(&self.request.counters);
            let says = format!("{} ({quote}): {}", when.text(), leave.why);
            self.add_reason("suitability", says);
            if self.lack(to).is_none() {
                return Some(to);
            }
        }
        None
    }

    /// What the counters say about a language that is requested anyway.
    fn note_fallback(&mut self, language: &'a Language) {
        if let Some(to) = self.leave(language) {
            let says = format!("{} was named, so no switch to {}", language.name, to.name);
            self.add_reason("suitability", says);
        }
    }

    /// Why a language does not run on the device, if it does not.
    fn lack(&mut self, language: &Language) -> Option<String> {
        let arch = self.request.arch.clone();
        let (need, met) = language.lacks(self.request)?;
        let from = format!("{}{}", need.family, need.at_least);
        let not: Vec<String> = need.not.iter().map(u32::to_string).collect();
        let but = match not.is_empty() {
            true => String::new(),
            false => format!(" and not {}", not.join(" or ")),
        };
        let name = &language.name;
        let text = match met {
            NeedStatus::Yes => return None,
            NeedStatus::Unknown => {
                let says =
                    format!("the architecture is not known; {name} needs {from} or newer{but}");
                self.add_reason("hardware", says);
                return None;
            }
            NeedStatus::No => {
                format!("{name} needs {from} or newer{but}, and the device is {arch}")
            }
        };
        let says = format!("{text}: {}", need.why);
        self.add_reason("hardware", says.clone());
        Some(says)
    }

    /// The roles for the languages, in order, and the role that was requested.
    fn decide(mut self, asked: Option<&'a Role>, languages: &[&Language]) -> RoutingDecision {
        let mut steps: Vec<&Role> = Vec::new();
        for language in languages {
            let writer = self.role_table.writer(&language.name);
            if writer.is_none() {
                let says = format!("no role writes {}, so the general one does", language.name);
                self.add_reason("role", says);
            }
            steps.extend(writer.or(self.role_table.general()));
        }
        if steps.is_empty() {
            steps.extend(self.role_table.general());
        }
        let first = steps.first().copied();
        let takes = |duty: Duty| asked.filter(|role| role.may(duty)).or(first);
        let name = |role: Option<&Role>| role.map_or_else(String::new, |role| role.name.clone());
        let (role, implements) = (takes(Duty::Propose), takes(Duty::Implement));
        let language = match implements.and_then(|role| role.language.clone()) {
            Some(language) => language,
            None => languages.first().map_or_else(String::new, |of| of.name.clone()),
        };
        let mut names: Vec<String> = steps.iter().map(|role| role.name.clone()).collect();
        match asked.filter(|asked| !names.contains(&asked.name)) {
            // It writes the language of the kernel itself.
            Some(asked) if asked.may(Duty::Implement) => names = vec![asked.name.clone()],
            Some(asked) => names.insert(0, asked.name.clone()),
            None => {}
        }
        let who = match (name(role), name(implements)) {
            (role, implements) if role == implements => format!("{role} is asked"),
            (role, implements) => format!("{role} proposes and {implements} implements"),
        };
        self.add_reason("role", who);
        RoutingDecision {
            role: name(role),
            implements: name(implements),
            language,
            steps: names,
            why: self.why,
        }
    }
}
