//! What loops used, added up: by day, project, agent or model; how many iterations it took to be done; how loops
//! stopped.
//!
//! An attempt counts when it ends, because only then its usage is known. An unknown value is never 0: beside a sum is
//! the number of attempts that it lacks.

mod forecast;

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Zoned};
use schemars::JsonSchema;
use serde::Serialize;

use crate::agent;
use crate::budget::CapUsage;
use crate::event::{BlockReason, End};
use crate::spec::AgentKind;
use crate::view::{StatusWord, Usage};

pub use forecast::{Forecast, PastLoop};

pub const SCHEMA: u32 = 1;

/// What `refrain usage --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Report {
    /// The version of this shape.
    pub schema: u32,
    /// What each group has in common.
    pub by: GroupBy,
    /// What ended before is omitted; null where nothing is.
    pub since: Option<Timestamp>,
    /// The zone whose days are meant.
    pub time_zone: String,
    /// The project; null where it is all of them.
    pub project: Option<String>,
    /// How the caps stand today that loops share.
    pub caps: Vec<CapUsage>,
    /// What agents used that looked back on loops, beside all that stands here; null where none was asked.
    pub looking_back: Option<ReflectionUsage>,
    /// The part of all that which loops used on other machines; null where none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<ElsewhereUsage>,
    /// All groups together.
    pub total: Sum,
    /// Days in their order; all else the dearest first.
    pub groups: Vec<Group>,
    /// How many iterations completed loops took; null where none completed.
    pub iterations_to_done: Option<Quartiles>,
    /// Of the completed loops, those that were done in their first iteration; null where none completed.
    pub first_pass: Option<Share>,
    /// Loops that stopped, proven by their gates.
    pub verified_loops: u64,
    /// All that was spent for each of those, in US dollars, what failed included; null where nothing is known of either.
    pub cost_per_verified_loop_usd: Option<f64>,
    /// More was spent for each than this.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cost_per_verified_loop_at_least: bool,
    /// How loops stopped, the most frequent first.
    pub stops: Vec<Stop>,
}

/// What agents used that were asked what there is to learn from loops that were over.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ReflectionUsage {
    /// How many were asked.
    pub asked: u64,
    /// What they cost in US dollars; null where none told.
    pub cost_usd: Option<f64>,
    /// How many did not tell.
    pub without_cost: u64,
    /// They cost more than that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
}

/// What loops used that are on other machines, as far as it was copied here.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ElsewhereUsage {
    /// All of them together.
    pub used: Sum,
    /// How the caps stand that those machines share, by the copies that are here: a day is one in UTC, and what is reserved is
    /// unknown.
    pub caps: Vec<CapUsage>,
}

/// So many of so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Share {
    /// Those that are meant.
    pub loops: u64,
    /// Of so many.
    pub of: u64,
}

impl Share {
    /// As a number from 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "no user has so many loops")]
    pub fn ratio(self) -> f64 {
        self.loops as f64 / self.of.max(1) as f64
    }
}

#[derive(Clone, Copy, Debug)]
pub enum Since {
    /// From the first moment of a day on.
    Date(Date),
    Ago(Span),
}

impl FromStr for Since {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let ago = || text.parse::<Span>().ok().filter(|span| span.is_positive()).map(Self::Ago);
        let since = text.parse().map(Self::Date).ok().or_else(ago);
        since.ok_or("accepted: a date like 2026-11-01, or how long ago, like 7d or 12h")
    }
}

impl Since {
    /// The moment: a date begins with its first one in this time zone.
    pub fn moment(self, now: &Zoned) -> Result<Timestamp, jiff::Error> {
        let moment = match self {
            Self::Date(date) => date.to_zoned(now.time_zone().clone()),
            Self::Ago(span) => now.checked_sub(span),
        };
        Ok(moment?.timestamp())
    }
}

/// What the attempts of a group have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum GroupBy {
    /// The day on which they ended.
    Day,
    /// Their project.
    Project,
    /// Their agent.
    Agent,
    /// The model that the agent said it used, or was told to.
    Model,
    /// Who pays: the agent's account, as far as it could be told.
    Pool,
}

impl GroupBy {
    pub const ALL: [Self; 5] = [Self::Day, Self::Project, Self::Agent, Self::Model, Self::Pool];

    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// What some attempts used.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Sum {
    /// The loops that they belong to.
    pub loops: u64,
    /// How many there are, reviews and critiques among them. Those that could not be started are none.
    pub attempts: u64,
    /// What is known to be used; null where nothing is known.
    pub usage: Usage,
    /// Attempts of unknown cost: it is not in `cost_usd`.
    pub without_cost: u64,
    /// Attempts with an unknown number of tokens: they are not in the tokens.
    pub without_tokens: u64,
}

/// A group.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Group {
    /// The day (`2026-11-21`), the project's folder, the agent, the model or the pool; null if unknown.
    pub key: Option<String>,
    /// What it used.
    pub used: Sum,
}

/// How numbers lie: the least, the quartiles and the most.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Quartiles {
    /// How many loops it is about.
    pub loops: u64,
    /// The least.
    pub min: u32,
    /// A quarter took at most so many.
    pub p25: f64,
    /// Half took at most so many.
    pub median: f64,
    /// Three quarters took at most so many.
    pub p75: f64,
    /// The most.
    pub max: u32,
    /// All of them together.
    pub sum: u64,
}

/// How many loops stopped so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Stop {
    /// How.
    pub status: StatusWord,
    /// Why, where a person is needed.
    pub why: Option<BlockReason>,
    /// How many loops.
    pub loops: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct UsageRecord {
    /// The loop that it belongs to, by any unique number.
    pub of: u64,
    pub project: String,
    pub agent: AgentKind,
    pub model: Option<String>,
    pub pool: Option<String>,
    pub at: Timestamp,
    pub usage: agent::Usage,
}

/// What distinguishes series of usage, except for the time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Series {
    pub project: String,
    pub agent: String,
    pub model: Option<String>,
    /// The account that pays, if known.
    pub pool: Option<String>,
}

/// The report while it is being added up.
#[derive(Debug)]
pub struct Tally {
    by: GroupBy,
    zone: TimeZone,
    total: Accumulator,
    elsewhere: Accumulator,
    groups: BTreeMap<Option<String>, Accumulator>,
    days: BTreeMap<Date, Accumulator>,
    series: Option<BTreeMap<Series, Accumulator>>,
    done: Vec<u32>,
    verified: u64,
    stops: Vec<(End, u64)>,
    unused: u64,
}

#[derive(Debug, Default)]
struct Accumulator {
    of: BTreeSet<u64>,
    attempts: u64,
    used: agent::Usage,
    without_cost: u64,
    without_tokens: u64,
}

impl Accumulator {
    fn add(&mut self, spent: &UsageRecord) {
        let agent::Usage { tokens, cost, .. } = spent.usage;
        self.of.insert(spent.of);
        self.attempts += 1;
        self.used = self.used + spent.usage;
        self.without_cost += u64::from(cost.is_none());
        self.without_tokens += u64::from(tokens.input.is_none() && tokens.output.is_none());
    }

    fn sum(&self) -> Sum {
        Sum {
            loops: self.of.len() as u64,
            attempts: self.attempts,
            usage: self.used.into(),
            without_cost: self.without_cost,
            without_tokens: self.without_tokens,
        }
    }
}

impl Tally {
    pub fn new(by: GroupBy, zone: TimeZone) -> Self {
        Self {
            by,
            zone,
            total: Accumulator::default(),
            elsewhere: Accumulator::default(),
            groups: BTreeMap::new(),
            days: BTreeMap::new(),
            series: None,
            done: Vec::new(),
            verified: 0,
            stops: Vec::new(),
            unused: u64::MAX,
        }
    }

    /// The same, that adds up each series beside it.
    #[must_use]
    pub fn in_series(self) -> Self {
        Self { series: Some(BTreeMap::new()), ..self }
    }

    /// A number for a loop that has none: far from those that count from below.
    pub fn unused_number(&mut self) -> u64 {
        self.unused -= 1;
        self.unused
    }

    pub fn spend(&mut self, spent: &UsageRecord) {
        self.total.add(spent);
        let group = match self.by {
            GroupBy::Day => self.days.entry(self.zone.to_datetime(spent.at).date()).or_default(),
            GroupBy::Project => self.groups.entry(Some(spent.project.clone())).or_default(),
            GroupBy::Agent => self.groups.entry(Some(spent.agent.to_string())).or_default(),
            GroupBy::Model => self.groups.entry(spent.model.clone()).or_default(),
            GroupBy::Pool => self.groups.entry(spent.pool.clone()).or_default(),
        };
        group.add(spent);
        if let Some(series) = &mut self.series {
            let UsageRecord { project, agent, model, pool, .. } = spent.clone();
            series.entry(Series { project, agent: agent.to_string(), model, pool }).or_default().add(spent);
        }
    }

    /// The same of a loop that is on another machine.
    pub fn spend_elsewhere(&mut self, spent: &UsageRecord) {
        self.elsewhere.add(spent);
        self.spend(spent);
    }

    /// Adds a stopped loop, with its number of charged iterations; `verified` if its gates proved it.
    pub fn stop(&mut self, end: End, charged: u32, verified: bool) {
        self.verified += u64::from(verified);
        if let End::Completed { .. } = end {
            self.done.push(charged);
        }
        // The source of the claim and the kind of cap do not matter here.
        let same = |other: End| match (end, other) {
            (End::Completed { .. }, End::Completed { .. })
            | (End::BudgetExceeded { .. }, End::BudgetExceeded { .. }) => true,
            _ => end == other,
        };
        match self.stops.iter_mut().find(|(other, _)| same(*other)) {
            Some((_, loops)) => *loops += 1,
            None => self.stops.push((end, 1)),
        }
    }

    /// The sums, by all that distinguishes them but the day; nothing if not asked for.
    pub fn series(&self) -> Vec<(Series, Sum)> {
        self.series.iter().flatten().map(|(one, adding)| (one.clone(), adding.sum())).collect()
    }

    pub fn report(mut self, since: Option<Timestamp>, time_zone: String, project: Option<String>) -> Report {
        let days = self.days.iter().map(|(day, used)| (Some(day.to_string()), used));
        let mut groups: Vec<_> =
            days.chain(self.groups.iter().map(|(key, used)| (key.clone(), used))).collect();
        if self.by != GroupBy::Day {
            groups.sort_by_key(|(_, adding)| {
                let used = adding.used;
                std::cmp::Reverse((used.cost, used.tokens.counted(), adding.attempts))
            });
        }
        self.stops.sort_by_key(|(_, loops)| std::cmp::Reverse(*loops));
        let stop = |(end, loops): &(End, u64)| {
            let why = if let End::Blocked { why } = end { Some(*why) } else { None };
            Stop { status: StatusWord::from(*end), why, loops: *loops }
        };
        let total = self.total.sum();
        let first = self.done.iter().filter(|charged| **charged <= 1).count() as u64;
        let completed = self.done.len() as u64;
        #[expect(clippy::cast_precision_loss, reason = "no user has so many loops")]
        let verified = self.verified as f64;
        Report {
            schema: SCHEMA,
            by: self.by,
            since,
            time_zone,
            project,
            caps: Vec::new(),
            looking_back: None,
            elsewhere: (self.elsewhere.attempts > 0)
                .then(|| ElsewhereUsage { used: self.elsewhere.sum(), caps: Vec::new() }),
            first_pass: (completed > 0).then_some(Share { loops: first, of: completed }),
            verified_loops: self.verified,
            cost_per_verified_loop_usd: total
                .usage
                .cost_usd
                .filter(|_| self.verified > 0)
                .map(|cost| cost / verified),
            cost_per_verified_loop_at_least: self.verified > 0 && total.usage.cost_at_least,
            total,
            groups: groups.into_iter().map(|(key, used)| Group { key, used: used.sum() }).collect(),
            iterations_to_done: spread(&mut self.done),
            stops: self.stops.iter().map(stop).collect(),
        }
    }
}

/// The distribution of the numbers; none if there are none. Between two of them it is interpolated.
fn spread(numbers: &mut [u32]) -> Option<Quartiles> {
    numbers.sort_unstable();
    let (min, max) = (*numbers.first()?, *numbers.last()?);
    let quantile = |quarters: usize| {
        let at = (numbers.len() - 1) * quarters;
        let low = numbers[at / 4];
        let high = numbers.get(at / 4 + 1).copied().unwrap_or(low);
        f64::from(low) + f64::from(high - low) * [0.0, 0.25, 0.5, 0.75][at % 4]
    };
    let loops = numbers.len() as u64;
    let sum = numbers.iter().copied().map(u64::from).sum();
    Some(Quartiles { loops, min, p25: quantile(1), median: quantile(2), p75: quantile(3), max, sum })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::agent::{Tokens, Usd};
    use crate::event::ClaimSource;

    fn spent(of: u64, at: &str, agent: AgentKind, cost: Option<u64>) -> UsageRecord {
        let tokens = Tokens { input: cost.map(|_| 100), cached_input: None, output: cost.map(|_| 10) };
        UsageRecord {
            of,
            project: "/p".into(),
            agent,
            model: (agent == AgentKind::Claude).then(|| "opus".into()),
            pool: (agent == AgentKind::Claude).then(|| format!("claude login {of}")),
            at: at.parse().unwrap(),
            usage: agent::Usage { tokens, cost: cost.map(Usd), ..Default::default() },
        }
    }

    fn report(by: GroupBy, zone: TimeZone) -> Report {
        let mut tally = Tally::new(by, zone);
        for spent in [
            spent(1, "2026-11-20T23:30:00Z", AgentKind::Claude, Some(1_500_000_000)),
            spent(1, "2026-11-21T00:30:00Z", AgentKind::Claude, Some(500_000_000)),
            spent(2, "2026-11-21T01:30:00Z", AgentKind::Generic, None),
        ] {
            tally.spend(&spent);
        }
        tally.report(None, "a zone".into(), None)
    }

    /// Key, loops, attempts, money, attempts of unknown cost.
    type Row<'a> = (Option<&'a str>, u64, u64, Option<f64>, u64);

    fn rows(report: &Report) -> Vec<Row<'_>> {
        let groups = report.groups.iter().map(|group| (group.key.as_deref(), &group.used));
        groups
            .map(|(key, sum)| (key, sum.loops, sum.attempts, sum.usage.cost_usd, sum.without_cost))
            .collect()
    }

    #[test]
    fn days_are_those_of_the_zone() {
        let utc = report(GroupBy::Day, TimeZone::UTC);
        assert_eq!(
            rows(&utc),
            [(Some("2026-11-20"), 1, 1, Some(1.5), 0), (Some("2026-11-21"), 2, 2, Some(0.5), 1)]
        );
        assert_eq!(
            rows(&report(GroupBy::Day, TimeZone::fixed(jiff::tz::offset(9)))),
            [(Some("2026-11-21"), 2, 3, Some(2.0), 1)]
        );
        assert_eq!((utc.total.attempts, utc.total.loops, utc.total.without_cost), (3, 2, 1));
    }

    #[test]
    fn what_other_machines_used_is_a_part_of_the_sums() {
        let mut tally = Tally::new(GroupBy::Day, TimeZone::UTC);
        tally.spend(&spent(1, "2026-11-20T23:30:00Z", AgentKind::Claude, Some(1_500_000_000)));
        tally.spend_elsewhere(&spent(2, "2026-11-20T23:40:00Z", AgentKind::Claude, Some(500_000_000)));
        let report = tally.report(None, "UTC".into(), None);
        assert_eq!(rows(&report), [(Some("2026-11-20"), 2, 2, Some(2.0), 0)]);
        let elsewhere = report.elsewhere.unwrap().used;
        assert_eq!((elsewhere.loops, elsewhere.attempts, elsewhere.usage.cost_usd), (1, 1, Some(0.5)));
        assert_eq!(Tally::new(GroupBy::Day, TimeZone::UTC).report(None, "UTC".into(), None).elsewhere, None);
    }

    #[test]
    fn unknown_is_null_and_never_nothing() {
        let report = report(GroupBy::Agent, TimeZone::UTC);
        assert_eq!(rows(&report), [(Some("claude"), 1, 2, Some(2.0), 0), (Some("generic"), 1, 1, None, 1)]);
        let usage = &report.groups[1].used.usage;
        assert_eq!((usage.input_tokens, usage.output_tokens), (None, None));
        assert_eq!(report.groups[1].used.without_tokens, 1);
    }

    #[test]
    fn an_unreported_model_is_a_group_of_its_own() {
        let report = report(GroupBy::Model, TimeZone::UTC);
        assert_eq!(rows(&report), [(Some("opus"), 1, 2, Some(2.0), 0), (None, 1, 1, None, 1)]);
    }

    #[test]
    fn usage_of_an_unknown_pool_is_a_group_of_its_own() {
        let report = report(GroupBy::Pool, TimeZone::UTC);
        assert_eq!(rows(&report), [(Some("claude login 1"), 1, 2, Some(2.0), 0), (None, 1, 1, None, 1)]);
    }

    #[rstest]
    #[case(&[], None)]
    #[case(&[7], Some((7, 7.0, 7.0, 7.0, 7)))]
    #[case(&[4, 1, 3, 2], Some((1, 1.75, 2.5, 3.25, 4)))]
    #[case(&[1, 1, 2, 9, 20], Some((1, 1.0, 2.0, 9.0, 20)))]
    fn a_spread_is_the_quartiles(
        #[case] numbers: &[u32],
        #[case] expected: Option<(u32, f64, f64, f64, u32)>,
    ) {
        let spread = spread(&mut numbers.to_vec());
        assert_eq!(
            spread.map(|spread| (spread.min, spread.p25, spread.median, spread.p75, spread.max)),
            expected
        );
    }

    #[test]
    fn the_cost_of_failed_loops_counts_in_the_cost_per_verified_loop() {
        let mut tally = Tally::new(GroupBy::Day, TimeZone::UTC);
        for (of, charged, verified) in [(1, 1, true), (2, 3, true), (3, 1, false)] {
            tally.spend(&spent(of, "2026-11-20T23:30:00Z", AgentKind::Claude, Some(1_500_000_000)));
            tally.stop(End::Completed { claim: ClaimSource::Promise }, charged, verified);
        }
        let report = tally.report(None, "UTC".into(), None);
        assert_eq!(report.first_pass, Some(Share { loops: 2, of: 3 }));
        assert_eq!((report.verified_loops, report.cost_per_verified_loop_usd), (2, Some(2.25)));
    }

    #[test]
    fn stops_are_grouped_by_what_they_need() {
        let mut tally = Tally::new(GroupBy::Day, TimeZone::UTC);
        for claim in [ClaimSource::Promise, ClaimSource::StateFile] {
            tally.stop(End::Completed { claim }, 4, true);
        }
        for why in [BlockReason::Login, BlockReason::Login, BlockReason::Login, BlockReason::Model] {
            tally.stop(End::Blocked { why }, 9, false);
        }
        let report = tally.report(None, "UTC".into(), None);
        let stops: Vec<_> = report.stops.iter().map(|stop| (stop.status, stop.why, stop.loops)).collect();
        assert_eq!(
            stops,
            [
                (StatusWord::Blocked, Some(BlockReason::Login), 3),
                (StatusWord::Completed, None, 2),
                (StatusWord::Blocked, Some(BlockReason::Model), 1)
            ]
        );
        assert_eq!((report.first_pass, report.verified_loops), (Some(Share { loops: 0, of: 2 }), 2));
        assert_eq!(report.cost_per_verified_loop_usd, None, "nothing is known of what they cost");
        assert_eq!(report.iterations_to_done.map(|spread| (spread.loops, spread.median)), Some((2, 4.0)));
    }
}
