//! What a person can do about a refusal of a server: which key, which address, which wait. Pure.

use super::key;
use super::retry::Failure;
use crate::config::ApiConfig;
use karve_core::asking::retry::SERVER_WAIT_MAX;

/// What to look at after a refusal, if there is something.
pub(super) fn advice(status: Option<u16>, failure: &Failure, config: &ApiConfig) -> Option<String> {
    if let Failure::Passing(_, Some(wait)) = failure
        && *wait > SERVER_WAIT_MAX
    {
        return Some(format!(
            "it asks to be left alone for {} s, and karve waits {} s at most",
            wait.as_secs(),
            SERVER_WAIT_MAX.as_secs()
        ));
    }
    match status? {
        401 | 403 => Some(match key::variable_of(config) {
            Some(variable) => format!("look at the key in {variable}"),
            None => "look at what key_command of its table in karve.toml prints".to_owned(),
        }),
        300..=399 => {
            Some("no redirect is followed: set base_url of its table in karve.toml".to_owned())
        }
        404 => Some("look at base_url and model of its table in karve.toml".to_owned()),
        _ => None,
    }
}
