//! What the user can do about a server's refusal: which key, which address, how long to wait. Pure.

use super::key;
use super::retry::ApiFailure;
use crate::api::ApiConfig;
use karve_core::asking::retry::SERVER_WAIT_MAX;

/// What to check after a refusal, if anything.
pub(super) fn advice(
    status: Option<u16>,
    failure: &ApiFailure,
    config: &ApiConfig,
) -> Option<String> {
    if let ApiFailure::Passing(_, Some(wait)) = failure
        && *wait > SERVER_WAIT_MAX
    {
        return Some(format!(
            "the server asks to wait {} s, and karve waits at most {} s",
            wait.as_secs(),
            SERVER_WAIT_MAX.as_secs()
        ));
    }
    match status? {
        401 | 403 => Some(match key::variable_of(config) {
            Some(variable) => format!("check the key in {variable}"),
            None => "check what key_command in its karve.toml table prints".to_owned(),
        }),
        300..=399 => {
            Some("karve does not follow redirects: set base_url in its karve.toml table".to_owned())
        }
        404 => Some("check base_url and model in its karve.toml table".to_owned()),
        _ => None,
    }
}
