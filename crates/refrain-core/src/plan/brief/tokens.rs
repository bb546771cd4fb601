/// Bytes of a token, about: the tokenizers of today make 3 to 5 bytes of prose or code one token.
const BYTES: u64 = 4;

/// About how many tokens the text is: good for a warning, not for a bill.
pub const fn tokens(text: &str) -> u64 {
    (text.len() as u64).div_ceil(BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_bytes_are_a_token_and_a_rest_is_one_more() {
        for (text, counted) in [("", 0), ("a", 1), ("abcd", 1), ("größer", 2)] {
            assert_eq!(tokens(text), counted, "{text}");
        }
    }
}
