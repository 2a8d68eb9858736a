//! What a page needs beside its HTML. All of it is in the program: a page asks nobody else.

use karve_os::files::sha256_hex;
use std::sync::LazyLock;

const OWN_CSS: &str = include_str!("assets/page.css");
const OWN_SCRIPT: &str = include_str!("assets/page.js");
const UPLOT_CSS: &str = include_str!("assets/vendor/uPlot-1.6.32.min.css");
const UPLOT: &str = include_str!("assets/vendor/uPlot-1.6.32.min.js");

/// The style sheet.
pub(super) static CSS: LazyLock<String> = LazyLock::new(|| format!("{UPLOT_CSS}\n{OWN_CSS}"));

/// The script.
pub(super) static SCRIPT: LazyLock<String> = LazyLock::new(|| format!("{UPLOT}\n{OWN_SCRIPT}"));

/// What a page of the server may load: only what the server has.
pub(super) const SERVER_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; \
     img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; \
     frame-ancestors 'none'";

/// What a report may do: run its one script, whose digest is named, and load nothing.
pub(super) fn file_policy() -> String {
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{}'; \
         base-uri 'none'; form-action 'none'",
        base64_of_hex(&sha256_hex(SCRIPT.as_bytes()))
    )
}

fn base64_of_hex(hex: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let nibble = |c: char| c.to_digit(16).unwrap_or(0);
    let bits: Vec<u32> = hex.chars().map(nibble).collect();
    let mut text = String::new();
    for three in bits.chunks(6) {
        let filled = three.iter().copied().chain(std::iter::repeat(0)).take(6);
        let bits = filled.fold(0, |all, nibble| (all << 4) | nibble);
        for place in 0..4 {
            let is_used = place * 6 < three.len() * 4;
            let digit = DIGITS[(bits >> (18 - 6 * place)) as usize & 63];
            text.push(if is_used { char::from(digit) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_written_as_browsers_want_them() {
        assert_eq!(base64_of_hex("000102"), "AAEC");
        assert_eq!(base64_of_hex("ff"), "/w==");
        assert_eq!(base64_of_hex(&sha256_hex(b"")), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    }

    #[test]
    fn the_vendored_library_is_the_published_one() {
        let want = "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f";
        assert_eq!(sha256_hex(UPLOT.as_bytes()), want);
        assert!(UPLOT.len() < 100 << 10);
    }

    #[test]
    fn nothing_is_loaded_from_elsewhere() {
        for text in [OWN_CSS, OWN_SCRIPT, UPLOT_CSS] {
            assert!(!text.contains("http://") && !text.contains("https://"));
        }
    }
}
