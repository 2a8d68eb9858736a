//! Any other agent: a section in `AGENTS.md`.

use super::Site;
use super::edit::Piece;
use super::guide::Dialect;

/// Its conventions: tools have the names that the server gives them.
pub(super) const DIALECT: Dialect = Dialect {
    prefix: "",
    arguments: "",
};

/// Everything that is installed.
pub(super) fn pieces(_: &Site) -> Vec<Piece> {
    vec![Piece {
        path: "AGENTS.md".to_owned(),
        how: DIALECT.section(),
    }]
}
