//! The committer here and their time zone, taken from the last commit that git made.

use refrain_core::git::Oid;

/// The last commit that git made, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Last {
    /// There was none yet, or it is unusable.
    #[default]
    Unknown,
    /// Made in this quarter of an hour, and not read yet.
    Made(Oid, u64),
    /// The committer, valid for a quarter of an hour.
    Says(Signature, u64),
}

/// The identity of a commit: the lines of author and committer up to the time, and the zone after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Signature {
    pub(crate) author: String,
    pub(crate) committer: String,
    pub(crate) zone: String,
}

impl Signature {
    /// Reads the lines after the parents of a commit; none if they contain more than author and committer.
    pub(crate) fn of(rest: &[u8]) -> Option<Self> {
        let mut lines = str::from_utf8(rest).ok()?.lines();
        let (author, zone) = Self::line(lines.next()?.strip_prefix("author ")?)?;
        let (committer, same) = Self::line(lines.next()?.strip_prefix("committer ")?)?;
        let who = Self {
            author: format!("author {author}"),
            committer: format!("committer {committer}"),
            zone: zone.to_owned(),
        };
        (zone == same && lines.next()?.is_empty()).then_some(who)
    }

    /// `Name <address> seconds zone`: the part before the time, and the zone.
    fn line(line: &str) -> Option<(&str, &str)> {
        let (rest, zone) = line.rsplit_once(' ')?;
        let (who, seconds) = rest.rsplit_once(' ')?;
        (who.ends_with('>') && seconds.parse::<u64>().is_ok()).then_some((who, zone))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_made_a_commit_is_read_from_one_that_says_no_more() {
        let author = "author A B <a@b> 1700000000 +0530\n";
        let committer = "committer C <> 1700000009 +0530\n";
        let who = Signature::of(format!("{author}{committer}\nSubject\n").as_bytes()).unwrap();
        let said = (who.author.as_str(), who.committer.as_str(), who.zone.as_str());
        assert_eq!(said, ("author A B <a@b>", "committer C <>", "+0530"));
        for other in [
            format!("{author}{committer}encoding latin1\n\nSubject\n"),
            format!("{author}committer C <c> 1700000009 +0100\n\nSubject\n"),
            format!("{committer}{author}\nSubject\n"),
            author.to_owned(),
        ] {
            assert_eq!(Signature::of(other.as_bytes()), None, "{other}");
        }
    }
}
