//! Writes the tree of files that a mode leaves.

use super::ProfileArgs;
use super::modes::{ProfileMode, pretty};
use super::version_profile::VersionProfile;
use crate::reports::profile::{ProfilePage, ReportFormat, render};
use karve_harness::store;
use karve_os::error::{Result, WithContext as _};
use karve_os::{clock, files};
use serde_json::{Map, Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// Where the trees of files are, unless the command says otherwise.
const OUT_DIR: &str = "out/profiles";

impl ProfileArgs {
    /// Writes the tree of a profile; returns its directory, relative to the project's.
    pub(super) fn write_tree(
        &self,
        here: &Path,
        seen: &VersionProfile,
        page: &ProfilePage<'_>,
    ) -> Result<Option<PathBuf>> {
        let Some(mode) = self.mode.filter(|mode| *mode != ProfileMode::Disabled) else {
            return Ok(None);
        };
        let params = seen.configuration.iter().map(|(name, value)| format!("{name}={value}"));
        let params: Vec<String> = params.collect();
        let out = self.out.clone().unwrap_or_else(|| PathBuf::from(OUT_DIR));
        let at = clock::second().replace([' ', ':'], "-");
        let [kernel, case] = [&seen.kernel, &params.join(",")].map(|name| files::path_part(name));
        let dir = out.join(mode.name()).join(kernel).join(case).join(at);
        let values: Map<String, Value> =
            seen.configuration.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        let described = json!({
            "kernel": seen.kernel,
            "version": seen.version,
            "mode": mode.name(),
            "config": values,
            "rules": self.rules.name(),
            "against": page.against,
            "time": clock::second(),
        });
        let mut all = vec![
            (PathBuf::from("params.json"), pretty(&described)),
            (PathBuf::from("report.md"), render(ReportFormat::HyperMla, page).into_bytes()),
        ];
        if mode == ProfileMode::Ncu {
            let verbose = render(ReportFormat::Karve, page);
            all.push((PathBuf::from("report-verbose.md"), verbose.into_bytes()));
        }
        for (path, bytes) in all.iter().chain(&seen.files) {
            let path = here.join(&dir).join(path);
            let failed = || format!("cannot write {}", path.display());
            fs::create_dir_all(path.parent().unwrap_or(here)).context(failed)?;
            files::write_derived(&path, bytes)?;
        }
        store::ignore_in_git(&here.join(&out))?;
        Ok(Some(dir))
    }
}
