//! Where a private key begins in a log or a patch, whose lines are shown one by one: the rule for commits decides.

use memchr::memmem;

use super::scan;

/// What the header of a private key begins with.
const HEADER: &[u8] = b"-----BEGIN ";
/// How much of a key shows that it is one, in bytes.
const KEY: usize = 2000;

/// Whether a private key begins in the first line of this text, or of this part of a patch. One that the end of the text cuts off
/// counts.
pub fn begins_key(text: &[u8]) -> bool {
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let at = memmem::find(line, HEADER).filter(|_| memmem::find(line, b"PRIVATE KEY").is_some());
    let Some(at) = at else { return false };
    let key = &text[at..text.len().min(at + KEY)];
    let hunk = &key[..memmem::find(key, b"\n@@ ").unwrap_or(key.len())];
    // The first sign of each line of a patch says whether it is new.
    let is_signed = at > 0 && b"+- ".contains(&line[0]);
    let lines = hunk.split(|byte| *byte == b'\n').enumerate().map(|(number, line)| match line {
        [b'+' | b'-' | b' ', rest @ ..] if is_signed && number > 0 => rest,
        line => line,
    });
    let text = lines.collect::<Vec<_>>().join(&b'\n');
    scan::find(&text, &|_| true).is_some_and(|hit| hit.at == 0) || is_cut(&text)
}

/// Whether nothing but a header, and a part of a body, is left of a key.
fn is_cut(key: &[u8]) -> bool {
    let rest = &key[HEADER.len()..];
    let Some(end) = memmem::find(rest, b"-----") else { return true };
    let mut lines = rest[end + 5..].split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let is_body = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
    lines.next().is_some_and(<[u8]>::is_empty) && lines.all(|line| line.iter().all(is_body))
}

#[cfg(test)]
mod tests {
    use super::begins_key;

    /// Lines of a log or a patch: what is shown of a key is decided as for a commit, and hidden if the rest of it is cut off.
    #[test]
    fn a_key_begins_with_its_header_and_a_body() {
        let [begin, end] = ["BEGIN", "END"].map(|word| format!("-----{word} PRIVATE KEY-----"));
        for (text, is_key) in [
            (format!("{begin}\nMIIE\n{end}\n"), true),
            (format!("-{begin}\n-MIIE\n+MIIF\n {end}\n"), true),
            (format!("+{begin}\n+MI"), true),
            (format!("+{begin}\n@@ -9 +9 @@\n"), true),
            (format!("+    if text.contains(\"{begin}\") {{\n+        refuse()\n"), false),
            (format!("grep -q '{begin}' *.pem\n"), false),
            (format!("first\n{begin}\nMIIE\n{end}\n"), false),
        ] {
            assert_eq!(begins_key(text.as_bytes()), is_key, "{text}");
        }
    }
}
