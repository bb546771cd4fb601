//! Labelled messages: what is a claim, and what is none. Each label says why the row is there.

use proptest::prelude::*;

use super::MatchMode::{self, Plain, Substring, Tag};
use super::NearMiss::{self, *};
use super::{Finding, Promise, PromiseText, PromiseTextError, Scanner, scan};

const YES: Result<(), Option<NearMiss>> = Ok(());
const NO: Result<(), Option<NearMiss>> = Err(None);

const fn nearly(miss: NearMiss) -> Result<(), Option<NearMiss>> {
    Err(Some(miss))
}

fn promise(mode: MatchMode) -> Promise {
    Promise { text: "ALL DONE".parse().unwrap(), mode }
}

type Row = (&'static str, MatchMode, &'static str, Result<(), Option<NearMiss>>);

const MESSAGES: &[Row] = &[
    // Claims.
    ("alone", Tag, "T", YES),
    ("last of several lines", Tag, "I did it.\n\nT\n", YES),
    ("alone, then a sign-off", Tag, "T\n\nIt was a pleasure.", YES),
    ("alone, with a full stop", Tag, "It works.\nT.", YES),
    ("alone, with an exclamation mark and bold", Tag, "It works.\n**T!**", YES),
    ("bold", Tag, "**T**", YES),
    ("bold and punctuated", Tag, "**T**!", YES),
    ("in italics", Tag, "_T_", YES),
    ("in a list", Tag, "Summary:\n- tests pass\n- T\n", YES),
    ("in a numbered list", Tag, "1. tests pass\n2. T", YES),
    ("in a task list", Tag, "- [x] T", YES),
    ("under a bullet of another kind", Tag, "• T", YES),
    ("a heading", Tag, "## T", YES),
    ("a closed heading", Tag, "## T ##", YES),
    ("a little indented", Tag, "   T", YES),
    ("indented within a paragraph", Tag, "I am done:\n    T", YES),
    ("the text of a list item, after an empty line", Tag, "- done\n\n  T\n", YES),
    ("the text of a numbered list item", Tag, "10. done\n\n    T\n", YES),
    ("white space inside", Tag, "<promise>  ALL \t DONE </promise>", YES),
    ("over three lines", Tag, "<promise>\nALL DONE\n</promise>", YES),
    ("over lines within its words", Tag, "<promise>ALL\nDONE</promise>\nBye.", YES),
    ("with a carriage return", Tag, "done\r\nT\r\n", YES),
    ("after a byte order mark", Tag, "\u{feff}T", YES),
    ("in colour", Tag, "\u{1b}[1;32mT\u{1b}[0m", YES),
    ("colour inside the tag", Tag, "<promise>ALL \u{1b}[1mDONE\u{1b}[0m</promise>", YES),
    ("a control character inside", Tag, "<pro\u{0}mise>ALL\u{7} DONE</promise>", YES),
    ("after a terminal title", Tag, "\u{1b}]0;agent\u{7}T", YES),
    ("over a progress line", Tag, "10%\r20%\rT", YES),
    ("the second of two tags", Tag, "<promise>MORE</promise>\n\nT", YES),
    ("two tags on one line", Tag, "<promise>MORE</promise> T", YES),
    ("twice", Tag, "T\nT", YES),
    ("after a mention", Tag, "I will print T when done.\n\nT", YES),
    ("after a closed fence", Tag, "```\ncargo test\n```\nT", YES),
    ("after a closed fence of tildes", Tag, "~~~sh\ncargo test\n~~~\nT", YES),
    ("after a longer closing fence", Tag, "```\nx\n`````\nT", YES),
    ("after a fence in a list item", Tag, "- run\n  ```\n  x\n  ```\n\nT", YES),
    ("after inline code that looks like a fence", Tag, "```x``` is code\nT", YES),
    ("after a quotation", Tag, "> run it again\n\nT", YES),
    ("right below a quotation", Tag, "> run it again\nT", YES),
    ("after a comment", Tag, "<!-- notes -->\nT", YES),
    ("beside a comment", Tag, "T <!-- at last -->", YES),
    ("after a comment over lines", Tag, "<!-- notes\nmore -->\nT", YES),
    ("a comment sign in inline code opens none", Tag, "`<!--` is fine\nT", YES),
    ("an unbalanced backtick", Tag, "a ` b\nT", YES),
    ("below a rule", Tag, "---\nT", YES),
    ("after a tag that was mentioned and left open", Tag, "The <promise> tag comes next.\nT", YES),
    ("alone, in plain mode", Plain, "T", YES),
    ("bare words", Plain, "ALL DONE", YES),
    ("bare words in another case", Plain, "Tests pass.\nall done\n", YES),
    ("bare words with decoration", Plain, "**All done!**", YES),
    ("bare words as a heading", Plain, "# All done", YES),
    ("bare words in a list", Plain, "- tests pass\n- all done.", YES),
    ("bare words, spaced", Plain, "ALL   DONE", YES),
    ("anywhere", Substring, "it is all done, or not?", YES),
    ("anywhere, in code", Substring, "```\nALL DONE\n```\nbye", YES),
    ("anywhere, in a tag", Substring, "so: T, then", YES),
    // No claims.
    ("nothing", Tag, "", NO),
    ("only white space", Tag, " \n\t\n", NO),
    ("words about something else", Tag, "I mended two tests.", NO),
    ("a mention", Tag, "I will print T when it works.", nearly(InSentence)),
    ("a mention, quoted", Tag, "You asked for \"T\" at the end.\nNot yet.", nearly(InSentence)),
    (
        "a mention that ends a line which is not the last",
        Tag,
        "Then I print T\nBut not yet.",
        nearly(InSentence),
    ),
    ("in parentheses", Tag, "(T)\nNot yet.", nearly(InSentence)),
    ("in a table", Tag, "| end | T |\n", nearly(InSentence)),
    ("in inline code", Tag, "`T`", nearly(InCode)),
    ("in inline code of two ticks", Tag, "``T``", nearly(InCode)),
    ("in a fence", Tag, "```\nT\n```", nearly(InCode)),
    ("in a fence of tildes", Tag, "~~~\nT\n~~~", nearly(InCode)),
    ("in a fence with a language", Tag, "```text\nT\n```\n", nearly(InCode)),
    ("in a fence that does not end", Tag, "```\nsome code\nT", nearly(InCode)),
    ("a shorter fence does not close", Tag, "````\n```\nT\n", nearly(InCode)),
    ("a fence of the other kind does not close", Tag, "```\n~~~\nT\n", nearly(InCode)),
    ("a fence with words does not close", Tag, "```\n``` x\nT\n", nearly(InCode)),
    ("in a fence in a list item", Tag, "- so:\n  ```\n  T\n  ```\n", nearly(InCode)),
    ("in a fence, in colour", Tag, "\u{1b}[2m```\u{1b}[0m\nT\n```", nearly(InCode)),
    ("indented code", Tag, "Print:\n\n    T\n", nearly(InCode)),
    ("indented by a tab", Tag, "Print:\n\n\tT\n", nearly(InCode)),
    ("indented code at the start", Tag, "    T", nearly(InCode)),
    ("indented code in a list item", Tag, "- print\n\n      T\n", nearly(InCode)),
    ("in a quotation", Tag, "> T", nearly(InQuote)),
    ("in a quotation in a quotation", Tag, "> > T", nearly(InQuote)),
    ("in a quotation in a list item", Tag, "- > T", nearly(InQuote)),
    ("in a comment", Tag, "<!-- T -->", nearly(InComment)),
    ("in a comment over lines", Tag, "<!--\nT\n-->", nearly(InComment)),
    ("in a comment that does not end", Tag, "<!-- so:\nT", nearly(InComment)),
    ("in another case", Tag, "<promise>All Done</promise>", nearly(WrongCase)),
    ("a tag in another case", Tag, "<PROMISE>ALL DONE</PROMISE>", nearly(WrongCase)),
    ("other words", Tag, "<promise>ALL DONE BUT ONE</promise>", nearly(OtherText)),
    ("decorated inside", Tag, "<promise>**ALL DONE**</promise>", nearly(OtherText)),
    ("look-alike letters", Tag, "<promise>\u{410}LL DONE</promise>", nearly(OtherText)),
    ("a zero-width space", Tag, "<promise>ALL\u{200b} DONE</promise>", nearly(OtherText)),
    ("empty", Tag, "<promise></promise>", nearly(Empty)),
    ("only white space inside", Tag, "<promise>  </promise>", nearly(Empty)),
    ("attributes", Tag, "<promise id=\"1\">ALL DONE</promise>", nearly(Attributes)),
    ("escaped", Tag, "&lt;promise&gt;ALL DONE&lt;/promise&gt;", nearly(Escaped)),
    ("not closed", Tag, "<promise>ALL DONE", nearly(Unclosed)),
    ("bare words where the tag is asked for", Tag, "Tests pass.\nALL DONE", nearly(Untagged)),
    ("a tag of another name", Tag, "<promised>ALL DONE</promised>", NO),
    ("in a JSON string", Tag, "{\"text\":\"T\"}\n", nearly(InSentence)),
    ("bare words denied", Plain, "not all done", NO),
    ("bare words in a sentence", Plain, "It is all done now.", NO),
    ("bare words, then more", Plain, "ALL DONE\nexcept one thing", NO),
    ("bare words in code", Plain, "```\nALL DONE\n```", NO),
    ("bare words in a fence that does not end", Plain, "```\nALL DONE", NO),
    ("bare words in inline code", Plain, "`ALL DONE`", NO),
    ("bare words in a quotation", Plain, "> ALL DONE", NO),
    ("bare words in a comment", Plain, "<!--\nALL DONE\n-->", NO),
    ("one of the words", Plain, "DONE", NO),
    ("nowhere", Substring, "nothing yet", NO),
];

/// Messages whose last non-empty line holds other words before the tag. With a required gate a tag at the end of that
/// line is a claim; without one, and with punctuation after the tag, it is a near miss. `true`: a claim with a required
/// gate.
const ENDS: &[(&str, &str, bool)] = &[
    ("after other words", "Everything passes: T", true),
    ("after other words, empty lines follow", "Everything passes. T\n\n  \n", true),
    ("after other words, in bold", "**Everything passes: T**", true),
    ("over two lines", "Everything passes: <promise>ALL\nDONE</promise>", true),
    ("the second of two tags", "First <promise>MORE</promise>, then T", true),
    ("a negation", "I have not yet earned T", true),
    ("an intention", "When done I will print T", true),
    ("a prohibition", "I must not say T", true),
    ("a condition", "Remaining: 3 tasks. Once they pass: T", true),
    ("an intention with a full stop", "Next time I will output T.", false),
    ("a condition with a full stop", "Two tests still fail. When all tests pass I will print T.", false),
    ("with an exclamation mark", "Everything passes: T!", false),
    ("with a comma", "Everything passes: T,", false),
    ("with a full stop in bold", "Everything passes: T**.**", false),
    ("with words after it", "Everything passes: T, I think", false),
    ("in quotation marks", "You asked for \"T\"", false),
    ("in parentheses", "Not yet (T)", false),
    ("another line follows", "Then I print T\nBut not yet.", false),
];

#[test]
fn a_tag_after_other_words_claims_only_with_a_required_gate() {
    let rows = ENDS.iter().flat_map(|row| [(Tag, row), (Plain, row)]);
    let wrong: Vec<_> = rows
        .flat_map(|(mode, (label, message, claims))| {
            let message = with_tag(message);
            let of = |is_gated| found(&scan(&promise(mode), &message, is_gated));
            let gated = if *claims { YES } else { nearly(InSentence) };
            let found = [(false, of(false), nearly(InSentence)), (true, of(true), gated)];
            found.map(|(is_gated, found, expected)| (label, mode, is_gated, found, expected))
        })
        .filter(|(_, _, _, found, expected)| found != expected)
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn found(finding: &Finding) -> Result<(), Option<NearMiss>> {
    if finding.claimed { Ok(()) } else { Err(finding.near_miss) }
}

#[test]
fn claims_are_distinguished_from_mentions() {
    let wrong: Vec<_> = MESSAGES
        .iter()
        // These messages are read in the same way with a required gate and without one.
        .flat_map(|row| [(row, false), (row, true)])
        .map(|((label, mode, message, expected), is_gated)| {
            let message = with_tag(message);
            (label, mode, is_gated, found(&scan(&promise(*mode), &message, is_gated)), expected, message)
        })
        .filter(|(_, _, _, found, expected, _)| found != *expected)
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(MESSAGES.len() >= 100);
}

/// Replaces each T that is alone, not in a word, by the tag.
fn with_tag(message: &str) -> String {
    let chars: Vec<char> = message.chars().collect();
    let is_word = |at: Option<&char>| at.is_some_and(|c| c.is_alphanumeric());
    let mut out = String::new();
    for (at, c) in chars.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| chars.get(at));
        // The final character of a colour sequence is no word.
        let after_colour = before == Some(&'m') && message.contains('\u{1b}');
        if *c == 'T' && (!is_word(before) || after_colour) && !is_word(chars.get(at + 1)) {
            out.push_str("<promise>ALL DONE</promise>");
        } else {
            out.push(*c);
        }
    }
    out
}

/// What a message of a task's agent says about giving up, after this `prompt`.
fn gave_up(prompt: &str, message: &str) -> Option<String> {
    let mut scanner = Scanner::new(Some(&promise(Plain)), prompt).hearing_giving_up();
    scanner.push(message.as_bytes());
    scanner.finish().gave_up
}

#[test]
fn giving_up_is_distinguished_from_mentions_of_it() {
    for (message, expected) in [
        ("TASK_BLOCKED: there is no key", Some("there is no key")),
        ("I looked everywhere.\n\nTASK_BLOCKED:  there is\tno key \nBye.", Some("there is no key")),
        ("- **TASK_BLOCKED: there is no key**", Some("there is no key")),
        ("**TASK_BLOCKED:** there is no key", Some("there is no key")),
        ("## TASK_BLOCKED: there is no key", Some("there is no key")),
        ("TASK_BLOCKED: `key.pem` is missing", Some("`key.pem` is missing")),
        ("TASK_BLOCKED: the first\nTASK_BLOCKED: the second", Some("the first")),
        ("\u{1b}[31mTASK_BLOCKED: no\u{1b}[0m key", Some("no key")),
        ("TASK_BLOCKED:", Some("it gave no reason")),
        ("TASK_BLOCKED: no key\n\nALL DONE", None),
        ("TASK_BLOCKED: no key\n<promise>ALL DONE</promise>", None),
        ("TASK_BLOCKED: <reason>", None),
        ("I will not print TASK_BLOCKED: there is a key", None),
        ("`TASK_BLOCKED: no key`", None),
        ("```\nTASK_BLOCKED: no key\n```", None),
        ("    TASK_BLOCKED: no key", None),
        ("> TASK_BLOCKED: no key", None),
        ("<!-- TASK_BLOCKED: no key -->", None),
        ("<!--\nTASK_BLOCKED: no key\n-->", None),
        ("task_blocked: no key", None),
        ("TASK_BLOCKED no key", None),
        ("", None),
    ] {
        assert_eq!(gave_up("Find it.", message).as_deref(), expected, "{message}");
    }
    let line = "TASK_BLOCKED: so it says";
    assert_eq!(gave_up(line, line), None, "a line of the prompt is not the agent's word");
    assert_eq!(gave_up("", line).as_deref(), Some("so it says"));
    assert_eq!(scan(&promise(Plain), line, true).gave_up, None, "it is not listened for");
    assert!(gave_up("", &format!("TASK_BLOCKED: {}", "x".repeat(1 << 20))).unwrap().len() <= 500);
}

fn printed(mode: MatchMode, prompt: &str, output: &[u8]) -> Finding {
    let mut scanner = Scanner::new(Some(&promise(mode)), prompt);
    scanner.push(output);
    scanner.finish()
}

const PROMPT: &str =
    "Mend the tests.\n\nWhen you are done, print\n<promise>ALL DONE</promise>\nand nothing else.\n";

#[test]
fn an_echo_of_the_prompt_is_not_the_agents_word() {
    let tag = "<promise>ALL DONE</promise>";
    for (label, mode, prompt, output, expected) in [
        ("the whole prompt", Plain, PROMPT, PROMPT.to_owned(), NO),
        ("without its empty lines", Plain, PROMPT, PROMPT.replace("\n\n", "\n"), NO),
        ("with carriage returns", Plain, PROMPT, PROMPT.replace('\n', "\r\n"), NO),
        ("behind a word", Plain, PROMPT, format!("Prompt: {PROMPT}"), NO),
        ("twice", Plain, PROMPT, format!("{PROMPT}{PROMPT}"), NO),
        ("then work, then the claim", Plain, PROMPT, format!("{PROMPT}working\n{tag}\n"), YES),
        ("the claim first", Plain, PROMPT, format!("{tag}\n{PROMPT}"), YES),
        ("begun, and begun again", Plain, PROMPT, format!("Mend the tests.\n{PROMPT}"), NO),
        ("only its begin, then the claim", Plain, PROMPT, format!("Mend the tests.\n{tag}\n"), YES),
        ("a line of it", Plain, &*format!("Print {tag}"), format!("Print {tag}"), NO),
        (
            "a line of it, behind a word",
            Plain,
            &*format!("Print {tag}"),
            format!("You said: Print {tag}"),
            NO,
        ),
        ("a line of it, then the claim", Plain, &*format!("Print {tag}"), format!("Print {tag}\n{tag}"), YES),
        ("the bare tag as prompt", Plain, tag, tag.to_owned(), NO),
        ("the bare words as prompt", Plain, "all done", "all done".to_owned(), NO),
        (
            "a fence that the prompt leaves open",
            Plain,
            "Like this:\n```\nx",
            format!("Like this:\n```\nx\n{tag}"),
            YES,
        ),
        ("a substring of an echo", Substring, PROMPT, PROMPT.to_owned(), NO),
        ("in tag mode", Tag, PROMPT, PROMPT.to_owned(), NO),
    ] {
        assert_eq!(found(&printed(mode, prompt, output.as_bytes())).map_err(|_| None), expected, "{label}");
    }
}

#[test]
fn a_long_line_is_looked_at_from_both_ends() {
    let tag = "<promise>ALL DONE</promise>";
    let long = "x".repeat(1 << 20);
    let ends = format!("{long} {tag}");
    assert!(scan(&promise(Tag), &ends, true).claimed, "it ends the last line");
    assert_eq!(scan(&promise(Tag), &ends, false).near_miss, Some(InSentence));
    assert!(!printed(Tag, "", format!("{long} {tag}\nmore").as_bytes()).claimed);
    assert!(!printed(Tag, "", format!("{long} {tag} {long}").as_bytes()).claimed);
    assert!(
        printed(Substring, "", format!("{long} {tag} {long}").as_bytes()).claimed,
        "anywhere is anywhere"
    );
    assert!(printed(Plain, "", format!("{long}\n{tag}\n{long}").as_bytes()).claimed);
    assert!(printed(Plain, "", format!("{long}\nall done").as_bytes()).claimed);
}

#[test]
fn bytes_that_are_no_text_do_not_hide_a_claim() {
    let mut output = b"\xff\xfe\xc3\x28 \x00 rubbish\n".to_vec();
    output.extend_from_slice(b"<promise>ALL DONE</promise>\n\xf0\x9f");
    assert!(printed(Plain, "", &output).claimed);
}

#[test]
fn the_last_line_is_the_preview() {
    let mut scanner = Scanner::new(None, "");
    scanner.push("first\n\u{1b}[31mlast\u{1b}[0m line\n\n".as_bytes());
    let finding = scanner.finish();
    assert_eq!((finding.last_line.as_str(), finding.claimed, finding.near_miss), ("last line", false, None));
    let finding = scan(&promise(Tag), "Both tests pass now.\n\n<promise>ALL DONE</promise>\n", false);
    assert_eq!((finding.last_line.as_str(), finding.claimed), ("Both tests pass now.", true));
    let finding = scan(&promise(Tag), "<promise>ALL DONE</promise>", false);
    assert_eq!(finding.last_line, "<promise>ALL DONE</promise>", "there is nothing else to show");
    let message = "Well.\n<iteration-summary> Found two. </iteration-summary>\n<promise>ALL DONE</promise>\n";
    for message in [message, message.strip_suffix("<promise>ALL DONE</promise>\n").unwrap()] {
        assert_eq!(scan(&promise(Tag), message, false).last_line, "Found two.");
    }
    let mut scanner = Scanner::new(None, "");
    scanner.push("é".repeat(1000).as_bytes());
    assert!(scanner.finish().last_line.len() <= 160);
}

#[test]
fn a_promise_that_could_never_be_found_is_refused() {
    assert_eq!(" ALL\n DONE ".parse::<PromiseText>().unwrap().as_str(), "ALL DONE");
    assert_eq!(" \n".parse::<PromiseText>(), Err(PromiseTextError::Empty));
    for bad in ["<b>", "a>b", "a\u{7}b", "`x`"] {
        assert!(bad.parse::<PromiseText>().is_err(), "{bad:?}");
    }
}

#[test]
fn a_prompt_that_names_the_tag_is_known_to() {
    let promise = promise(Tag);
    assert!(promise.is_tagged_in("Print <promise>ALL  DONE</promise> when done."));
    assert!(promise.is_tagged_in("Not <promise>X</promise> but <promise>ALL DONE</promise>"));
    assert!(!promise.is_tagged_in("Print <promise>DONE</promise>"));
    assert!(!promise.is_tagged_in("ALL DONE"));
}

fn rubble() -> impl Strategy<Value = Vec<u8>> {
    let pieces: Vec<&'static [u8]> = vec![
        b"<promise>ALL DONE</promise>",
        b"<promise>",
        b"</promise>",
        b"ALL DONE",
        b"all done",
        b"\n",
        b"\n\n",
        b"```",
        b"~~~",
        b"`",
        b"> ",
        b"- ",
        b"    ",
        b"\t",
        b"<!--",
        b"-->",
        b" ",
        b"x",
        b"\r",
        b"\r\n",
        b"\x1b[1m",
        b"\x1b]0;",
        b"\x07",
        b"\xff",
        b"\xc2\x9b",
        b"Mend the tests.",
        b"and nothing else.",
        b"When you are done, print",
        b".",
        b"**",
        b"&lt;promise&gt;",
        b"\0",
        b"1. ",
    ];
    let piece = prop_oneof![
        8 => proptest::sample::select(pieces).prop_map(<[u8]>::to_vec),
        1 => (0usize..40_000).prop_map(|length| vec![b'y'; length]),
        1 => Just(PROMPT.as_bytes().to_vec()),
    ];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn chunks_may_be_cut_anywhere(
        text in rubble(),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..8),
        is_gated in any::<bool>(),
        mode in proptest::sample::select(vec![Tag, Plain, Substring]),
    ) {
        let scanner = || Scanner::new(Some(&promise(mode)), PROMPT).gated(is_gated);
        let mut whole = scanner();
        whole.push(&text);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.sort_unstable();
        let mut scanner = scanner();
        let mut from = 0;
        for cut in cuts.into_iter().chain([text.len()]) {
            scanner.push(&text[from..cut]);
            from = cut;
        }
        prop_assert_eq!(scanner.finish(), whole.finish());
    }

    #[test]
    fn any_bytes_are_read(text in proptest::collection::vec(any::<u8>(), 0..500)) {
        let finding = printed(Plain, PROMPT, &text);
        prop_assert!(finding.last_line.chars().all(|c| !c.is_control() || c == '\t'));
    }

    #[test]
    fn a_claim_alone_after_any_closed_text_is_heard(words in "[a-zA-Z ,.]{0,60}") {
        let message = format!("{words}\n\n<promise>ALL DONE</promise>\n");
        prop_assert!(scan(&promise(Tag), &message, false).claimed);
    }
}
