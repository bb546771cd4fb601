//! What loops used, as one object: printed by `refrain usage --json`, and sent to remote callers.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use refrain_core::budget::CapUsage;
use refrain_core::view::usage::{ElsewhereUsage, GroupBy, ReflectionUsage, Report, Series, Sum, Tally};
use refrain_store::memory::{JudgeCalls, MemoryError};

use crate::config::{AgentChoice, ConfigError};
use crate::service::catalog::ListEntry;
use crate::{EngineError, Service, now};

#[derive(Debug)]
pub struct UsageSummary {
    pub report: Report,
    /// The same, by all that tells it apart but the day, if that is asked for.
    pub series: Vec<(Series, Sum)>,
    /// The loops that could not be read, and are not in it.
    pub unread: Vec<ListEntry>,
    /// What else could not be read, which takes nothing from the sums.
    pub untold: Vec<UnreportedUsage>,
}

/// Something beside the sums that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum UnreportedUsage {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Caps(#[from] EngineError),
    /// The usage of agents that looked back on loops.
    #[error(transparent)]
    LookingBack(#[from] MemoryError),
}

/// The projects whose loops are added up.
#[derive(Clone, Copy)]
pub enum UsageScope<'a> {
    /// That of the service.
    Project,
    /// All that Refrain has worked in.
    All,
    Of(&'a [Service]),
}

impl Service {
    /// Adds up what the loops of these projects used, `since` then; days are those of the time zone. A
    /// scraper wants each series, too.
    pub fn used(
        &self,
        of: UsageScope<'_>,
        since: Option<Timestamp>,
        by: GroupBy,
        zone: &TimeZone,
        in_series: bool,
    ) -> Result<UsageSummary, EngineError> {
        let tally = || {
            let tally = Tally::new(by, zone.clone());
            if in_series { tally.in_series() } else { tally }
        };
        let (tally, unread) = self.usage(of, since, tally)?;
        let project = matches!(of, UsageScope::Project).then(|| self.project().root.to_string());
        let offset = || now().to_zoned(zone.clone()).offset().to_string();
        let name = zone.iana_name().map_or_else(offset, str::to_owned);
        let mut untold = Vec::new();
        let caps = self.caps_now().unwrap_or_else(|error| {
            untold.push(error);
            Vec::new()
        });
        let looking_back = self.judges_asked(project.as_deref(), since).unwrap_or_else(|error| {
            untold.push(error.into());
            JudgeCalls::default()
        });
        let series = tally.series();
        let report = tally.report(since, name, project);
        let elsewhere = report.elsewhere.map(|used| {
            // What cannot be read was said for the caps of this machine.
            let settings = self.settings(AgentChoice::default(), false).ok();
            let caps = settings.and_then(|settings| self.caps_of_user(settings.project_caps).ok());
            ElsewhereUsage { caps: self.caps_elsewhere(&caps.unwrap_or_default(), None), ..used }
        });
        let report = Report { caps, looking_back: said(looking_back), elsewhere, ..report };
        Ok(UsageSummary { report, series, unread, untold })
    }

    fn caps_now(&self) -> Result<Vec<CapUsage>, UnreportedUsage> {
        let settings = self.settings(AgentChoice::default(), false)?;
        Ok(self.shared_caps(settings.project_caps)?)
    }
}

fn said(JudgeCalls { count, cost, untold }: JudgeCalls) -> Option<ReflectionUsage> {
    let cost = (untold < count).then(|| cost.into());
    let at_least = untold > 0 && cost.is_some();
    (count > 0).then_some(ReflectionUsage { asked: count, cost_usd: cost, without_cost: untold, at_least })
}
