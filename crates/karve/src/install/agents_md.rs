//! Any other agent: a section in `AGENTS.md`.

use super::Site;
use super::edit::Piece;
use super::guide::Dialect;

/// How it is written: by the names that the server has.
pub(super) const DIALECT: Dialect = Dialect {
    prefix: "",
    arguments: "",
};

/// All that is installed.
pub(super) fn pieces(_: &Site) -> Vec<Piece> {
    vec![Piece {
        path: "AGENTS.md".to_owned(),
        how: DIALECT.section(),
    }]
}
