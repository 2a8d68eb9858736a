//! What a browser sends as a form.

/// A field of a form.
pub(super) fn form_value(body: &str, name: &str) -> Option<String> {
    let mut pairs = body.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(known, _)| *known == name)?;
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (first, byte) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            (b'+', _) => {
                bytes.push(b' ');
                rest = after;
            }
            (first, _) => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_decoded() {
        let value = |body: &str| form_value(body, "text");
        assert_eq!(value("a=1&text=try+64%25%21").as_deref(), Some("try 64%!"));
        assert_eq!(value("text=%zz%4").as_deref(), Some("%zz%4"));
        assert_eq!(value("other=1"), None);
    }
}
