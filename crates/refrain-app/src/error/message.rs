//! A text for the caller. It keeps apart which of its words are options: each surface shows these by its own names.

use std::fmt;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Option(String),
}

impl Message {
    pub fn option(name: &str) -> Self {
        Self(vec![Part::Option(name.to_owned())])
    }

    /// Words of our own: a word that begins with two hyphens is an option, except in a command to type.
    pub(crate) fn own(text: &str) -> Self {
        let (mut parts, mut rest) = (Vec::new(), text);
        let is_name = |c: char| c.is_ascii_lowercase() || c == '-';
        while let Some(at) = rest.find("--") {
            let (before, option) = (&rest[..at], &rest[at + 2..]);
            let (option, behind) = option.split_at(option.find(|c| !is_name(c)).unwrap_or(option.len()));
            let begins = !before.ends_with(|c: char| c.is_ascii_alphanumeric());
            let clause = text[..text.len() - rest.len() + at].rsplit(';').next().unwrap_or_default();
            parts.push(Part::Text(before.to_owned()));
            parts.push(match begins && !option.is_empty() && !clause.contains("refrain ") {
                true => Part::Option(option.to_owned()),
                false => Part::Text(format!("--{option}")),
            });
            rest = behind;
        }
        parts.push(Part::Text(rest.to_owned()));
        Self(parts)
    }

    #[must_use]
    pub fn then(mut self, more: impl Into<Self>) -> Self {
        self.0.extend(more.into().0);
        self
    }

    /// The options that it names, in order.
    pub(super) fn options(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            Part::Option(option) => Some(option.as_str()),
            Part::Text(_) => None,
        })
    }

    /// The text, where options have these names; one without a name is shown as it is typed.
    pub(super) fn with(&self, name: impl Fn(&str) -> Option<&'static str>) -> String {
        let shown = self.0.iter().map(|part| match part {
            Part::Text(text) => text.clone(),
            Part::Option(option) => name(option).map_or_else(|| format!("--{option}"), str::to_owned),
        });
        shown.collect()
    }
}

impl From<String> for Message {
    /// A text of any content: it names no option.
    fn from(text: String) -> Self {
        Self(vec![Part::Text(text)])
    }
}

impl From<&'static str> for Message {
    fn from(text: &'static str) -> Self {
        Self::own(text)
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.with(|_| None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameter(option: &str) -> Option<&'static str> {
        match option {
            "gate" => Some("gates"),
            "max-iterations" => Some("max_iterations"),
            _ => None,
        }
    }

    #[test]
    fn options_have_the_names_of_the_surface() {
        for (text, shown) in [
            ("--max-iterations: accepted: 1 to 200", "max_iterations: accepted: 1 to 200"),
            (
                "--gate-timeout stays, -- too, and --gate CMD goes",
                "--gate-timeout stays, -- too, and gates CMD goes",
            ),
            ("leave out --gate", "leave out gates"),
            ("no option of a--gate", "no option of a--gate"),
            (
                "refrain resume job --max-iterations 25; or leave out --gate",
                "refrain resume job --max-iterations 25; or leave out gates",
            ),
        ] {
            let message = Message::from(text);
            assert_eq!((message.to_string().as_str(), message.with(parameter).as_str()), (text, shown));
        }
    }

    #[test]
    fn a_value_names_no_option() {
        let message = Message::from("--gate ").then("./check --gate x".to_owned()).then(": it is not there");
        assert_eq!(message.with(parameter), "gates ./check --gate x: it is not there");
    }
}
