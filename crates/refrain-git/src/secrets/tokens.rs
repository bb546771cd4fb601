//! Tokens whose shape their vendors have given away, keys with a header, and logins in addresses. One pass over the text
//! looks for what stands in every text of a shape, and only around that the shape itself is looked for.

use std::sync::{LazyLock, OnceLock};

use aho_corasick::AhoCorasick;
use regex::bytes::{Regex, RegexBuilder};

use super::Hit;
use super::judge;
use super::shapes::{Check, SHAPES};

/// How much of a text is looked at around an anchor, in bytes before and behind: every shape is told by so much of it. Keys
/// with a header are longer than all others.
const AROUND: (usize, usize) = (160, 6000);

/// How much must be seen behind an anchor that another has shown already.
const ENOUGH: usize = 400;

struct Shapes {
    /// What each shape has in it, and which shape that is.
    anchors: AhoCorasick,
    of_anchor: Vec<usize>,
    /// The shapes, made when they are first needed: most never are.
    each: Vec<OnceLock<Option<Regex>>>,
}

impl Shapes {
    fn regex(&self, shape: usize) -> Option<&Regex> {
        let make = || RegexBuilder::new(SHAPES[shape].3).unicode(false).build().ok();
        self.each[shape].get_or_init(make).as_ref()
    }
}

static COMPILED: LazyLock<Option<Shapes>> = LazyLock::new(|| {
    let anchors = SHAPES.iter().enumerate();
    let anchors = anchors.flat_map(|(shape, row)| row.2.split(' ').map(move |anchor| (shape, anchor)));
    let (of_anchor, words): (Vec<usize>, Vec<&str>) = anchors.unzip();
    let anchors = AhoCorasick::builder().ascii_case_insensitive(true).build(words).ok()?;
    Some(Shapes { anchors, of_anchor, each: SHAPES.iter().map(|_| OnceLock::new()).collect() })
});

/// The first token that `is_new`.
pub(super) fn find<'a>(text: &'a [u8], is_new: impl Fn(&Hit<'_>) -> bool) -> Option<Hit<'a>> {
    let shapes = COMPILED.as_ref()?;
    let mut seen_to = vec![0; SHAPES.len()];
    for anchor in shapes.anchors.find_overlapping_iter(text) {
        let shape = shapes.of_anchor[anchor.pattern().as_usize()];
        let end = text.len().min(anchor.end() + AROUND.1);
        if end > seen_to[shape] && anchor.end() + ENOUGH > seen_to[shape] {
            seen_to[shape] = end;
            let from = anchor.start().saturating_sub(AROUND.0);
            let found = look(text, from, end, shape, shapes.regex(shape)?, &is_new);
            if found.is_some() {
                return found;
            }
        }
    }
    None
}

fn look<'a>(
    text: &'a [u8],
    from: usize,
    end: usize,
    shape: usize,
    regex: &Regex,
    is_new: impl Fn(&Hit<'_>) -> bool,
) -> Option<Hit<'a>> {
    let (what, check, ..) = SHAPES[shape];
    regex.captures_iter(&text[from..end]).find_map(|found| {
        let whole = found.get(0)?;
        let body = found.get(1).unwrap_or(whole);
        let hit = Hit { what, text: body.as_bytes(), at: from + whole.start() };
        (is_one(check, hit.text) && is_new(&hit)).then_some(hit)
    })
}

fn is_one(check: Check, body: &[u8]) -> bool {
    match check {
        Check::Token => judge::is_token(body) && !is_shown(body),
        Check::Digits => {
            let digits = body.iter().filter(|byte| byte.is_ascii_digit()).count();
            let capitals = body.iter().filter(|byte| byte.is_ascii_uppercase()).count();
            judge::is_token(body) && (digits >= 2 || digits + capitals >= 6)
        }
        Check::Password => judge::is_login(body),
        Check::Typed => judge::is_typed(body),
        Check::Words => judge::is_mnemonic(body),
        Check::None => true,
    }
}

/// The token that shows everywhere what such a token is.
fn is_shown(body: &[u8]) -> bool {
    body.starts_with(b"eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwi")
}

#[cfg(test)]
pub(super) fn all_compile() -> bool {
    let shapes = COMPILED.as_ref();
    shapes.is_some_and(|shapes| (0..SHAPES.len()).all(|shape| shapes.regex(shape).is_some()))
}
