use std::collections::BTreeMap;

/// How many words of a goal are used in the search.
const MOST: usize = 32;

/// Words that say nothing of what a text is about.
const IDLE: &str = " a about add added adding after all also an and any are as at be been before being but by can could do does \
    done ensure every fix fixed fixes for from get goal had has have how if implement in into is it its just let like loop loops make \
    makes making may mend more must need needs new no not now of on one ones only or our out please project should so some such task tasks than that \
    the their them then there these they this those to under until up update use used uses using via want was we were what when \
    where which while will with work works write you your der die das und ist ein eine mit für nicht den dem auf ";

/// What the text is about: its words without those that say nothing, each once, the most frequent first, at most 32.
pub fn keywords(text: &str) -> Vec<String> {
    let mut found: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric());
    for (at, word) in words.filter(|word| tells(word)).enumerate() {
        let (count, _) = found.entry(word.to_owned()).or_insert((0, at));
        *count += 1;
    }
    let mut words: Vec<_> = found.into_iter().collect();
    words.sort_by_key(|(_, (count, at))| (std::cmp::Reverse(*count), *at));
    words.truncate(MOST);
    words.into_iter().map(|(word, _)| word).collect()
}

fn tells(word: &str) -> bool {
    let is_short = word.is_ascii() && word.len() < 2;
    !is_short && !IDLE.contains(&format!(" {word} "))
}

/// The word without its ending, so that `tests` and `testing` are about the same. Only for comparing.
pub(super) fn stem(word: &str) -> &str {
    let ending = ["ations", "ation", "ings", "ing", "ers", "er", "ed", "es", "s", "e"].into_iter();
    let stems = ending.filter_map(|ending| word.strip_suffix(ending));
    let mut long = stems.filter(|stem| stem.len() >= 3 && stem.is_ascii());
    long.next().unwrap_or(word)
}
