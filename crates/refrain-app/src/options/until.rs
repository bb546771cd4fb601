//! The options that say when a loop ends (seed 002), for `start` and for what a person types in a session.

use refrain_core::spec::{Limits, Until};

use super::{heading, values};
use crate::error::{Message, RequestError};

// When it ends.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = heading::DONE)]
pub struct UntilArgs {
    /// Run until the work is done: the default
    #[arg(long = "loop", conflicts_with_all = ["exact", "infinite"])]
    pub complete: bool,
    /// Run exactly N iterations, 1 to 200, whatever the agent claims
    ///
    /// The loop is completed after them; verified if its required gates pass then. It is never stuck.
    #[arg(long, value_name = "N", conflicts_with = "infinite", allow_negative_numbers = true, value_parser = values::iterations)]
    pub exact: Option<u32>,
    /// Run without end, as far as time and money allow: a claim says that there is nothing to do now, and the loop waits
    /// after it, 5s at first and 10m at most
    #[arg(long)]
    pub infinite: bool,
}

impl UntilArgs {
    /// The most iterations, where a number stands alone: not beside an option that sets another number, or none.
    pub fn at_most(&self, number: &str, most: Option<u32>) -> Result<u32, RequestError> {
        let others = [
            (self.exact.is_some(), "--exact"),
            (self.infinite, "--infinite"),
            (most.is_some(), "--max-iterations"),
        ];
        if let Some((_, flag)) = others.into_iter().find(|(is_given, _)| *is_given) {
            let error = format!("{flag}: not with the number {number}, which is the maximum of iterations");
            return Err(RequestError::usage(error));
        }
        values::iterations(number)
            .map_err(|why| RequestError::usage(format!("{number}: {why}")).hint("--infinite has no maximum"))
    }

    /// How many iterations it has exactly, where that is said.
    pub fn exact(&self) -> Option<u32> {
        self.exact
    }

    /// Whether it has no end of its own.
    pub fn is_infinite(&self) -> bool {
        self.infinite
    }

    /// When it ends, and how many iterations it has: with `most` given, or else configured.
    pub fn resolve(
        &self,
        most: Option<u32>,
        configured: Option<u32>,
    ) -> Result<(Until, Option<u32>), RequestError> {
        let refused =
            |why: &'static str| Err(RequestError::usage(Message::from("--max-iterations: ").then(why)));
        match (self.exact, self.infinite, most) {
            (Some(_), _, Some(_)) => refused("not with --exact, which sets the number of iterations"),
            (_, true, Some(_)) => {
                refused("not with --infinite; accepted: --max-cost, --max-tokens and --max-duration")
            }
            (Some(count), _, None) => Ok((Until::Count, Some(count))),
            (None, true, None) => Ok((Until::Forever, None)),
            (None, false, most) => {
                let most = most.or(configured).unwrap_or(Limits::DEFAULT_ITERATIONS);
                Ok((Until::Complete, Some(most)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::nothing(&[], None, Some((Until::Complete, Some(7))))]
    #[case::a_cap(&[], Some(3), Some((Until::Complete, Some(3))))]
    #[case::until_done(&["--loop"], Some(3), Some((Until::Complete, Some(3))))]
    #[case::exactly(&["--exact", "5"], None, Some((Until::Count, Some(5))))]
    #[case::exactly_and_a_cap(&["--exact", "5"], Some(3), None)]
    #[case::for_ever(&["--infinite"], None, Some((Until::Forever, None)))]
    #[case::for_ever_and_a_cap(&["--infinite"], Some(3), None)]
    fn a_mode_says_how_many(
        #[case] words: &[&str],
        #[case] most: Option<u32>,
        #[case] expected: Option<(Until, Option<u32>)>,
    ) {
        assert_eq!(read(words).unwrap().resolve(most, Some(7)).ok(), expected);
    }

    #[rstest]
    #[case(&["--loop", "--infinite"])]
    #[case(&["--loop", "--exact", "5"])]
    #[case(&["--infinite", "--exact", "5"])]
    #[case(&["--exact", "0"])]
    #[case(&["--exact", "201"])]
    #[case(&["--exact", "-1"])]
    fn two_modes_or_no_number_are_refused(#[case] words: &[&str]) {
        assert!(read(words).is_err());
    }

    fn read(words: &[&str]) -> Result<UntilArgs, clap::Error> {
        #[derive(clap::Parser)]
        #[command(no_binary_name = true)]
        struct Line {
            #[command(flatten)]
            until: UntilArgs,
        }
        <Line as clap::Parser>::try_parse_from(words).map(|line| line.until)
    }
}
