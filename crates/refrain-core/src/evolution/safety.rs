//! What no instruction that a model wrote may say. The words are listed here and matched without regard to case, white
//! space and punctuation. Ambiguous text is refused: a person can still write it.

use crate::text::squeeze;

#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
pub enum Unsafe {
    /// Something in it is not seen.
    #[strum(to_string = "has something in it that is not seen")]
    Hidden,
    /// Letters of another script pass for Latin ones.
    #[strum(to_string = "has letters that pass for others")]
    LookAlike,
    /// Too long for a person to read.
    #[strum(to_string = "is too long to read")]
    Long,
    /// Foreign code would be run, or files deleted.
    #[strum(to_string = "would have something run from elsewhere, or something deleted")]
    Runs,
    /// Gates, tests, checks or reviews would be weakened.
    #[strum(to_string = "would weaken tests, gates, checks or reviews")]
    Weakens,
    /// An agent would be let do more.
    #[strum(to_string = "would let agents do more than they may")]
    Permits,
    /// It mentions how work is claimed, or Refrain itself.
    #[strum(to_string = "speaks of how work is claimed")]
    Claims,
    #[strum(to_string = "speaks of secrets")]
    Secrets,
    /// A rule would be taken away.
    #[strum(to_string = "would take a rule away")]
    Unrules,
}

const LESS: &str = "\
    skip skips skipped skipping disable disables disabled disabling bypass bypasses bypassing ignore ignores \
    ignored ignoring omit omits avoid avoids avoiding remove removes removing delete deletes deleting drop weaken \
    weakens circumvent suppress suppresses mute relax relaxed loosen xfail without unnecessary optional needless \
    off overrule override disregard forget comment stub stubbed fake hardcode rewrite lower reduce except only \
    unless whatever regardless allow-failure";

const NOT: &str = "not no never don't dont needn't neednt cannot nor stop instead";

/// Words for acts with guards; negated, they weaken the guard.
const ACTS: &str = "\
    run runs running execute executing need needs needed necessary required require matter matters count counts \
    add adding write writing keep fix fixing wait bother worry look heed follow obey trust use call start be care \
    mind test check review verify lint";

/// How many words after a [`NOT`] belong to it.
const REACH: usize = 4;

/// Words for guards that must not be weakened.
const GUARDS: &str = "\
    test tests testing gate gates check checks checking review reviews reviewer reviewers lint lints linter \
    linting hook hooks verification verify verified assertion assertions assert asserts sandbox protection \
    protected guard guards ci approval approvals audit instruction instructions rule rules coverage spec \
    validation clippy typecheck";

const PERMITS: &str = "\
    permission permissions sudo chmod yolo dangerously bypasspermissions auto-approve autoapprove approve \
    full-auto no-verify force force-push unsandboxed allowlist whitelist confirmation unattended push merge \
    publish deploy";

const CLAIMS: &str =
    "promise promises refrain spec_pass task_blocked state.md <promise> </promise> iteration-summary";

const SECRETS: &str = "\
    secret secrets password passwords token tokens credential credentials apikey api-key api_key printenv id_rsa \
    ssh-key netrc .env .netrc env";

/// Programs that run their input, fetch it, or delete.
const RUNS: &str = "curl wget eval iex base64 nc ncat telnet powershell rm rmdir shred dd mkfs crontab nohup";

/// Words that give a line the force of a rule.
const RULES: &str = "must never always not don't required requires only forbidden no shall";

/// The problem of the inserted lines, or of the removed ones.
pub(super) fn look(inserted: &[String], removed: &[&str], longest: usize) -> Option<Unsafe> {
    for line in inserted {
        if let Some(hidden) = hidden(line) {
            return Some(hidden);
        }
        if line.chars().count() > longest {
            return Some(Unsafe::Long);
        }
    }
    let all = inserted.join(" ");
    let is_rule = |line: &&&str| {
        let words = words(line);
        has(&words, RULES) || has(&words, GUARDS) || has(&words, PERMITS) || has(&words, SECRETS)
    };
    said(&all).or_else(|| removed.iter().find(is_rule).map(|_| Unsafe::Unrules))
}

/// The same for lines that will be adjacent, some of which exist already: only matches that include new words.
pub(super) fn together(near: &[String], inserted: &[String]) -> Option<Unsafe> {
    let (mine, all) = (words(&inserted.join(" ")), words(&near.join(" ")));
    let touches = has(&mine, LESS) || has(&mine, NOT) || has(&mine, GUARDS);
    (touches && weakens(&all) && !weakens_without(near, inserted)).then_some(Unsafe::Weakens)
}

/// Whether the existing lines already say it without the new ones.
fn weakens_without(near: &[String], inserted: &[String]) -> bool {
    let others: Vec<&str> = near.iter().filter(|line| !inserted.contains(line)).map(String::as_str).collect();
    weakens(&words(&others.join(" ")))
}

/// Whether something in a text cannot be seen, or is not what it seems to be.
pub(super) fn hidden(text: &str) -> Option<Unsafe> {
    let is_hidden = |c: char| {
        (c.is_control() && c != '\t')
            || matches!(
                c,
                '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180b}'..='\u{180f}'
                    | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
                    | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
                    | '\u{e0000}'..='\u{e0fff}'
            )
    };
    // A page hides these when it is shown.
    if text.chars().any(is_hidden) || text.contains("<!--") || text.contains("-->") || text.contains("[//]:")
    {
        return Some(Unsafe::Hidden);
    }
    let is_other =
        |c: char| matches!(c, '\u{370}'..='\u{52f}' | '\u{ff00}'..='\u{ffef}' | '\u{1d400}'..='\u{1d7ff}');
    text.chars().any(is_other).then_some(Unsafe::LookAlike)
}

/// The forbidden meaning of the text, if any.
fn said(text: &str) -> Option<Unsafe> {
    let words = words(text);
    let lower = squeeze(&text.to_lowercase());
    let is_piped =
        ["| sh", "|sh", "| bash", "|bash", "<(", "$(", "&& sh", "bash -c", "sh -c", "python -c", "> /"];
    let found = [
        (has(&words, RUNS) || is_piped.iter().any(|sign| lower.contains(sign)), Unsafe::Runs),
        (lower.contains("://"), Unsafe::Runs),
        (
            has(&words, CLAIMS) || lower.contains("status: done") || lower.contains("task is complete"),
            Unsafe::Claims,
        ),
        (has(&words, SECRETS), Unsafe::Secrets),
        (has(&words, PERMITS), Unsafe::Permits),
        (weakens(&words), Unsafe::Weakens),
    ];
    found.into_iter().find(|(is_so, _)| *is_so).map(|(_, what)| what)
}

/// Whether something that guards is made less. Also `never skip a test` is: who meant it well can have a person say so.
fn weakens(words: &[String]) -> bool {
    has(words, GUARDS) && (has(words, LESS) || negates(words))
}

fn negates(words: &[String]) -> bool {
    let reach = |at: usize| &words[at + 1..(at + 1 + REACH).min(words.len())];
    words.iter().enumerate().any(|(at, word)| is_one(word, NOT) && has(reach(at), ACTS))
}

fn has(words: &[String], known: &str) -> bool {
    words.iter().any(|word| is_one(word, known))
}

fn is_one(word: &str, known: &str) -> bool {
    known.split_whitespace().any(|one| one == word)
}

/// The words of a text, in small letters and without punctuation; a word with a sign inside counts whole and in parts.
fn words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase().replace(['’', '‘', '`', '*'], "'");
    let is_around = |c: char| !c.is_alphanumeric() && !"<>.".contains(c);
    let mut words = Vec::new();
    for word in lower.split(|c: char| c.is_whitespace() || ",;:()[]{}\"!?/|".contains(c)) {
        let word = word.trim_matches(is_around);
        words.push(word.trim_end_matches('.').to_owned());
        let parts = word.split(['-', '_', '.', '\'', '<', '>', '=', '+', '&', '#', '@', '~']);
        words.extend(parts.filter(|part| *part != word && !part.is_empty()).map(str::to_owned));
    }
    words.retain(|word| !word.is_empty());
    words
}
