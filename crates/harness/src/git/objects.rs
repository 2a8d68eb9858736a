//! Writes objects of git: contents of files, and commits.

use karve_os::error::{CommandError, Result};

use super::call::{GitCall, text};
use super::{CommitNote, Oid};

/// Commits a tree; the message goes in through stdin, since it may be long.
pub(super) fn commit_tree(
    call: GitCall,
    tree: &Oid,
    parent: Option<&Oid>,
    note: &CommitNote<'_>,
) -> Result<Oid> {
    let mut call = call.dated(note).args(["commit-tree", "-F", "-"]);
    if let Some(parent) = parent {
        call = call.args(["-p", parent.as_str()]);
    }
    // Git refuses a message with a NUL in it, and the message may quote an agent.
    let message = note.message.replace('\0', " ");
    call.arg(tree.as_str()).stdin(message).oid()
}

/// Hashes the contents of files without any conversion, one object name per path.
pub(super) fn hash_paths(call: GitCall, paths: &[&[u8]]) -> Result<Vec<Oid>> {
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    let mut lines = Vec::new();
    for path in paths {
        quote_into(&mut lines, path);
        lines.push(b'\n');
    }
    let answer = call.args(["--no-filters", "--stdin-paths"]).stdin(lines).output()?;
    let oids: Option<Vec<Oid>> = text(&answer).lines().map(Oid::parse).collect();
    oids.filter(|oids| oids.len() == paths.len())
        .ok_or_else(|| CommandError::environment("git hash-object did not hash each file"))
}

/// Writes a path as a line that git reads back: quoted as in C where it would be misread.
fn quote_into(lines: &mut Vec<u8>, path: &[u8]) {
    let odd = |byte: &u8| *byte < b' ' || matches!(byte, b'"' | b'\\' | 0x7f);
    if !path.iter().any(odd) {
        lines.extend(path);
        return;
    }
    lines.push(b'"');
    for byte in path {
        if odd(byte) {
            lines.extend(format!("\\{byte:03o}").into_bytes());
        } else {
            lines.push(*byte);
        }
    }
    lines.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::quote_into;

    #[test]
    fn only_an_odd_path_is_quoted() {
        let quoted = |path: &[u8]| {
            let mut line = Vec::new();
            quote_into(&mut line, path);
            line
        };
        assert_eq!(quoted("src/é .cu".as_bytes()), "src/é .cu".as_bytes());
        assert_eq!(quoted(b"a\n\"b\\"), b"\"a\\012\\042b\\134\"");
    }
}
