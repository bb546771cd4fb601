//! The addresses of readable resources: `refrain://PROJECT/loops/ID/state`, and `…/journal` with
//! `?from=NUMBER&limit=NUMBER` for a page.

use std::fmt;
use std::str::FromStr;

use refrain_core::LoopId;

use super::Refusal;

/// The default number of journal events per read.
const PAGE: usize = 100;
const LARGEST_PAGE: usize = 1_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// The project, as [`name`](super::status::name) has it.
    pub(crate) project: String,
    pub(crate) id: LoopId,
    pub(crate) part: Part,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Its `state.md`.
    State,
    Journal {
        /// The first event, by its number [default: the last ones].
        from: Option<u64>,
        limit: usize,
    },
}

impl Part {
    pub(crate) const TAIL: Self = Self::Journal { from: None, limit: PAGE };
}

impl FromStr for Address {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        let accepted = "accepted: refrain://PROJECT/loops/ID/state and refrain://PROJECT/loops/ID/journal";
        let refused = || Refusal::new(format!("{text}: {accepted}?from=NUMBER&limit=1..{LARGEST_PAGE}"));
        let (path, query) = text.split_once('?').unwrap_or((text, ""));
        let parts: Vec<_> = path.strip_prefix("refrain://").ok_or_else(refused)?.split('/').collect();
        let [project, "loops", id, part] = parts.as_slice() else { return Err(refused()) };
        let part = match *part {
            "state" if query.is_empty() => Part::State,
            "journal" => page(query).ok_or_else(refused)?,
            _ => return Err(refused()),
        };
        let id = id.parse().map_err(|_| refused())?;
        Ok(Self { project: (*project).to_owned(), id, part })
    }
}

/// The page that a query asks for; none if the query is invalid.
fn page(query: &str) -> Option<Part> {
    let (mut from, mut limit) = (None, PAGE);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=')?;
        match name {
            "from" => from = Some(value.parse().ok()?),
            "limit" => limit = value.parse().ok().filter(|limit| (1..=LARGEST_PAGE).contains(limit))?,
            _ => return None,
        }
    }
    Some(Part::Journal { from, limit })
}

impl fmt::Display for Address {
    /// The address, without the page.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = match self.part {
            Part::State => "state",
            Part::Journal { .. } => "journal",
        };
        write!(f, "refrain://{}/loops/{}/{part}", self.project, self.id)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("refrain://p-1/loops/a/state", Some(Part::State))]
    #[case("refrain://p-1/loops/a/journal", Some(Part::TAIL))]
    #[case("refrain://p-1/loops/a/journal?from=7", Some(Part::Journal { from: Some(7), limit: PAGE }))]
    #[case("refrain://p-1/loops/a/journal?from=7&limit=1", Some(Part::Journal { from: Some(7), limit: 1 }))]
    #[case("refrain://p-1/loops/a/journal?limit=0", None)]
    #[case("refrain://p-1/loops/a/journal?limit=1001", None)]
    #[case("refrain://p-1/loops/a/journal?from=-1", None)]
    #[case("refrain://p-1/loops/a/journal?form=1", None)]
    #[case("refrain://p-1/loops/a/journal?from", None)]
    #[case("refrain://p-1/loops/a/state?from=1", None)]
    #[case("refrain://p-1/loops/a/prompt", None)]
    #[case("refrain://p-1/loops/../state", None)]
    #[case("refrain://p-1/loops/a/b/state", None)]
    #[case("file:///etc/passwd", None)]
    #[case("", None)]
    fn an_address_is_read_or_refused(#[case] text: &str, #[case] part: Option<Part>) {
        let read = text.parse::<Address>();
        assert_eq!(read.as_ref().ok().map(|address| address.part), part, "{read:?}");
        if let Ok(address) = read {
            let whole = text.split('?').next().unwrap();
            assert_eq!((address.to_string().as_str(), address.project.as_str()), (whole, "p-1"));
        }
    }
}
