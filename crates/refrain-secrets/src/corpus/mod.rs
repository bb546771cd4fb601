//! Planted secrets and harmless files with values that are drawn anew in each run: every planted one is found, and at
//! most five of a thousand harmless files are refused. A failure prints the seed that reproduces it.

mod harmless;
mod planted;

use std::hash::{BuildHasher, Hasher, RandomState};

use super::screen;
use super::tests::Chance;

/// A file of the corpus: its description, path and bytes.
struct Sample {
    what: String,
    path: String,
    bytes: Vec<u8>,
}

impl Sample {
    fn new(what: impl Into<String>, path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { what: what.into(), path: path.into(), bytes: bytes.into() }
    }

    fn is_refused(&self) -> bool {
        screen(self.path.as_bytes(), &self.bytes, None).is_some()
    }

    fn show(&self) -> String {
        let text = String::from_utf8_lossy(&self.bytes[..self.bytes.len().min(400)]).into_owned();
        let found = screen(self.path.as_bytes(), &self.bytes, None);
        format!("{} in {} ({found:?}): {text:?}\n", self.what, self.path)
    }
}

const WORDS: &str = "river stone market window garden letter simple yellow driver mountain paper signal copper engine harbour silent number branch vector buffer client session request handler parser stream record cache queue worker module button layout folder account invoice";

/// A text of a template: `<w>` is a word, `<uuid>` a UUID, and the rest as [`Chance::shape`] reads it.
fn fill(chance: &mut Chance, template: &str) -> String {
    let words: Vec<&str> = WORDS.split(' ').collect();
    let mut filled = String::new();
    for (number, part) in template.split("<w>").enumerate() {
        if number > 0 {
            filled.push_str(words[chance.next(words.len())]);
        }
        filled.push_str(part);
    }
    let filled = filled.replace("<uuid>", "{h8}-{h4}-4{h3}-a{h3}-{h12}");
    chance.shape(&filled)
}

#[expect(clippy::disallowed_methods, reason = "how a person tells a test which seed to repeat")]
fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// The seeds of this run: the given one, or as many random ones as `REFRAIN_SEEDS` says, one by default.
fn seeds() -> Vec<u64> {
    let draw = || RandomState::new().build_hasher().finish() >> 32;
    let drawn = (0..number("REFRAIN_SEEDS").unwrap_or(1)).map(|_| draw());
    number("REFRAIN_SEED").map_or_else(|| drawn.collect(), |seed| vec![seed])
}

#[test]
fn no_freshly_generated_secret_passes() {
    let mut all = String::new();
    for seed in seeds() {
        let planted = planted::planted(&mut Chance(seed));
        let kinds: std::collections::BTreeSet<_> = planted.iter().map(|it| it.what.as_str()).collect();
        assert!(planted.len() >= 400 && kinds.len() >= 44, "{} of {} kinds", planted.len(), kinds.len());
        let passed: Vec<_> = planted.iter().filter(|it| !it.is_refused()).map(Sample::show).collect();
        let repeat = "cargo test -p refrain-secrets corpus";
        println!("seed {seed}: {} of {} planted passed", passed.len(), planted.len());
        if !passed.is_empty() {
            all.push_str(&format!("repeat with: REFRAIN_SEED={seed} {repeat}\n{}", passed.concat()));
        }
    }
    assert!(all.is_empty(), "{all}");
}

#[test]
fn at_most_five_of_a_thousand_generated_files_are_refused() {
    let mut all = String::new();
    for seed in seeds() {
        let harmless = harmless::harmless(&mut Chance(seed));
        assert!(harmless.len() >= 1000, "{}", harmless.len());
        let refused: Vec<_> = harmless.iter().filter(|it| it.is_refused()).map(Sample::show).collect();
        let repeat = "cargo test -p refrain-git of_a_thousand";
        println!("seed {seed}: {} of {} harmless refused", refused.len(), harmless.len());
        if refused.len() * 1000 > harmless.len() * 5 {
            all.push_str(&format!("repeat with: REFRAIN_SEED={seed} {repeat}\n{}", refused.concat()));
        }
    }
    assert!(all.is_empty(), "{all}");
}
