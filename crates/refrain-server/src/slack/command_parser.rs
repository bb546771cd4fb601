//! Parses what users write to the bot: `/refrain start …`, or the same words after a mention of it. Pure.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum SlackRequest {
    Start {
        project: Option<String>,
        goal: String,
    },
    /// The status of one loop, or of all that have not ended.
    Status(Option<String>),
    Stop(String),
    /// Something that an agent is to hear.
    Steer {
        id: String,
        text: String,
    },
    /// The answer to the question of an agent.
    Answer {
        id: String,
        text: String,
    },
    /// Consent to the work that waits, by the beginning of its tree's name.
    Approve {
        id: String,
        tree: String,
    },
    Help,
    Unknown(String),
}

pub(super) const HELP: &str = "`start [in PROJECT] GOAL` starts a loop\n`status [ID]` says how it stands, `list` which there \
    are\n`stop ID` ends it\n`steer ID TEXT` tells its agent something with its next iteration\n`answer ID TEXT` answers its question and lets it \
    continue\n`approve ID TREE` approves the work that waits; the loop's message names TREE";

impl SlackRequest {
    /// Parses a command's text as Slack sends it.
    pub(super) fn of(text: &str) -> Self {
        let text = plain(text);
        let (verb, rest) = first(text.trim());
        match (verb.to_ascii_lowercase().as_str(), rest) {
            ("start", rest) => match first(rest) {
                (word, behind) if word.eq_ignore_ascii_case("in") && !behind.is_empty() => {
                    let (project, goal) = first(behind);
                    Self::Start { project: Some(project.to_owned()), goal: goal.to_owned() }
                }
                _ => Self::Start { project: None, goal: rest.to_owned() },
            },
            ("status", id) => Self::Status((!id.is_empty()).then(|| bare(id))),
            ("list", "") => Self::Status(None),
            ("stop", id) if !id.is_empty() => Self::Stop(bare(id)),
            ("steer", rest) if !first(rest).1.is_empty() => {
                let (id, text) = first(rest);
                Self::Steer { id: bare(id), text: text.to_owned() }
            }
            ("answer", rest) if !first(rest).1.is_empty() => {
                let (id, text) = first(rest);
                Self::Answer { id: bare(id), text: text.to_owned() }
            }
            ("approve", rest) if !first(rest).1.is_empty() => {
                let (id, tree) = first(rest);
                Self::Approve { id: bare(id), tree: bare(tree.trim_end()) }
            }
            ("help" | "", _) => Self::Help,
            _ => Self::Unknown(text.trim().to_owned()),
        }
    }
}

/// An id that was copied with the marks around it.
fn bare(id: &str) -> String {
    id.trim_matches('`').to_owned()
}

fn first(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim_start())
}

/// The text as the user typed it: without the leading mention, links as their address, and unescaped.
fn plain(text: &str) -> String {
    let mut rest = text.trim_start();
    while let Some((_, behind)) = rest.strip_prefix("<@").and_then(|mention| mention.split_once('>')) {
        rest = behind.trim_start();
    }
    let mut out = String::with_capacity(rest.len());
    while let Some((before, (inside, behind))) =
        rest.split_once('<').and_then(|(before, at)| Some((before, at.split_once('>')?)))
    {
        out.push_str(before);
        match inside.starts_with("http://") || inside.starts_with("https://") || inside.starts_with("mailto:")
        {
            // If the label is the address without its scheme, the user typed the label.
            true => {
                out.push_str(inside.split_once('|').map_or(
                    inside,
                    |(url, label)| match url.ends_with(label) {
                        true => label,
                        false => url,
                    },
                ))
            }
            false => out.push_str(&format!("<{inside}>")),
        }
        rest = behind;
    }
    out.push_str(rest);
    out.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn start(project: Option<&str>, goal: &str) -> SlackRequest {
        SlackRequest::Start { project: project.map(str::to_owned), goal: goal.to_owned() }
    }

    #[rstest]
    #[case("start Mend the parser.", start(None, "Mend the parser."))]
    #[case("<@U0BOT> start Mend\nit.", start(None, "Mend\nit."))]
    #[case("  <@U0BOT|refrain>  START  in app  Mend it", start(Some("app"), "Mend it"))]
    #[case("start in app", start(Some("app"), ""))]
    #[case("start", start(None, ""))]
    #[case("start indent all", start(None, "indent all"))]
    #[case("start a &lt; b &amp;&amp; c &amp;lt; d", start(None, "a < b && c &lt; d"))]
    #[case("start see <https://a.b/c|a.b/c> and <https://d.e>", start(None, "see a.b/c and https://d.e"))]
    #[case("start read <https://evil.example/x|docs>", start(None, "read https://evil.example/x"))]
    #[case("start ask <@U1>", start(None, "ask <@U1>"))]
    #[case("status", SlackRequest::Status(None))]
    #[case("list", SlackRequest::Status(None))]
    #[case("status slack-1", SlackRequest::Status(Some("slack-1".to_owned())))]
    #[case("stop `slack-1`", SlackRequest::Stop("slack-1".to_owned()))]
    #[case("steer slack-1 use rstest", SlackRequest::Steer { id: "slack-1".to_owned(), text: "use rstest".to_owned() })]
    #[case("answer slack-1 staging", SlackRequest::Answer { id: "slack-1".to_owned(), text: "staging".to_owned() })]
    #[case("answer slack-1", SlackRequest::Unknown("answer slack-1".to_owned()))]
    #[case("approve slack-1 `2a83c204fe` ", SlackRequest::Approve { id: "slack-1".to_owned(), tree: "2a83c204fe".to_owned() })]
    #[case("approve slack-1", SlackRequest::Unknown("approve slack-1".to_owned()))]
    #[case("", SlackRequest::Help)]
    #[case("<@U0BOT>", SlackRequest::Help)]
    #[case("help me", SlackRequest::Help)]
    #[case("stop", SlackRequest::Unknown("stop".to_owned()))]
    #[case("steer slack-1", SlackRequest::Unknown("steer slack-1".to_owned()))]
    #[case("<@U0BOT> rm -rf /", SlackRequest::Unknown("rm -rf /".to_owned()))]
    #[case("<@", SlackRequest::Unknown("<@".to_owned()))]
    fn words_are_understood(#[case] text: &str, #[case] wish: SlackRequest) {
        assert_eq!(SlackRequest::of(text), wish);
    }
}
