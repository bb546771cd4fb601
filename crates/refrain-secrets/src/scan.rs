//! Applies the rules to a text: one pass finds all keywords, and only around these the rules' regular expressions are
//! tried.

use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use aho_corasick::AhoCorasick;
use regex::bytes::{Captures, Regex};

use super::hit::{Hit, Novelty, bytes_regex};
use super::rules::{Check, RULES};
use super::value;

/// How much of a text is examined around a keyword, in bytes before and after it. Keys with a header are the longest.
const AROUND: (usize, usize) = (160, 2000);

/// How much must be seen after a keyword that another match already covers.
const ENOUGH: usize = 700;

struct Table {
    /// In lower case, as the text that is searched: one that ignores case takes three times as long to build.
    keywords: AhoCorasick,
    /// For each keyword, its rule, and its bytes if the rule is case-sensitive.
    of_keyword: Vec<(usize, Option<&'static [u8]>)>,
    /// The rules with a repeated byte: the rule, the byte, and the distance.
    of_pairs: Vec<(usize, u8, usize)>,
    /// The regular expressions, compiled when they are first needed: most never are.
    regexes: Vec<OnceLock<Option<Regex>>>,
}

impl Table {
    fn regex(&self, rule: usize) -> Option<&Regex> {
        self.regexes[rule].get_or_init(|| bytes_regex(RULES[rule].regex)).as_ref()
    }
}

static TABLE: LazyLock<Option<Table>> = LazyLock::new(|| {
    let (mut of_keyword, mut words, mut of_pairs) = (Vec::new(), Vec::new(), Vec::new());
    for (number, rule) in RULES.iter().enumerate() {
        if let [byte, b'?', ..] = rule.keywords.as_bytes() {
            of_pairs.push((number, *byte, rule.keywords.len() - 1));
            continue;
        }
        for word in rule.keywords.split(' ') {
            of_keyword.push((number, (!rule.regex.contains("(?i")).then_some(word.as_bytes())));
            words.push(word.to_ascii_lowercase());
        }
    }
    let keywords = AhoCorasick::new(words).ok()?;
    Some(Table { keywords, of_keyword, of_pairs, regexes: RULES.iter().map(|_| OnceLock::new()).collect() })
});

/// The first new secret that a rule finds.
pub(super) fn find(text: &[u8], is_new: Novelty<'_>) -> Option<Hit> {
    let table = TABLE.as_ref()?;
    let mut seen_to = vec![0; RULES.len()];
    let mut around = |rule: usize, keyword: Range<usize>| {
        let end = text.len().min(keyword.end + AROUND.1);
        let is_seen = end <= seen_to[rule] || seen_to[rule] > 0 && keyword.end + ENOUGH <= seen_to[rule];
        if is_seen {
            return None;
        }
        seen_to[rule] = end;
        let from = keyword.start.saturating_sub(AROUND.0);
        let hit = apply(&text[from..end], rule, table.regex(rule)?, is_new)?;
        Some(Hit { at: from + hit.at, ..hit })
    };
    let lower = text.to_ascii_lowercase();
    let by_keyword = table.keywords.find_overlapping_iter(&lower).find_map(|keyword| {
        let (rule, exact) = table.of_keyword[keyword.pattern().as_usize()];
        exact.is_none_or(|exact| &text[keyword.range()] == exact).then(|| around(rule, keyword.range()))?
    });
    let by_pair = |(rule, byte, far): &(usize, u8, usize)| {
        let comes_again = |at: &usize| text.get(at + far) == Some(byte);
        memchr::memchr_iter(*byte, text).filter(comes_again).find_map(|at| around(*rule, at..at + far))
    };
    by_keyword.or_else(|| table.of_pairs.iter().find_map(by_pair))
}

fn apply(text: &[u8], rule: usize, regex: &Regex, is_new: Novelty<'_>) -> Option<Hit> {
    regex.captures_iter(text).find_map(|found| {
        let body = group(&found).unwrap_or_default();
        let is_secret = passes(RULES[rule].check, body) && is_new(body);
        is_secret.then(|| Hit { what: RULES[rule].what, at: found.get(0).map_or(0, |whole| whole.start()) })
    })
}

/// The first group that matched, or the whole match.
pub(super) fn group<'t>(found: &Captures<'t>) -> Option<&'t [u8]> {
    let group = found.iter().skip(1).flatten().next();
    group.or_else(|| found.get(0)).map(|group| group.as_bytes())
}

fn passes(check: Check, body: &[u8]) -> bool {
    match check {
        Check::Token => value::is_token(body),
        Check::Digits => value::is_token(body) && !value::is_name(body),
        Check::Key => value::is_secret(body, value::Kind::Key),
        Check::NoUuid => value::is_secret(body, value::Kind::Key) && !value::is_uuid(body),
        Check::Password => value::is_login(body),
        Check::Typed => value::is_typed(body),
        Check::Words => value::is_mnemonic(body),
        Check::Sure => true,
    }
}

#[cfg(test)]
pub(super) fn faulty_rules() -> Vec<&'static str> {
    let is_faulty = |table: &Table, rule: &usize| table.regex(*rule).is_none();
    let table = TABLE.as_ref().unwrap();
    (0..RULES.len()).filter(|rule| is_faulty(table, rule)).map(|rule| RULES[rule].regex).collect()
}
