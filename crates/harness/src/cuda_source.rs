//! CUDA and HIP as C++: a grammar of its own would add seven megabytes to the program. Every byte
//! keeps its place, so that nodes of the tree point into the source.
//!
//! ```text
//! __global__ void k(float *x);   ->              void k(float *x);
//! k<<<grid, block>>>(x);         ->   k(  grid, block  )(x);
//! ```

/// CUDA qualifiers that a C++ parser does not know.
const QUALIFIERS: [&str; 8] = [
    "__global__",
    "__device__",
    "__host__",
    "__shared__",
    "__managed__",
    "__forceinline__",
    "__noinline__",
    "__grid_constant__",
];
/// The same, with arguments.
const WITH_ARGUMENTS: [&str; 3] = ["__launch_bounds__", "__cluster_dims__", "__maxnreg__"];
/// Bytes of the arguments of a launch or a qualifier.
const ARGUMENTS_MAX: usize = 4096;
/// How a launch begins and ends in the source.
pub const LAUNCH: [&str; 2] = ["<<<", ">>>"];

/// The text for a C++ parser.
pub fn as_cpp(source: &str) -> Vec<u8> {
    let mut bytes = source.as_bytes().to_vec();
    let mut at = 0;
    while at < source.len() {
        let rest = &source.as_bytes()[at..];
        if rest.starts_with(LAUNCH[0].as_bytes()) {
            if let Some(end) = launch_end(rest) {
                bytes[at..at + 3].copy_from_slice(b"(  ");
                bytes[at + end..at + end + 3].copy_from_slice(b"  )");
            }
            at += 3;
        } else if rest.starts_with(b"__") {
            let word = word_at(rest);
            let blank = if WITH_ARGUMENTS.contains(&word) {
                word.len() + parentheses(&rest[word.len()..])
            } else {
                word.len()
            };
            if QUALIFIERS.contains(&word) || WITH_ARGUMENTS.contains(&word) {
                blank_out(&mut bytes[at..at + blank]);
            } else if word == "__constant__" {
                bytes[at..at + blank].copy_from_slice(b"const       ");
            }
            at += blank.max(1);
        } else {
            // A qualifier is a word of its own.
            at += word_at(rest).len().max(1);
        }
    }
    bytes
}

/// The word that the text starts with.
fn word_at(text: &[u8]) -> &str {
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
    let end = text.iter().take_while(is_part).count();
    std::str::from_utf8(&text[..end]).unwrap_or_default()
}

/// Where the arguments of a launch end: not in parentheses, and within the statement.
fn launch_end(text: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in text.iter().enumerate().take(ARGUMENTS_MAX).skip(3) {
        match byte {
            b'(' | b'{' | b'[' => depth += 1,
            b')' | b'}' | b']' => depth = depth.checked_sub(1)?,
            b'>' if depth == 0 && text[at..].starts_with(LAUNCH[1].as_bytes()) => return Some(at),
            b';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// The length of the parentheses that follow, with the spaces before them.
fn parentheses(text: &[u8]) -> usize {
    let spaces =
        text.iter().take(ARGUMENTS_MAX).take_while(|byte| byte.is_ascii_whitespace()).count();
    let mut depth = 0_usize;
    for (at, byte) in text.iter().enumerate().take(ARGUMENTS_MAX).skip(spaces) {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 1 => return at + 1,
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    0
}

/// Keeps line breaks.
fn blank_out(bytes: &mut [u8]) {
    for byte in bytes.iter_mut().filter(|byte| !byte.is_ascii_whitespace()) {
        *byte = b' ';
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_and_qualifiers_become_cpp_of_the_same_length() {
        let check = |source: &str, want: &str| {
            let text = String::from_utf8(as_cpp(source)).unwrap();
            assert_eq!(text, want);
        };
        check("k<<<g, dim3(1, 2)>>>(x);", "k(  g, dim3(1, 2)  )(x);");
        check("k<f<2>><<<g, b, 0, s>>>(x);", "k<f<2>>(  g, b, 0, s  )(x);");
        check("A<B<C<int>>> x;", "A<B<C<int>>> x;");
        check("k<<<g; x>>>(y);", "k<<<g; x>>>(y);");
        check("k<<<g)>>>(y);", "k<<<g)>>>(y);");
        check("__global__ void k();", "           void k();");
        check("my__global__ x;", "my__global__ x;");
        check("__constant__ int c[2];", "const        int c[2];");
        check("__launch_bounds__(2 * (3)) k", "                           k");
        check("__launch_bounds__ k", "                  k");
        check("__device__ float *é;", "           float *é;");
        check("__", "__");
    }
}
