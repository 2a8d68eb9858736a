//! The campaign's name, directory, branch and seed.

use super::CharterTime;
use super::file::{CampaignTable, GitTable};
use super::source::ConfigSource;
use karve_core::charter::{Branch, Target};
use karve_core::policy::Preset;
use karve_os::error::{CommandError, Result};
use karve_os::files;
use karve_os::text::shown;
use std::path::{Component, Path, PathBuf};

/// The default directory of all campaigns.
const ROOT: &str = ".karve";
/// How the branches of tilegym begin.
pub const TILEGYM_BRANCH: &str = "cutile-perf-";
/// The longest name of a campaign, in bytes; it is part of paths and of a ref.
const NAME_MAX: usize = 100;
/// The longest part of a name that is derived from the target, in bytes.
const PART_MAX: usize = 24;

/// The name in the file, or one derived from the target and the time.
pub(super) fn name_of(
    source: &ConfigSource<'_>,
    table: &CampaignTable,
    target: &Target,
    (preset, now): (Preset, &CharterTime),
) -> Result<String> {
    let Some(name) = &table.name else {
        return Ok(match preset {
            Preset::Primus => primus_name(target, now),
            _ => default_name(target, now),
        });
    };
    campaign_name(name).map_err(|rule| {
        let message = format!("a campaign cannot be called `{}`", shown(name));
        source.error_at("campaign.name", message).hint(format!("campaign.name takes {rule}"))
    })
}

/// The name of a campaign, or what such a name consists of. It becomes a directory, which may be
/// removed, and part of a ref.
pub fn campaign_name(name: &str) -> std::result::Result<String, String> {
    let usable = !name.is_empty()
        && name.len() <= NAME_MAX
        && name.chars().all(is_plain)
        && !name.starts_with(['.', '-'])
        && !name.ends_with('.')
        && !name.contains("..")
        && !name.to_ascii_lowercase().ends_with(".lock");
    if usable {
        return Ok(name.to_owned());
    }
    Err(format!(
        "letters, digits, `.`, `_` and `-`, at most {NAME_MAX}; it begins with a letter or digit \
         and must not be a directory such as `..`"
    ))
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

fn default_name(target: &Target, now: &CharterTime) -> String {
    let minute: String = now.minute.chars().filter(char::is_ascii_digit).collect();
    let parts = [&target.op, &target.backend, &target.device, &minute].map(|part| sanitise(part));
    parts.join("_")
}

/// The name that primus gives a campaign: `gemm_fp8_triton_gfx942_20260412`.
fn primus_name(target: &Target, now: &CharterTime) -> String {
    let backend = target.backend.to_lowercase();
    let parts = [&target.op, &backend, &target.device, &day_of(now)].map(|part| sanitise(part));
    parts.join("_")
}

/// The day without separators.
fn day_of(now: &CharterTime) -> String {
    now.minute.chars().filter(char::is_ascii_digit).take(8).collect()
}

/// Only plain characters, and no dots where git does not allow them.
fn sanitise(part: &str) -> String {
    let mut plain = String::with_capacity(part.len());
    for c in part.trim().chars() {
        let c = if is_plain(c) { c } else { '-' };
        if !(matches!(c, '.' | '-') && plain.ends_with(['.', '-'])) {
            plain.push(c);
        }
    }
    plain.truncate(PART_MAX);
    let plain = plain.trim_matches(['.', '-']);
    if plain.is_empty() { "x".to_owned() } else { plain.to_owned() }
}

/// The directory of all campaigns, joined to the directory of the file.
pub(super) fn root_of(
    source: &ConfigSource<'_>,
    table: &CampaignTable,
    dir: &Path,
) -> Result<PathBuf> {
    let text = table.root.as_deref().unwrap_or(ROOT);
    let error = |reason: &str| -> CommandError {
        let message = format!("`campaign.root` cannot be `{}`: {reason}", shown(text));
        source
            .error_at("campaign.root", message)
            .hint("use a separate directory in campaign.root, such as \".karve\"")
    };
    let path = Path::new(text);
    if path.components().any(|part| part == Component::ParentDir) {
        return Err(error("it contains `..`"));
    }
    if path.components().any(|part| part.as_os_str() == ".git") {
        return Err(error("that directory belongs to git"));
    }
    // Joining the plain parts one by one drops every `.`.
    let root = path.components().filter(|part| *part != Component::CurDir);
    let root = root.fold(dir.to_path_buf(), |root, part| root.join(part));
    if dir.starts_with(&root) {
        return Err(error("it contains the project itself"));
    }
    let link = files::link_above(&root.join(ROOT), dir).filter(|_| root.starts_with(dir));
    if let Some(link) = link {
        let target = files::settled(&link);
        return Err(error("it is a symbolic link").hint(format!(
            "remove the link and name its target: root = {:?} in [campaign] of karve.toml",
            target.to_string_lossy()
        )));
    }
    Ok(root)
}

/// The root relative to the directory of the file; unchanged if it is elsewhere.
pub(super) fn inside(root: &Path, dir: &Path) -> String {
    root.strip_prefix(dir).unwrap_or(root).to_string_lossy().into_owned()
}

/// What may happen in the repository.
pub(super) fn branch_of(
    source: &ConfigSource<'_>,
    table: &GitTable,
    campaign: &str,
    (preset, now): (Preset, &CharterTime),
    target: &Target,
) -> Result<Branch> {
    let name = match table.branch.as_deref() {
        None | Some("auto") if table.commit == Some(false) => return Ok(Branch::Hidden),
        None | Some("auto") if preset == Preset::Tilegym => {
            format!("{TILEGYM_BRANCH}{}-{}", sanitise(&target.op), day_of(now))
        }
        None | Some("auto") => format!("optimize/{campaign}"),
        Some("none") => return Ok(Branch::Hidden),
        Some(name) => name.to_owned(),
    };
    if table.commit == Some(false) {
        let message = format!("`git.commit` is false, but `git.branch` is `{}`", shown(&name));
        return Err(source
            .error_at("git.commit", message)
            .hint("leave git.branch out: without commits there is no branch"));
    }
    if is_branch_name(&name) {
        return Ok(Branch::Named { name });
    }
    Err(source
        .error_at("git.branch", format!("a branch cannot be called `{}`", shown(&name)))
        .hint(
            "git.branch is \"auto\", \"none\", or a name of letters, digits, `.`, `_`, `-` and `/`",
        ))
}

/// A subset of what git accepts, without anything that a shell or a person could misread.
fn is_branch_name(name: &str) -> bool {
    let part_is_good = |part: &str| {
        !part.is_empty()
            && !part.starts_with(['.', '-'])
            && !part.ends_with('.')
            && !part.contains("..")
            && !part.to_ascii_lowercase().ends_with(".lock")
            && part.chars().all(|c| is_plain(c) || matches!(c, '+' | '#' | '='))
    };
    name.len() <= 200 && name != "HEAD" && name.split('/').all(part_is_good)
}

/// A seed that only depends on the name: FNV-1a, truncated to what every JSON reader keeps exact.
pub(super) fn seed_of(name: &str) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let hash = name.bytes().fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    hash >> 11
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_made_of_the_target_and_the_minute() {
        let target = Target {
            op: "grouped gemm/..x".into(),
            backend: "ck".into(),
            device: "MI355X".into(),
            ..Target::default()
        };
        let now = CharterTime { minute: "2025-11-02 08:30".into() };
        assert_eq!(default_name(&target, &now), "grouped-gemm-x_ck_MI355X_202511020830");
        let nothing = Target::default();
        assert!(is_branch_name(&format!("optimize/{}", default_name(&nothing, &now))));
    }

    #[test]
    fn a_seed_only_depends_on_the_name() {
        assert_eq!(seed_of("a"), seed_of("a"));
        assert_ne!(seed_of("a"), seed_of("b"));
        assert!(seed_of("anything") < 1 << 53);
    }

    #[test]
    fn branch_names_are_those_that_git_takes() {
        for good in ["main", "optimize/matmul_c", "a+b", "v1.2/x-3"] {
            assert!(is_branch_name(good), "{good}");
        }
        for bad in
            ["", "/a", "a/", "a//b", ".a", "a.", "a..b", "a.lock", "-a", "a b", "a~1", "HEAD"]
        {
            assert!(!is_branch_name(bad), "{bad}");
        }
    }
}
