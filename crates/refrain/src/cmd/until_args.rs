//! The options that say until when a loop goes on (seed 002), for `start` and for what a person types in a session.

use refrain_core::spec::{Limits, Until};

use super::heading;
use crate::error::CliError;
use crate::values;

/// Until when it goes on.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = heading::DONE)]
pub(crate) struct UntilArgs {
    /// Go on until it is done: what is done where nothing is said
    #[arg(long = "loop", conflicts_with_all = ["iterations", "infinite"])]
    complete: bool,
    /// Exactly so many iterations, 1 to 200: a claim ends nothing before the last
    #[arg(long, value_name = "N", conflicts_with = "infinite", allow_negative_numbers = true, value_parser = values::iterations)]
    iterations: Option<u32>,
    /// Go on for ever, less what time and money allow: a claim says that there is nothing to do now, and is waited behind,
    /// 5s at first and 10m at most
    #[arg(long)]
    infinite: bool,
}

impl UntilArgs {
    /// The option that was given, if any.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let said = [
            (self.complete, "--loop"),
            (self.iterations.is_some(), "--iterations"),
            (self.infinite, "--infinite"),
        ];
        said.into_iter().find_map(|(is_given, name)| is_given.then_some(name))
    }

    /// The same for exactly so many iterations, which a number alone says; not beside an option that says something else.
    pub(crate) fn counting(self, number: &str) -> Result<Self, CliError> {
        if let Some(flag) = self.given() {
            let error = format!("{flag}: not beside {number}, which says how many iterations there are");
            return Err(CliError::usage(error));
        }
        let count = values::iterations(number).map_err(|why| CliError::usage(format!("{number}: {why}")))?;
        Ok(Self { iterations: Some(count), ..self })
    }

    /// What both say together; this one first.
    pub(crate) fn or(self, other: Self) -> Self {
        if self.given().is_some() { self } else { other }
    }

    /// Until when it goes on, and how many iterations that are: with `most` given, or else configured.
    pub(crate) fn resolve(
        &self,
        most: Option<u32>,
        configured: Option<u32>,
    ) -> Result<(Until, Option<u32>), CliError> {
        let refused = |why| Err(CliError::usage(format!("--max-iterations: {why}")));
        match (self.iterations, self.infinite, most) {
            (Some(_), _, Some(_)) => refused("not with --iterations, which says how many there are"),
            (_, true, Some(_)) => {
                refused("not with --infinite; accepted are --max-cost, --max-tokens and --max-duration")
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
    #[case::exactly(&["--iterations", "5"], None, Some((Until::Count, Some(5))))]
    #[case::exactly_and_a_cap(&["--iterations", "5"], Some(3), None)]
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
    #[case(&["--loop", "--iterations", "5"])]
    #[case(&["--infinite", "--iterations", "5"])]
    #[case(&["--iterations", "0"])]
    #[case(&["--iterations", "201"])]
    #[case(&["--iterations", "-1"])]
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
