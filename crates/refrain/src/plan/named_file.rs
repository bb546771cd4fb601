//! A plan's file that was typed without `--plan`: the error says how it is named.

use camino::Utf8Path;
use refrain_app::RequestError;

/// The verbs of `plan` that take `--plan FILE`.
const VERBS: [&str; 4] = ["run", "check", "waves", "show"];

/// The refusal of a command line, with the way to name the file where one was typed as a bare word.
pub(crate) fn hinted(error: RequestError) -> RequestError {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match meant(&words, |word| Utf8Path::new(word).is_file()) {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

fn meant(words: &[String], is_file: impl Fn(&str) -> bool) -> Option<String> {
    let [plan, verb, rest @ ..] = words else { return None };
    if plan != "plan" || !VERBS.contains(&verb.as_str()) {
        return None;
    }
    let is_plan =
        |word: &str| matches!(Utf8Path::new(word).extension(), Some("md" | "markdown" | "json" | "scg"));
    let before = std::iter::once(verb).chain(rest);
    let mut bare =
        before.zip(rest).filter(|(before, word)| !before.starts_with('-') && !word.starts_with('-'));
    let (_, file) = bare.find(|(_, word)| is_plan(word) && is_file(word))?;
    let file = shlex::try_quote(file).ok()?;
    Some(format!("did you mean refrain plan {verb} --plan {file}?"))
}

#[cfg(test)]
mod tests {
    use super::meant;

    #[test]
    fn only_a_bare_word_that_is_a_file_is_meant() {
        let meant = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            meant(&words, |word| word == "PLAN.md")
        };
        let said = Some("did you mean refrain plan check --plan PLAN.md?".to_owned());
        assert_eq!(meant("plan check PLAN.md"), said);
        for line in ["plan check --plan PLAN.md", "plan check gone.md", "plan tune PLAN.md", "status PLAN.md"]
        {
            assert_eq!(meant(line), None, "{line}");
        }
    }
}
