//! Rules of tilegym's wiki: what its pages may not have, the mark of a claim, and the fields of an
//! entry that its front matter has no name for.

use super::Dialect;
use karve_core::knowledge::{Entry, EntrySection, Evidence};

/// The entry that karve wrote, with what somebody changed on its page since.
pub(super) fn with_own_fields(own: Entry, page: &Entry) -> Entry {
    let is_new = |claim: &&Evidence| {
        !own.evidence.iter().any(|known| claim.workload.starts_with(&known.workload))
    };
    let added: Vec<Evidence> = page.evidence.iter().filter(is_new).cloned().collect();
    let evidence = own.evidence.iter().cloned().chain(added).collect();
    Entry { title: page.title.clone(), sections: page.sections.clone(), evidence, ..own }
}

/// Refuses what a format bans: sections that tell of campaigns, and evidence without its mark.
pub(super) fn check_sections(dialect: &Dialect, sections: &[EntrySection]) -> Result<(), String> {
    let is_banned = |section: &&EntrySection| {
        dialect.banned.iter().any(|heading| section.heading.eq_ignore_ascii_case(heading))
    };
    if let Some(section) = sections.iter().find(is_banned) {
        let heading = &section.heading;
        return Err(format!("the section \"{heading}\" is banned: a page has no state of work"));
    }
    let Some(marked) = &dialect.marked else {
        return Ok(());
    };
    let shown = section(sections, marked).map_or("", |section| &section.text);
    let mut bullets = shown.lines().filter(|line| line.trim_start().starts_with(['-', '*']));
    match bullets.find(|line| claim_mark(line).is_none()) {
        Some(line) => {
            let line: String = line.chars().take(80).collect();
            Err(format!("\"{line}\" has no mark [YYYY-MM, arch, toolkit, N=k]"))
        }
        None => Ok(()),
    }
}

/// The section with that heading, in whatever case.
pub(super) fn section<'a>(sections: &'a [EntrySection], heading: &str) -> Option<&'a EntrySection> {
    sections.iter().find(|section| section.heading.eq_ignore_ascii_case(heading))
}

/// A claim and its mark of four parts.
pub(super) fn claim_mark(line: &str) -> Option<(&str, &str)> {
    let (claim, rest) = line.split_once('[')?;
    let (mark, _) = rest.split_once(']')?;
    let (_, n) = mark.rsplit_once(',')?;
    (mark.split(',').count() == 4 && n.trim().starts_with("N=")).then_some((claim, mark))
}
