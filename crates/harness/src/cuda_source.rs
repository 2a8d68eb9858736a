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

/// The text for a C++ parser. What is blanked cannot hold a call: qualifiers, and arguments made of
/// names, numbers and operators. Preprocessor lines stay as they are, since they may define a
/// qualifier as something else.
pub fn as_cpp(source: &str) -> Vec<u8> {
    let mut bytes = source.as_bytes().to_vec();
    let (mut at, mut directive) = (0, false);
    while at < source.len() {
        let rest = &source.as_bytes()[at..];
        match rest {
            [b'\n', ..] => directive &= is_continued(&source.as_bytes()[..at]),
            [b'#', ..] | [b'%', b':', ..] => directive = true,
            _ => {}
        }
        if directive {
            at += 1;
        } else if rest.starts_with(LAUNCH[0].as_bytes()) {
            if let Some(end) = launch_end(rest) {
                bytes[at..at + 3].copy_from_slice(b"(  ");
                bytes[at + end..at + end + 3].copy_from_slice(b"  )");
            }
            at += 3;
        } else {
            // A qualifier is a word of its own.
            let word = word_at(rest);
            if word == "__constant__" {
                bytes[at..at + word.len()].copy_from_slice(b"const       ");
            } else if QUALIFIERS.contains(&word) {
                blank_out(&mut bytes[at..at + word.len()]);
            } else if WITH_ARGUMENTS.contains(&word)
                && let Some(arguments) = plain_arguments(&rest[word.len()..])
            {
                blank_out(&mut bytes[at..at + word.len() + arguments]);
            }
            at += word.len().max(1);
        }
    }
    bytes
}

/// Whether a line goes on behind its end.
fn is_continued(line: &[u8]) -> bool {
    line.strip_suffix(b"\r").unwrap_or(line).ends_with(b"\\")
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

/// The length of the arguments that follow, with the spaces before them, if nothing in them can be
/// a call, a text or a comment.
fn plain_arguments(text: &[u8]) -> Option<usize> {
    let spaces = text.iter().take(ARGUMENTS_MAX).take_while(|byte| byte.is_ascii_whitespace());
    let start = spaces.count();
    let inner = text.get(start..)?.strip_prefix(b"(")?;
    let is_plain = |byte: &&u8| {
        byte.is_ascii_alphanumeric() || byte.is_ascii_whitespace() || b"_,:+-*<>.".contains(byte)
    };
    let length = inner.iter().take(ARGUMENTS_MAX).take_while(is_plain).count();
    (inner.get(length) == Some(&b')')).then_some(start + length + 2)
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
        check("__launch_bounds__(2 * N, T::m) k", "                               k");
        check("__launch_bounds__(f(1)) k", "__launch_bounds__(f(1)) k");
        check("__launch_bounds__ k", "__launch_bounds__ k");
        check(
            "#define A __host__ \\\n __host__\n__host__",
            "#define A __host__ \\\n __host__\n        ",
        );
        check("/**/ # define __host__ x", "/**/ # define __host__ x");
        check("__device__ float *é;", "           float *é;");
        check("__", "__");
    }
}
