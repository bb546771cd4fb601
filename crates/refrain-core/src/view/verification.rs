//! How a result is labelled: one word, one glyph and one tone for all surfaces.

use super::StatusWord;

/// What the gates say of the result of a loop or plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verification {
    /// It completed, and its required gates passed on exactly that work.
    Verified,
    /// It completed on the agent's word.
    Unverified,
    /// It stopped without a result.
    No,
    /// It has no result yet: it is at work, or continues once it gets what it waits for.
    Pending,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charset {
    Unicode,
    Ascii,
}

/// How a status is meant; each surface has a colour for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Good,
    Active,
    /// A person should look at it.
    Attention,
    Bad,
}

impl Verification {
    /// Of a loop or plan with this status whose gates said this.
    pub fn of(status: StatusWord, verified: Option<bool>) -> Self {
        match status {
            StatusWord::Completed if verified == Some(true) => Self::Verified,
            StatusWord::Completed => Self::Unverified,
            StatusWord::Cancelled
            | StatusWord::IterationCap
            | StatusWord::BudgetExceeded
            | StatusWord::TimedOut
            | StatusWord::Stuck
            | StatusWord::Failed => Self::No,
            StatusWord::Running
            | StatusWord::Waiting
            | StatusWord::Paused
            | StatusWord::Moved
            | StatusWord::Blocked
            | StatusWord::Crashed => Self::Pending,
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Unverified => "unverified",
            Self::No => "no",
            Self::Pending => "not yet",
        }
    }

    pub fn label(self, charset: Charset) -> &'static str {
        match (self, charset) {
            (Self::Verified, Charset::Unicode) => "✔ verified",
            (Self::Verified, Charset::Ascii) => "[v] verified",
            (Self::Unverified, Charset::Unicode) => "◐ unverified",
            (Self::Unverified, Charset::Ascii) => "[~] unverified",
            (Self::No | Self::Pending, _) => self.word(),
        }
    }

    /// The label of a result, else the status: where there is room for one of them.
    pub fn label_or(self, status: StatusWord, charset: Charset) -> &'static str {
        match self {
            Self::Verified | Self::Unverified => self.label(charset),
            Self::No | Self::Pending => status.as_str(),
        }
    }
}

impl Tone {
    /// Of a loop or plan with this status whose gates said this. Only what is verified is good.
    pub fn of(status: StatusWord, verified: Option<bool>) -> Self {
        match status {
            StatusWord::Completed if verified == Some(true) => Self::Good,
            StatusWord::Running | StatusWord::Waiting => Self::Active,
            StatusWord::Failed | StatusWord::Crashed => Self::Bad,
            StatusWord::Completed
            | StatusWord::Paused
            | StatusWord::Moved
            | StatusWord::Blocked
            | StatusWord::Cancelled
            | StatusWord::IterationCap
            | StatusWord::BudgetExceeded
            | StatusWord::TimedOut
            | StatusWord::Stuck => Self::Attention,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_completed_loop_whose_gates_passed_is_verified() {
        use StatusWord as Word;
        use Verification::{No, Pending, Unverified, Verified};
        for (status, verified, result, tone) in [
            (Word::Completed, Some(true), Verified, Tone::Good),
            (Word::Completed, Some(false), Unverified, Tone::Attention),
            (Word::Completed, None, Unverified, Tone::Attention),
            (Word::Cancelled, Some(true), No, Tone::Attention),
            (Word::Stuck, Some(false), No, Tone::Attention),
            (Word::IterationCap, None, No, Tone::Attention),
            (Word::Failed, None, No, Tone::Bad),
            (Word::Crashed, Some(true), Pending, Tone::Bad),
            (Word::Blocked, Some(true), Pending, Tone::Attention),
            (Word::Running, Some(false), Pending, Tone::Active),
        ] {
            assert_eq!(
                (Verification::of(status, verified), Tone::of(status, verified)),
                (result, tone),
                "{status:?}"
            );
        }
    }

    #[test]
    fn a_label_has_a_glyph_in_both_charsets() {
        for (result, labels) in [
            (Verification::Verified, ["✔ verified", "[v] verified"]),
            (Verification::Unverified, ["◐ unverified", "[~] unverified"]),
            (Verification::No, ["no", "no"]),
        ] {
            assert_eq!([Charset::Unicode, Charset::Ascii].map(|charset| result.label(charset)), labels);
        }
        assert_eq!(Verification::No.label_or(StatusWord::Stuck, Charset::Ascii), "stuck");
    }
}
