//! The ids of traces and spans, as W3C writes them. They follow from what they are of, not from chance.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde_with::{DeserializeFromStr, SerializeDisplay};

use crate::ids::LoopId;

/// One trace: the same for all that ever happens to a loop that is part of nothing else.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TraceId([u8; 16]);

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SpanId([u8; 8]);

impl TraceId {
    /// The id of the loop, or the plan, which was started then: a name can be given again.
    pub(super) fn of(id: &LoopId, started_at: Timestamp) -> Self {
        let hash = blake3::hash(format!("{id} {}", started_at.as_nanosecond()).as_bytes());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash.as_bytes()[..16]);
        Self(bytes)
    }

    /// The span of what belongs to that loop, in any trace.
    pub(super) fn span(self, what: &str) -> SpanId {
        let hash = blake3::hash(format!("{self} {what}").as_bytes());
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&hash.as_bytes()[..8]);
        SpanId(bytes)
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The parent span, as W3C writes it (`traceparent`): that of the process that started it, or of its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SerializeDisplay, DeserializeFromStr, JsonSchema)]
#[schemars(with = "String")]
pub struct Parent {
    pub(super) trace: TraceId,
    pub(super) span: SpanId,
}

/// A text that names no span, or one that is not sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is no traceparent of W3C that is sampled")]
pub struct ParentError;

impl FromStr for Parent {
    type Err = ParentError;

    /// A span that is not sampled is refused: it is not kept, so its children would have no parent.
    fn from_str(text: &str) -> Result<Self, ParentError> {
        let parts: Vec<&str> = text.split('-').collect();
        let &[version, trace, span, flags, ..] = parts.as_slice() else { return Err(ParentError) };
        let [version] = hex(version)?;
        let [flags] = hex(flags)?;
        let (trace, span) = (hex(trace)?, hex(span)?);
        // Later versions may have more after that; this one may not.
        let is_whole = parts.len() == 4 || version > 0;
        let is_one = version != 0xff && trace != [0; 16] && span != [0; 8] && flags & 1 == 1;
        if is_whole && is_one {
            Ok(Self { trace: TraceId(trace), span: SpanId(span) })
        } else {
            Err(ParentError)
        }
    }
}

/// N bytes in lower-case digits, and nothing else.
fn hex<const N: usize>(text: &str) -> Result<[u8; N], ParentError> {
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if text.len() != 2 * N || !text.bytes().all(is_hex) {
        return Err(ParentError);
    }
    let mut bytes = [0; N];
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16).map_err(|_| ParentError)?;
    }
    Ok(bytes)
}

impl fmt::Display for Parent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-01", self.trace, self.span)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", true)]
    #[case("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03", true)]
    #[case::of_a_later_version("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what", true)]
    #[case::said_too_much("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what", false)]
    #[case::not_sampled("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", false)]
    #[case::no_version("ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false)]
    #[case::no_trace("00-00000000000000000000000000000000-b7ad6b7169203331-01", false)]
    #[case::no_span("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", false)]
    #[case::upper_case("00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", false)]
    #[case::too_short("00-0af7651916cd43dd8448eb211c80319-b7ad6b7169203331-01", false)]
    #[case::signs("00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false)]
    #[case::letters("00-éaf7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false)]
    #[case::nothing("", false)]
    fn a_trace_parent_follows_the_w3c_format(#[case] text: &str, #[case] is_one: bool) {
        let parent = text.parse::<Parent>();
        assert_eq!(parent.is_ok(), is_one, "{text}");
        if let Ok(parent) = parent {
            assert_eq!(parent.to_string()[2..52], text[2..52]);
        }
    }
}
